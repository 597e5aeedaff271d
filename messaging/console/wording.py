"""Statuses and reasons in words, for people who have not read the contract."""

from collections.abc import Mapping
from datetime import datetime
from zoneinfo import ZoneInfo

from messaging.domain.channels import ALL, Channel
from messaging.domain.statuses import StatusReason, WaitReason
from rme.core import errors

STATUS = {
    "ACCEPTED": ("Waiting to be sent", "info"),
    "SCHEDULED": ("Scheduled", "info"),
    "SENDING": ("Being sent", "info"),
    "SENT": ("Handed to the provider", "good"),
    "DELIVERED": ("Delivered", "good"),
    "FAILED": ("Failed", "bad"),
    "BLOCKED": ("Not sent", "warn"),
    "CANCELLED": ("Cancelled", "muted"),
    "EXPIRED": ("Expired", "warn"),
    "UNKNOWN": ("Outcome unknown", "warn"),
}
"""The label of each status, and the name of its colour."""

REASONS: dict[str, str] = {
    "SUPPRESSED": "on the suppression list",
    "NO_CONSENT": "no consent",
    "DUPLICATE_ADDRESS": "another recipient of the message has the same address",
    "FREQUENCY_CAPPED": "had as many messages as the category's cap allows",
    StatusReason.UNREACHABLE: "no address or device",
    "NOT_FOUND": "no such contact",
    "TEMPLATE_NOT_FOUND": "no active template in the language",
    StatusReason.TEMPLATE_ERROR: "the text could not be rendered",
    StatusReason.PROVIDER_ERROR: "no provider took it",
    StatusReason.UNKNOWN_OUTCOME: "the provider gave no answer",
    "RATE_LIMITED": "the rate limit was reached",
    StatusReason.EXPIRED: "its time had passed",
    "INVALID_PAYLOAD": "the request was not valid",
    "UNAVAILABLE": "the service was not available",
}
"""The reasons that accept and delivery give. A provider's own reasons are shown as they are."""

_ERRORS = errors.by_code()
WAITING: dict[str, str] = {
    WaitReason.PAUSED: "sending is paused",
    WaitReason.PROVIDER: "no provider account takes it now",
    WaitReason.RATE: "the account's rate limit is reached",
    WaitReason.PLATFORM: "the organization's platform does not answer",
    WaitReason.QUIET_HOURS: "the recipient's quiet hours",
}
"""What an accepted delivery waits for. Other words are a provider's."""

SUPPRESSED_BY = {
    "HARD_BOUNCE": "the address does not exist: a message to it bounced",
    "COMPLAINT": "the recipient complained",
    "STOP": "the recipient answered STOP",
    "UNSUBSCRIBE": "the recipient unsubscribed",
    "INVALID_ADDRESS": "the address is not valid",
    "MANUAL": "a person entered it by hand",
}

EVENTS = {
    "accepted": "Accepted",
    "scheduled": "Scheduled",
    "sent": "Handed to the provider",
    "delivered": "Delivered",
    "open": "Opened",
    "click": "A link was followed",
    "deferred": "Deferred",
    "failover": "Next provider account",
    "fallback": "Next channel",
    "bounced": "Bounced",
    "complained": "Complained",
    "unsubscribed": "Unsubscribed",
    "failed": "Failed",
    "blocked": "Not sent",
    "cancelled": "Cancelled",
    "expired": "Expired",
}

OUTCOMES = {
    "ACCEPTED": "the provider accepted it",
    "RETRYABLE": "refused for now",
    "REJECTED": "rejected",
    "GONE": "the address is gone",
    "MISCONFIGURED": "the account is misconfigured",
    "UNKNOWN": "no answer",
}

SOURCES = {
    "API": "by the API",
    "ADMIN": "in the console",
    "PREFERENCE_PAGE": "on the preference page",
    "ONE_CLICK": "by one click in a message",
    "SMS_KEYWORD": "by SMS",
    "IMPORT": "by an import",
    "DOUBLE_OPT_IN": "by the confirmation mail",
}

EVIDENCE_KINDS = {
    "WEB_FORM": "web form",
    "PAPER": "paper form",
    "PHONE": "phone call",
    "IN_PERSON": "in person",
    "WRITTEN": "email or letter",
    "DOUBLE_OPT_IN": "double opt-in",
    "CONTRACT": "contract",
}
"""What shows a decision."""


def status(code: str) -> str:
    """Return a status in words."""
    return STATUS[code][0]


def colour(code: str) -> str:
    """Return the name of a status's colour."""
    return STATUS[code][1]


def outcome(name: str) -> str:
    """Return an attempt's outcome in words, with a capital letter."""
    words = OUTCOMES.get(name.upper(), name)
    return words[:1].upper() + words[1:]


def reason(code: str | None, detail: str | None = None) -> str:
    """Return a reason in words, with its detail unless the detail repeats it."""
    words = REASONS.get(code or "", code or "")
    if code in _ERRORS and detail == _ERRORS[code].default:
        detail = None
    return f"{words}: {detail}" if words and detail else words or detail or ""


def error(code: str) -> str:
    """Return what an error's code means; empty if it is none of the contract's."""
    error_class = _ERRORS.get(code)
    return error_class.default if error_class else ""


def waiting(code: str | None) -> str:
    """Return what a delivery waits for."""
    return WAITING.get(code or "", code or "")


def decision(status: str, channel: str, category: str) -> str:
    """Return a consent decision in words, such as `Opted out of marketing email`."""
    verb = {"OPTED_IN": "Opted in to", "OPTED_OUT": "Opted out of"}[status]
    kind = "all" if category == ALL else category.lower().replace("_", " ")
    noun = "messages" if channel == ALL else Channel(channel).noun
    return f"{verb} {kind} {noun}"


def evidence(details: Mapping[str, object], *, in_full: bool = True) -> str:
    """Return the evidence of a decision in words; not `in_full`: its kind alone."""
    kind = str(details.get("kind", ""))
    words = [EVIDENCE_KINDS.get(kind, kind)] if kind else []
    if in_full:
        words += [str(details[name]) for name in _PLAIN if details.get(name)]
        further = {"from" if name == "ip" else f"{name}:": value for name, value in details.items()
                  if name not in ("kind", *_PLAIN)}  # fmt: skip
        words += [f"{name} {value}" for name, value in further.items()]
    return ", ".join(words)


_PLAIN = ("note", "text", "form", "url")
"""Parts of evidence that need no name before them."""


def day(moment: datetime, zone: ZoneInfo) -> str:
    """Return a day as people write it."""
    local = moment.astimezone(zone)
    return f"{local.day} {local:%b %Y}"


def minute(at: datetime, zone: ZoneInfo) -> str:
    """Return a day and a time to the minute, without the zone."""
    return f"{day(at, zone)}, {at.astimezone(zone):%H:%M}"


def moment(at: datetime, zone: ZoneInfo) -> str:
    """Return a day and a time, with seconds and the zone."""
    local = at.astimezone(zone)
    return f"{local.day} {local:%b %Y, %H:%M:%S %Z}"
