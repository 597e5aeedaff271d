"""Statuses and reasons in words, for people who have not read the contract."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.utils.formats import date_format
from django.utils.functional import lazy
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_noop, ngettext, ngettext_lazy

from messaging.consent import ledger
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

_COUNTS = {
    "ACCEPTED": ngettext_lazy(
        "%(count)s waiting to be sent", "%(count)s waiting to be sent", "count"
    ),
    "SCHEDULED": ngettext_lazy("%(count)s scheduled", "%(count)s scheduled", "count"),
    "SENDING": ngettext_lazy("%(count)s being sent", "%(count)s being sent", "count"),
    "SENT": ngettext_lazy(
        "%(count)s handed to the provider", "%(count)s handed to the provider", "count"
    ),
    "DELIVERED": ngettext_lazy("%(count)s delivered", "%(count)s delivered", "count"),
    "FAILED": ngettext_lazy("%(count)s failed", "%(count)s failed", "count"),
    "BLOCKED": ngettext_lazy("%(count)s not sent", "%(count)s not sent", "count"),
    "CANCELLED": ngettext_lazy("%(count)s cancelled", "%(count)s cancelled", "count"),
    "EXPIRED": ngettext_lazy("%(count)s expired", "%(count)s expired", "count"),
    "UNKNOWN": ngettext_lazy(
        "%(count)s with an unknown outcome", "%(count)s with an unknown outcome", "count"
    ),
}
"""How many recipients a status has, within a sentence."""

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


def status_count(code: str, count: int) -> str:
    """Return how many recipients have a status, as a part of a sentence's list."""
    return str(_COUNTS[code] % {"count": count})


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


def channel(code: str) -> str:
    """Return a channel as a label."""
    if code == ALL:
        return gettext("All channels")
    return said(Channel(code).label) if code in Channel.__members__ else code


def channel_noun(code: str) -> str:
    """Return a channel's name within a sentence."""
    return said(Channel(code).noun)


CHANNELS: list[tuple[str, Any]] = [(str(each), lazy(channel, str)(each)) for each in Channel]
"""The channels as choices of a form."""


def channels(*, with_all: bool = False) -> dict[str, str]:
    """Return the channels by code as labels, after what stands for all of them if asked for."""
    codes = [ALL, *Channel] if with_all else [*Channel]
    return {str(code): channel(code) for code in codes}


def message(channel_code: str, subject: str) -> str:
    """Return a message in a few words, such as `Email: Welcome`."""
    words = {"channel": channel(channel_code), "subject": subject}
    return gettext("%(channel)s: %(subject)s") % words


def category(code: str) -> str:
    """Return a category as a label, such as `Order updates` for ORDER_UPDATES."""
    if code == ALL:
        return gettext("All categories")
    return category_noun(code).capitalize()


def category_noun(code: str) -> str:
    """Return a category within a sentence, such as `order updates` for ORDER_UPDATES."""
    return code.replace("_", " ").lower()


def _word(table: Mapping[str, str], code: str) -> str:
    return gettext(table[code]) if code in table else code


def outcome(name: str) -> str:
    """Return an attempt's outcome in words, with a capital letter."""
    code = name.upper()
    return str(capfirst(_word(OUTCOMES, code) if code in OUTCOMES else name))


def reason(code: str | None, detail: str | None = None) -> str:
    """Return a reason in words, with its detail unless the detail repeats it; without a stop."""
    words = _word(REASONS, code or "")
    if code in _ERRORS and detail == _ERRORS[code].default:
        detail = None
    detail = (detail or "").removesuffix(".")
    if words and detail:
        return gettext("%(reason)s: %(detail)s") % {"reason": words, "detail": detail}
    return words or detail


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
        "category": category_noun(category),
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
            gettext(_NAMED[name]) % {"value": value} if name in _NAMED else f"{name}: {value}"
            for name, value in details.items()
            if name not in ("kind", *_PLAIN)
        ]
    return ", ".join(words)


_PLAIN = ("note", "text", "form", "url")
"""Parts of evidence that need no name before them."""
_NAMED = {
    "ip": gettext_noop("from %(value)s"),
    ledger.MERGED_FROM: gettext_noop("merged from contact %(value)s"),
    "reason": gettext_noop("reason: %(value)s"),
}
"""Parts of evidence that rme itself may write, in words. Programs choose the names of others."""


def day(moment: datetime, zone: ZoneInfo) -> str:
    """Return a day as people write it."""
    return date_format(moment.astimezone(zone), "DATE_FORMAT")


def minute(at: datetime, zone: ZoneInfo) -> str:
    """Return a day and a time to the minute, without the zone."""
    return date_format(at.astimezone(zone), "j M Y, H:i")


def moment(at: datetime, zone: ZoneInfo) -> str:
    """Return a day and a time, with seconds and the zone."""
    return date_format(at.astimezone(zone), "DATETIME_FORMAT")
