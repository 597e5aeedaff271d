"""The events of an email that Amazon SES publishes by a configuration set."""

from collections.abc import Mapping

import structlog

from rme.core import addresses, ids
from rme.core.automated_clients import is_machine
from rme.core.provider import DeliveryReceipt, UnknownCode, http

log = structlog.get_logger(__name__)

ATTEMPT = "rme_attempt"
"""The tag that carries the attempt's id."""
RECEIPTS: dict[str, str | None] = {
    # https://docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns-contents.html
    "Send": "sent",
    "Delivery": "delivered",
    "DeliveryDelay": "deferred",
    "Open": "open",
    "Click": "click",
    "Complaint": "complained",
    "Bounce": "bounced",  # of a dead address if Permanent
    "Reject": "failed",
    "Rendering Failure": "failed",
    "Subscription": None,
}
REASONS = (
    *("bounce.bounceType", "bounce.bounceSubType", "bounce.bouncedRecipients.0.diagnosticCode"),
    *("complaint.complaintFeedbackType", "reject.reason", "failure.errorMessage"),
    "deliveryDelay.delayType",
)
"""Where an event says why an email failed."""


def receipt(event: Mapping[str, object]) -> DeliveryReceipt | UnknownCode | None:
    """Return the receipt of an event; None if it reports nothing new."""
    name = http.text_of(event.get("eventType") or event.get("notificationType"))
    if not name:
        return None  # SNS's test that the topic works
    if name not in RECEIPTS:
        return UnknownCode(name)
    kind = RECEIPTS.get(name)
    attempt_id = ids.parse(http.text_of(http.value_at(event, f"mail.tags.{ATTEMPT}.0")))
    if kind is None or attempt_id is None:
        return None
    soft = kind == "bounced" and http.value_at(event, "bounce.bounceType") != "Permanent"
    agent = http.text_of(http.value_at(event, f"{kind}.userAgent"), 500)
    return DeliveryReceipt(
        attempt_id,
        "failed" if soft else kind,
        _reason(event),
        machine=kind in ("open", "click") and bool(agent) and is_machine(agent),
        soft=soft,
    )


def _reason(event: Mapping[str, object]) -> str | None:
    """Return why an email failed, in SES's words and without addresses."""
    words = (http.value_at(event, path) for path in REASONS)
    text = " ".join(filter(None, (http.text_of(word, 150) for word in words)))
    return addresses.redacted(text)[:200] or None
