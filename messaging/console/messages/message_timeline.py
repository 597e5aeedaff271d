"""The timeline of a delivery, and its attempts, in words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter

from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from messaging.console import wording
from messaging.console.access import Viewer
from messaging.console.messages import explanations
from messaging.console.messages.explanations import Entries, Link, Moment
from messaging.reports.queries import MessageEvent
from messaging.reports.trace import TraceStep
from messaging.store.reports.deliveries import DeliveryRow

_IN_TRACE = frozenset({"blocked", "deferred", "failover", "fallback"})
"""Events that the trace shows as steps."""
_COLOURS = {
    "delivered": "good", "open": "good", "click": "good", "sent": "good",
    "bounced": "bad", "complained": "bad", "failed": "bad",
    "unsubscribed": "warn", "expired": "warn", "cancelled": "muted",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class AttemptLine:
    """An attempt in words: the account, its answer, and how long it took."""

    at: datetime
    provider: str
    answer: str
    colour: str
    detail: str
    milliseconds: int | None
    provider_id: str


def timeline(
    viewer: Viewer,
    row: DeliveryRow,
    steps: Sequence[TraceStep],
    events: Sequence[MessageEvent],
    stopped_by: Entries,
) -> list[Moment]:
    """Return the decisions, attempts and receipts of one delivery in the order of time."""
    moments = [_of_step(viewer, row, step, stopped_by) for step in steps]
    moments += [_of_event(event) for event in events if event.type not in _IN_TRACE]
    visible = [replace(each, text=viewer.without(each.text, row.address)) for each in moments]
    return sorted(visible, key=attrgetter("at"))


def attempts(viewer: Viewer, row: DeliveryRow, steps: Sequence[TraceStep]) -> list[AttemptLine]:
    """Return the attempts of one delivery in the order of time."""
    return [
        AttemptLine(
            at=step.at,
            provider=step.provider or "",
            answer=_answer(step),
            colour=_attempt_colour(step),
            detail=viewer.without(step.detail or "", row.address),
            milliseconds=step.latency_ms,
            provider_id=step.provider_id or "",
        )
        for step in steps
        if step.step == "ATTEMPT"
    ]


def _answer(step: TraceStep) -> str:
    return wording.outcome(step.result) if step.result else _("No answer yet")


def _attempt_colour(step: TraceStep) -> str:
    return {"ACCEPTED": "good", None: "info"}.get(step.result, "bad")


def _of_step(viewer: Viewer, row: DeliveryRow, step: TraceStep, stopped_by: Entries) -> Moment:
    result = step.result or ""
    channel = {"channel": wording.channel(step.channel or row.channel)}
    match step.step:
        case "DECISION" if result == "CHOSEN":
            return Moment(step.at, _("%(channel)s chosen") % channel)
        case "DECISION" if result == "QUIET_HOURS":
            return Moment(step.at, _("Held for quiet hours"), _until(viewer, step), "info")
        case "DECISION" if result in ("SEND_AGAIN", "GIVE_UP", "RESEND"):
            title = _("Given up") if result == "GIVE_UP" else _("Resent")
            return Moment(step.at, title, str(step.detail or ""))
        case "DECISION" if result == "HOLD":
            return Moment(step.at, _("Held for review"), str(step.detail or ""), "warn")
        case "DECISION" | "GATE":
            links = _entry_links(viewer, step.entry, stopped_by)
            title = _("%(channel)s skipped") % channel
            return Moment(step.at, title, wording.reason(result), "warn", links)
        case "ATTEMPT":
            title = _("Sent to %(provider)s") % {"provider": step.provider}
            text = ", ".join(filter(None, [_answer(step), step.detail]))
            return Moment(step.at, title, text, _attempt_colour(step))
        case "WAIT":
            parts = [wording.waiting(result), _until(viewer, step)]
            return Moment(step.at, _("Waited"), ", ".join(filter(None, parts)), "info")
    title = _("Next provider tried") if step.step == "FAILOVER" else _("Next channel tried")
    return Moment(step.at, title, wording.reason(result), "warn")


def _until(viewer: Viewer, step: TraceStep) -> str:
    """Return until when a delivery waits, or nothing."""
    until = parse_datetime(step.until) if step.until else None
    if until is None:
        return ""
    return _("until %(time)s") % {"time": wording.minute(until, viewer.zone)}


def _of_event(event: MessageEvent) -> Moment:
    detail = event.detail or {}
    parts = [wording.reason(str(detail["reason"])) if detail.get("reason") else ""]
    parts.append(_("by a machine") if detail.get("machine") else "")
    title = wording.event(event.type)
    text = ", ".join(filter(None, parts))
    return Moment(event.at, title, text, _COLOURS.get(event.type, "muted"))


def _entry_links(viewer: Viewer, entry: str | None, stopped_by: Entries) -> list[Link]:
    """Return a link to the suppression or the consent entry that stopped a channel."""
    if entry and (suppression := stopped_by.suppressions.get(entry)):
        day = wording.day(suppression.created_at, viewer.zone)
        words = wording.suppressed_by(suppression.reason)
        return [Link(f"{day}: {words}", explanations.suppression_url(viewer, suppression.pk))]
    if entry and (decided := stopped_by.consent.get(entry)):
        day = wording.day(decided.occurred_at, viewer.zone)
        text = _("%(decision)s on %(day)s") % {
            "decision": wording.decision(decided.status, decided.channel, decided.category),
            "day": day,
        }
        url = reverse("console:consent_entry", args=[viewer.organization_id, entry])
        return [Link(text, url)]
    return []
