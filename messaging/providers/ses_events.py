"""What Amazon SES reports of an email, as it publishes events by a configuration set."""

from collections.abc import Mapping
from typing import Any

import structlog

from rme.core import addresses, ids
from rme.core.automated_clients import is_machine
from rme.core.provider import DeliveryReceipt, UnknownCode, http

log = structlog.get_logger(__name__)

ATTEMPT = "rme_attempt"
"""The tag by which our id of the attempt travels."""
REPORTS: dict[str, str | None] = {
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


def report(event: Mapping[str, Any]) -> DeliveryReceipt | UnknownCode | None:
    """Say what an event reports; None for what is no news."""
    named = http.text_of(event.get("eventType") or event.get("notificationType"))
    if not named:
        return None  # SNS's own word that the topic works
    if named not in REPORTS:
        return UnknownCode(named)
    kind = REPORTS.get(named)
    attempt_id = ids.parse(http.text_of(_first(_at(event, "mail", "tags", ATTEMPT))))
    if kind is None or attempt_id is None:
        return None
    soft = kind == "bounced" and _at(event, "bounce", "bounceType") != "Permanent"
    agent = http.text_of(_at(event, kind, "userAgent"), 500)
    return DeliveryReceipt(
        attempt_id,
        "failed" if soft else kind,
        _reason(event),
        machine=kind in ("open", "click") and bool(agent) and is_machine(agent),
        soft=soft,
    )


def _reason(event: Mapping[str, Any]) -> str | None:
    """Give why an email failed, in SES's words, without addresses."""
    recipient = _first(_at(event, "bounce", "bouncedRecipients"))
    words = [
        _at(event, "bounce", "bounceType"),
        _at(event, "bounce", "bounceSubType"),
        recipient.get("diagnosticCode") if isinstance(recipient, dict) else None,
        _at(event, "complaint", "complaintFeedbackType"),
        _at(event, "reject", "reason"),
        _at(event, "failure", "errorMessage"),
        _at(event, "deliveryDelay", "delayType"),
    ]
    told = " ".join(filter(None, (http.text_of(word, 150) for word in words)))
    return addresses.redacted(told)[:200] or None


def _at(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else None
