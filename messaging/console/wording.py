"""Statuses and reasons in words, for people who have not read the contract."""

from collections.abc import Mapping
from datetime import datetime
from zoneinfo import ZoneInfo

from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_noop, ngettext

from messaging.domain.channels import ALL, Channel
from messaging.domain.sentences import Sentence, in_english
from messaging.domain.statuses import StatusReason, WaitReason
from rme.core import errors

STATUS = {
    "ACCEPTED": (gettext_noop("Waiting to be sent"), "info"),
    "SCHEDULED": (gettext_noop("Scheduled"), "info"),
    "SENDING": (gettext_noop("Being sent"), "info"),
    "SENT": (gettext_noop("Handed to the provider"), "good"),
    "DELIVERED": (gettext_noop("Delivered"), "good"),
    "FAILED": (gettext_noop("Failed"), "bad"),
    "BLOCKED": (gettext_noop("Not sent"), "warn"),
    "CANCELLED": (gettext_noop("Cancelled"), "muted"),
    "EXPIRED": (gettext_noop("Expired"), "warn"),
    "UNKNOWN": (gettext_noop("Outcome unknown"), "warn"),
}
"""The label of each status, and the name of its colour."""

REASONS: dict[str, str] = {
    "SUPPRESSED": gettext_noop("on the suppression list"),
    "NO_CONSENT": gettext_noop("no consent"),
    "DUPLICATE_ADDRESS": gettext_noop("another recipient of the message has the same address"),
    "FREQUENCY_CAPPED": gettext_noop("frequency cap reached"),
    StatusReason.UNREACHABLE: gettext_noop("no address or device"),
    "NOT_FOUND": gettext_noop("no such contact"),
    "TEMPLATE_NOT_FOUND": gettext_noop("no active template in the language"),
    StatusReason.TEMPLATE_ERROR: gettext_noop("the text could not be rendered"),
    StatusReason.PROVIDER_ERROR: gettext_noop("rejected by the provider"),
    StatusReason.UNKNOWN_OUTCOME: gettext_noop("the provider gave no answer"),
    "RATE_LIMITED": gettext_noop("the rate limit was reached"),
    StatusReason.EXPIRED: gettext_noop("it expired"),
    "INVALID_PAYLOAD": gettext_noop("the request was not valid"),
    "UNAVAILABLE": gettext_noop("the service was not available"),
}
"""The reasons that accept and delivery give. A provider's own reasons are shown as they are."""

_ERRORS = errors.by_code()
WAITING: dict[str, str] = {
    WaitReason.PAUSED: gettext_noop("sending is paused"),
    WaitReason.PROVIDER: gettext_noop("no provider account takes it now"),
    WaitReason.RATE: gettext_noop("the account's rate limit is reached"),
    WaitReason.PLATFORM: gettext_noop("the organization's CRM doesn't answer"),
    WaitReason.QUIET_HOURS: gettext_noop("the recipient's quiet hours"),
}
"""What an accepted delivery waits for. Other words are a provider's."""

SUPPRESSED_BY = {
    "HARD_BOUNCE": gettext_noop("a message to it bounced: the address doesn't exist"),
    "COMPLAINT": gettext_noop("the recipient complained"),
    "STOP": gettext_noop("the recipient replied STOP"),
    "UNSUBSCRIBE": gettext_noop("the recipient unsubscribed"),
    "INVALID_ADDRESS": gettext_noop("the address isn't valid"),
    "MANUAL": gettext_noop("added by hand"),
}

EVENTS = {
    "accepted": gettext_noop("Accepted"),
    "scheduled": gettext_noop("Scheduled"),
    "sent": gettext_noop("Handed to the provider"),
    "delivered": gettext_noop("Delivered"),
    "open": gettext_noop("Opened"),
    "click": gettext_noop("Link clicked"),
    "deferred": gettext_noop("Deferred"),
    "failover": gettext_noop("Next provider account"),
    "fallback": gettext_noop("Next channel"),
    "bounced": gettext_noop("Bounced"),
    "complained": gettext_noop("Complained"),
    "unsubscribed": gettext_noop("Unsubscribed"),
    "failed": gettext_noop("Failed"),
    "blocked": gettext_noop("Not sent"),
    "cancelled": gettext_noop("Cancelled"),
    "expired": gettext_noop("Expired"),
}

OUTCOMES = {
    "ACCEPTED": gettext_noop("the provider accepted it"),
    "RETRYABLE": gettext_noop("refused for now"),
    "REJECTED": gettext_noop("rejected"),
    "GONE": gettext_noop("the address is gone"),
    "MISCONFIGURED": gettext_noop("the account is misconfigured"),
    "UNKNOWN": gettext_noop("no answer"),
}

SOURCES = {
    "API": gettext_noop("by the API"),
    "ADMIN": gettext_noop("in the console"),
    "PREFERENCE_PAGE": gettext_noop("on the preference page"),
    "ONE_CLICK": gettext_noop("by one click in a message"),
    "SMS_KEYWORD": gettext_noop("by SMS"),
    "IMPORT": gettext_noop("by an import"),
    "DOUBLE_OPT_IN": gettext_noop("by the confirmation email"),
}

EVIDENCE_KINDS = {
    "WEB_FORM": gettext_noop("web form"),
    "PAPER": gettext_noop("paper form"),
    "PHONE": gettext_noop("phone call"),
    "IN_PERSON": gettext_noop("in person"),
    "WRITTEN": gettext_noop("email or letter"),
    "DOUBLE_OPT_IN": gettext_noop("double opt-in"),
    "CONTRACT": gettext_noop("contract"),
}
"""What shows a decision."""


def said(text: str) -> str:
    """Return a sentence of the domain in the language of the page; other texts stay."""
    if not isinstance(text, Sentence):
        return text
    chosen = (
        ngettext(text.template, text.plural, text.number) if text.plural else gettext(text.template)
    )
    return chosen % {name: _value(value) for name, value in text.values.items()}


def _value(value: object) -> str:
    return said(value) if isinstance(value, str) else in_english(value)


def status(code: str) -> str:
    """Return a status in words."""
    return gettext(STATUS[code][0])


def colour(code: str) -> str:
    """Return the name of a status's colour."""
    return STATUS[code][1]


def event(code: str) -> str:
    """Return what an event is, as the title of a line."""
    return _word(EVENTS, code)


def suppressed_by(code: str) -> str:
    """Return why an address was suppressed."""
    return _word(SUPPRESSED_BY, code)


def source(code: str) -> str:
    """Return how a consent decision came."""
    return _word(SOURCES, code)


def evidence_kind(code: str) -> str:
    """Return what shows a consent decision."""
    return _word(EVIDENCE_KINDS, code)


def channel(code: str, every: str = "") -> str:
    """Return a channel as a label; `every` is the label of all of them, if not the usual one."""
    if code == ALL:
        return every or gettext("All channels")
    return said(Channel(code).label) if code in Channel.__members__ else code


def channel_noun(code: str) -> str:
    """Return a channel's name within a sentence."""
    return said(Channel(code).noun)


def channels(*, with_all: bool = False) -> dict[str, str]:
    """Return the channels by code as labels, after what stands for all of them if asked for."""
    codes = [ALL, *Channel] if with_all else [*Channel]
    return {str(code): channel(code) for code in codes}


def category(code: str) -> str:
    """Return a category as a label, such as `Order updates` for ORDER_UPDATES."""
    if code == ALL:
        return gettext("All categories")
    return code.replace("_", " ").capitalize()


def _word(table: Mapping[str, str], code: str) -> str:
    return gettext(table[code]) if code in table else code


def outcome(name: str) -> str:
    """Return an attempt's outcome in words, with a capital letter."""
    code = name.upper()
    return str(capfirst(_word(OUTCOMES, code) if code in OUTCOMES else name))


def reason(code: str | None, detail: str | None = None) -> str:
    """Return a reason in words, with its detail unless the detail repeats it."""
    words = _word(REASONS, code or "")
    if code in _ERRORS and detail == _ERRORS[code].default:
        detail = None
    return f"{words}: {detail}" if words and detail else words or detail or ""


def error(code: str) -> str:
    """Return what an error's code means; empty if it is none of the contract's."""
    error_class = _ERRORS.get(code)
    return gettext(error_class.default) if error_class else ""


def waiting(code: str | None) -> str:
    """Return what a delivery waits for."""
    return _word(WAITING, code or "")


def decision(status: str, channel: str, category: str) -> str:
    """Return a consent decision in words, such as `Opted out of marketing email`."""
    values = {
        "category": category.lower().replace("_", " "),
        "channel": "" if channel == ALL else channel_noun(channel),
    }
    return gettext(_DECISIONS[status, channel == ALL, category == ALL]) % values


_DECISIONS = {
    ("OPTED_IN", True, True): gettext_noop("Opted in to all messages"),
    ("OPTED_IN", True, False): gettext_noop("Opted in to %(category)s messages"),
    ("OPTED_IN", False, True): gettext_noop("Opted in to all %(channel)s"),
    ("OPTED_IN", False, False): gettext_noop("Opted in to %(category)s %(channel)s"),
    ("OPTED_OUT", True, True): gettext_noop("Opted out of all messages"),
    ("OPTED_OUT", True, False): gettext_noop("Opted out of %(category)s messages"),
    ("OPTED_OUT", False, True): gettext_noop("Opted out of all %(channel)s"),
    ("OPTED_OUT", False, False): gettext_noop("Opted out of %(category)s %(channel)s"),
}
"""By the decision, and whether it covers all channels and all categories."""


def evidence(details: Mapping[str, object], *, in_full: bool = True) -> str:
    """Return the evidence of a decision in words; not `in_full`: its kind alone."""
    kind = str(details.get("kind", ""))
    words = [evidence_kind(kind)] if kind else []
    if in_full:
        words += [str(details[name]) for name in _PLAIN if details.get(name)]
        words += [
            gettext("from %(address)s") % {"address": value} if name == "ip" else f"{name}: {value}"
            for name, value in details.items()
            if name not in ("kind", *_PLAIN)
        ]
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
