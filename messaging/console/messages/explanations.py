"""The outcome of a delivery and what can be done about it, in sentences.

The facts are those of the trace (`messaging.reports.trace`), which REST answers with too; the
entries that decided are looked up for their day and their source.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import attrgetter
from uuid import UUID

from django.urls import reverse

from messaging.consent import suppressions
from messaging.console import wording
from messaging.console.access import Viewer
from messaging.console.filters.message_filter import HELD
from messaging.domain.statuses import Status, StatusReason, WaitReason
from messaging.models import ConsentEntry, Suppression
from messaging.reports.queries import MessageEvent
from messaging.reports.trace import RecipientTrace, TraceStep
from messaging.store.reports.deliveries import DeliveryRow
from rme.core import ids


@dataclass(frozen=True, slots=True)
class Link:
    """A page where something can be done or seen."""

    text: str
    url: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """One sentence about a delivery, and the links that help."""

    text: str
    colour: str
    links: Sequence[Link] = ()


@dataclass(frozen=True, slots=True)
class Entries:
    """Suppressions and consent entries by id, as the trace names them."""

    suppressions: Mapping[str, Suppression] = field(default_factory=dict)
    consent: Mapping[str, ConsentEntry] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Moment:
    """One line of a timeline."""

    at: datetime
    title: str
    text: str = ""
    colour: str = "muted"
    links: Sequence[Link] = ()


def entries(organization_id: str, traces: Iterable[RecipientTrace]) -> Entries:
    """Return the entries that the steps of traces name, by two queries."""
    texts = {step.entry for each in traces for step in each.steps if step.entry}
    entry_ids = [identifier for each in texts if (identifier := ids.parse(each))]
    if not entry_ids:
        return Entries()
    conditions: dict[str, object] = {"organization_id": organization_id, "pk__in": entry_ids}
    return Entries(
        {str(row.pk): row for row in Suppression.objects.filter(**conditions)},
        {str(row.pk): row for row in ConsentEntry.objects.filter(**conditions)},
    )


# --- the sentence -------------------------------------------------------------------------------
def explain(
    viewer: Viewer,
    row: DeliveryRow,
    steps: Sequence[TraceStep],
    events: Sequence[MessageEvent],
    stopped_by: Entries,
) -> Explanation:
    """Return the outcome of one delivery and what can be done."""
    colour = wording.colour(row.status)
    text, links = _sentence(viewer, row, steps, events, stopped_by)
    return Explanation(viewer.without(text, row.address), colour, links)


def _sentence(
    viewer: Viewer,
    row: DeliveryRow,
    steps: Sequence[TraceStep],
    events: Sequence[MessageEvent],
    stopped_by: Entries,
) -> tuple[str, list[Link]]:
    zone = viewer.zone
    match row.status:
        case Status.DELIVERED:
            return _delivered(viewer, row, events), []
        case Status.SENT:
            sent_at = wording.moment(row.updated_at, zone)
            return f"Handed to {row.provider} on {sent_at}; no delivery receipt has come yet.", []
        case Status.SCHEDULED:
            at = row.scheduled_for or row.due_at or row.created_at
            return f"Will be sent on {wording.moment(at, zone)}; it can be cancelled.", []
        case Status.ACCEPTED if row.waiting:
            return f"Waits to be sent: {wording.waiting(row.waiting)}.", _waiting_links(row)
        case Status.ACCEPTED:
            return "Waits for a worker; it leaves within seconds.", []
        case Status.SENDING:
            return "Is being handed to the provider now.", []
        case Status.CANCELLED:
            return f"Cancelled on {wording.moment(row.updated_at, zone)}; nothing was sent.", []
        case Status.UNKNOWN if row.is_held:
            text = f"{row.provider} gave no answer, so it may or may not have arrived; decide."
            return text, [_manual_review(viewer)]
        case Status.UNKNOWN:
            return f"{row.provider} gave no answer yet; the category decides soon.", []
        case Status.EXPIRED:
            return f"Not sent: {_why(row) or 'its time had passed'}; it can be sent again.", []
        case Status.BLOCKED:
            return _blocked(viewer, row, steps, stopped_by)
    return f"Failed: {_why(row) or 'no reason was given'}; it can be sent again.", []


def _why(row: DeliveryRow) -> str:
    return wording.reason(row.reason, row.detail)


def _delivered(viewer: Viewer, row: DeliveryRow, events: Sequence[MessageEvent]) -> str:
    at = next((each.at for each in events if each.type == "delivered"), row.updated_at)
    text = f"Delivered on {wording.moment(at, viewer.zone)}"
    for kind, words in (("open", "opened"), ("click", "followed a link")):
        if first := next((each.at for each in events if each.type == kind), None):
            text += f", {words} on {wording.moment(first, viewer.zone)}"
    return f"{text}."


def _waiting_links(row: DeliveryRow) -> list[Link]:
    if row.waiting == WaitReason.PAUSED:
        return [Link("Pauses", reverse("admin:messaging_pause_changelist"))]
    if row.waiting in (WaitReason.PROVIDER, WaitReason.RATE):
        return [Link("Provider accounts", reverse("console:first_providers"))]
    return []


def _manual_review(viewer: Viewer) -> Link:
    page = reverse("console:messages", args=[viewer.organization_id])
    return Link("All in manual review", f"{page}?status={HELD}")


def _blocked(
    viewer: Viewer, row: DeliveryRow, steps: Sequence[TraceStep], stopped_by: Entries
) -> tuple[str, list[Link]]:
    """Return why a gate stopped a delivery: by the last step that refused."""
    entry_ids = [step.entry for step in steps if step.entry and step.result == row.reason]
    entry = entry_ids[-1] if entry_ids else ""
    person = Link("The person's page", person_url(viewer, row.contact_id))
    if row.reason == "SUPPRESSED":
        return _suppressed(viewer, row, entry, stopped_by, person)
    if row.reason == "NO_CONSENT":
        decided = stopped_by.consent.get(entry)
        if decided is None:
            text = f"Not sent: never opted in to {row.category}; consent can be recorded."
        else:
            day = wording.day(decided.occurred_at, viewer.zone)
            source = wording.SOURCES.get(decided.source, decided.source)
            subject = decided.category if decided.category != "ALL" else "everything"
            text = (
                f"Not sent: opted out of {subject} {source} on {day}; new consent can be recorded."
            )
        return text, [person]
    if row.reason == "FREQUENCY_CAPPED":
        text = f"Not sent: had as many {row.category} messages as the category's cap allows."
        return text, [Link("Categories", reverse("admin:messaging_category_changelist"))]
    if row.reason == StatusReason.UNREACHABLE:
        return "Not sent: no address or device on any channel asked for.", [person]
    return f"Not sent: {_why(row) or 'no reason was given'}.", [person]


def _suppressed(
    viewer: Viewer, row: DeliveryRow, entry: str, stopped_by: Entries, person: Link
) -> tuple[str, list[Link]]:
    suppression = stopped_by.suppressions.get(entry)
    if suppression is None:
        return "Not sent: the recipient was on the suppression list, and is no longer.", [person]
    whom = viewer.shown(suppression.address or row.address) or "the recipient"
    day = wording.day(suppression.created_at, viewer.zone)
    cause = _LISTED[suppression.reason].format(whom)
    protected = suppression.reason in suppressions.PROTECTED
    remedy = "an admin may lift it with a reason" if protected else "it can be lifted"
    links = (
        [Link("Lift the suppression", lift_url(viewer, suppression.pk))]
        if viewer.may_change_people
        else []
    )
    return f"Not sent: {cause} on {day}; {remedy}.", [*links, person]


_LISTED = {
    "HARD_BOUNCE": "a message to {} bounced, as the address does not exist,",
    "COMPLAINT": "{} complained",
    "STOP": "{} answered STOP",
    "UNSUBSCRIBE": "{} unsubscribed",
    "INVALID_ADDRESS": "{} was found not to be a valid address",
    "MANUAL": "{} was put on the suppression list by hand",
}


# --- addresses ----------------------------------------------------------------------------------
def person_url(viewer: Viewer, contact_id: str) -> str:
    """Return the address of a person's page."""
    return reverse("console:person", args=[viewer.organization_id, contact_id])


def message_url(viewer: Viewer, message_id: UUID) -> str:
    """Return the address of a message's page."""
    return reverse("console:message", args=[viewer.organization_id, message_id])


def suppression_url(viewer: Viewer, suppression_id: UUID) -> str:
    """Return the address of a suppression's page."""
    return reverse("console:suppression", args=[viewer.organization_id, suppression_id])


def lift_url(viewer: Viewer, suppression_id: UUID) -> str:
    """Return the address of the page that lifts a suppression."""
    return reverse("console:lift", args=[viewer.organization_id, suppression_id])


# --- the timeline -------------------------------------------------------------------------------
_IN_TRACE = frozenset({"blocked", "deferred", "failover", "fallback"})
"""Events that the trace shows as steps."""


def timeline(
    viewer: Viewer,
    row: DeliveryRow,
    steps: Sequence[TraceStep],
    events: Sequence[MessageEvent],
    stopped_by: Entries,
) -> list[Moment]:
    """Return the decisions, attempts and receipts of one delivery in the order of time."""
    moments = [_of_step(viewer, step, stopped_by) for step in steps]
    moments += [_of_event(event) for event in events if event.type not in _IN_TRACE]
    visible = [replace(each, text=viewer.without(each.text, row.address)) for each in moments]
    return sorted(visible, key=attrgetter("at"))


def _of_step(viewer: Viewer, step: TraceStep, stopped_by: Entries) -> Moment:
    channel, result = step.channel or "", step.result or ""
    match step.step:
        case "DECISION" if result == "CHOSEN":
            return Moment(step.at, f"{channel} was chosen", colour="good")
        case "DECISION" if result == "QUIET_HOURS":
            return Moment(step.at, "Moved behind the quiet hours", f"until {step.until}")
        case "DECISION" if result in ("SEND_AGAIN", "GIVE_UP", "RESEND"):
            decided = "Given up" if result == "GIVE_UP" else "Sent again"
            return Moment(step.at, decided, str(step.detail or ""))
        case "DECISION" | "GATE":
            title = f"{channel} was refused".strip()
            links = _entry_links(viewer, step.entry, stopped_by)
            return Moment(step.at, title, wording.reason(result), "warn", links)
        case "ATTEMPT":
            return _attempt(step)
        case "WAIT":
            until = f" until {step.until}" if step.until else ""
            return Moment(step.at, "Waited", f"{wording.waiting(result)}{until}")
    title = "Next provider account" if step.step == "FAILOVER" else "Next channel"
    return Moment(step.at, title, wording.reason(result), "warn")


def _attempt(step: TraceStep) -> Moment:
    outcome = wording.OUTCOMES.get(step.result or "", "no answer yet")
    details = [outcome, step.detail or ""]
    if step.latency_ms is not None:
        details.append(f"{step.latency_ms} ms")
    if step.provider_id:
        details.append(f"its id: {step.provider_id}")
    colour = {"ACCEPTED": "good", None: "info"}.get(step.result, "bad")
    return Moment(step.at, f"Handed to {step.provider}", ", ".join(filter(None, details)), colour)


_COLOURS = {
    "delivered": "good", "open": "good", "click": "good", "sent": "good",
    "bounced": "bad", "complained": "bad", "failed": "bad",
    "unsubscribed": "warn", "expired": "warn", "cancelled": "muted",
}  # fmt: skip


def _of_event(event: MessageEvent) -> Moment:
    detail = event.detail or {}
    parts = [wording.reason(str(detail["reason"])) if detail.get("reason") else ""]
    parts.append("by a machine" if detail.get("machine") else "")
    title = wording.EVENTS.get(event.type, event.type)
    text = ", ".join(filter(None, parts))
    return Moment(event.at, title, text, _COLOURS.get(event.type, "muted"))


def _entry_links(viewer: Viewer, entry: str | None, stopped_by: Entries) -> list[Link]:
    if entry and (suppression := stopped_by.suppressions.get(entry)):
        day = wording.day(suppression.created_at, viewer.zone)
        words = wording.SUPPRESSED_BY[suppression.reason]
        return [Link(f"{day}: {words}", suppression_url(viewer, suppression.pk))]
    if entry and (decided := stopped_by.consent.get(entry)):
        day = wording.day(decided.occurred_at, viewer.zone)
        words = decided.get_status_display()
        url = reverse("console:consent_entry", args=[viewer.organization_id, entry])
        return [Link(f"{words} on {day}", url)]
    return []
