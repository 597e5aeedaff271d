"""The events of an email that Amazon SES publishes by a configuration set."""

from collections.abc import Mapping

import structlog

from rme.core import addresses, ids
from rme.core.outcomes import OptOut
from rme.core.provider import DeliveryReceipt, UnknownCode, bounces, http
from rme.core.provider.automated_clients import is_machine

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
    "Bounce": "bounced",  # see `_bounce`
    "Reject": "failed",
    "Rendering Failure": "failed",
    "Subscription": None,
}
NOT_SENT: dict[tuple[str, str], OptOut] = {
    ("bounced", "UnsubscribedRecipient"): OptOut.UNSUBSCRIBED,  # they left the contact list
    ("complained", "OnAccountSuppressionList"): OptOut.COMPLAINT,  # they complained before
}
"""Opt-outs for which SES did not send, by type and subtype.

https://docs.aws.amazon.com/ses/latest/dg/notification-contents.html#bounce-types"""
NO_COMPLAINTS = frozenset({"not-spam", "auth-failure"})
"""Feedback types that aren't complaints (RFC 6430 §3, RFC 6591)."""
NOT_OF_THE_ADDRESS = frozenset({"ContentRejected", "AttachmentRejected", "MessageTooLarge"})
"""Subtypes of bounces that don't concern the address."""
REASONS = (
    *("bounce.bounceType", "bounce.bounceSubType", "bounce.bouncedRecipients.0.diagnosticCode"),
    *("complaint.complaintSubType", "complaint.complaintFeedbackType", "reject.reason"),
    *("failure.errorMessage", "deliveryDelay.delayType"),
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
    attempt_id = ids.parse_reported(http.text_of(http.value_at(event, f"mail.tags.{ATTEMPT}.0")))
    if kind is None or attempt_id is None:
        return None
    if kind == "complained" and _text(event, "complaint.complaintFeedbackType") in NO_COMPLAINTS:
        return None
    subtype = _text(event, "bounce.bounceSubType") or _text(event, "complaint.complaintSubType")
    if opt_out := NOT_SENT.get((kind, subtype)):
        return DeliveryReceipt(attempt_id, "failed", _reason(event), opt_out=opt_out)
    kind, soft = _bounce(event, subtype) if kind == "bounced" else (kind, False)
    agent = http.text_of(http.value_at(event, f"{kind}.userAgent"), 500)
    return DeliveryReceipt(
        attempt_id,
        kind,
        _reason(event),
        machine=kind in ("open", "click") and bool(agent) and is_machine(agent),
        soft=soft,
    )


def _bounce(event: Mapping[str, object], subtype: str) -> tuple[str, bool]:
    """Return the type of a bounce, and whether it is soft, by the words of the server."""
    if subtype in NOT_OF_THE_ADDRESS:
        return "failed", False
    recipient = "bounce.bouncedRecipients.0"
    text = f"{_text(event, f'{recipient}.status')} {_text(event, f'{recipient}.diagnosticCode')}"
    hard = _text(event, "bounce.bounceType") == "Permanent"
    return bounces.of_bounce(text, hard=hard, soft=not hard)


def _text(event: Mapping[str, object], path: str) -> str:
    return http.text_of(http.value_at(event, path), 1000)


def _reason(event: Mapping[str, object]) -> str | None:
    """Return why an email failed, in SES's words and without addresses."""
    words = (http.value_at(event, path) for path in REASONS)
    text = " ".join(filter(None, (http.text_of(word, 150) for word in words)))
    return addresses.redacted(text)[:200] or None
