"""The outcome of a delivery and what can be done about it, in sentences.

The facts are those of the trace (`messaging.reports.trace`), which REST answers with too; the
entries that decided are looked up for their day and their source.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

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
    asks: bool = False
    """Whether the page asks a question, which opens over the page of the link."""


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
    return entries_of(
        organization_id, {step.entry for each in traces for step in each.steps if step.entry}
    )


def entries_of(organization_id: str, texts: Iterable[str]) -> Entries:
    """Return the suppressions and consent entries with these ids, by two queries."""
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
    match row.status:
        case Status.DELIVERED:
            return _delivered(viewer, row, events), []
        case Status.BLOCKED:
            return _blocked(viewer, row, steps, stopped_by)
        case Status.ACCEPTED if row.waiting:
            words = {"reason": wording.waiting(row.waiting)}
            return _("Waiting: %(reason)s.") % words, _waiting_links(row)
        case Status.UNKNOWN if row.is_held:
            text = _("%(provider)s didn't answer, so the message may or may not have arrived.")
            return text % {"provider": row.provider}, [_manual_review(viewer)]
        case Status.FAILED | Status.EXPIRED:
            return _not_delivered(row), []
    return _under_way(viewer, row), []


def _under_way(viewer: Viewer, row: DeliveryRow) -> str:
    """Return what happens to a delivery that hasn't ended, or was ended by a person."""
    updated_at = wording.moment(row.updated_at, viewer.zone)
    match row.status:
        case Status.SENT:
            text = _("Sent to %(provider)s on %(time)s. There is no delivery receipt yet.")
            return text % {"provider": row.provider, "time": updated_at}
        case Status.SCHEDULED:
            at = row.scheduled_for or row.due_at or row.created_at
            return _("Scheduled for %(time)s.") % {"time": wording.moment(at, viewer.zone)}
        case Status.ACCEPTED:
            return _("Waiting for a worker. rme sends it within seconds.")
        case Status.SENDING:
            return _("Being sent to the provider now.")
        case Status.CANCELLED:
            return _("Cancelled on %(time)s. Nothing was sent.") % {"time": updated_at}
    text = _(
        "%(provider)s hasn't answered yet. Without a receipt, rme soon resends the message or "
        "asks you to review it."
    )
    return text % {"provider": row.provider}


def _not_delivered(row: DeliveryRow) -> str:
    reason = wording.reason(row.reason, row.detail)
    if row.status == Status.FAILED:
        return _("Failed: %(reason)s.") % {"reason": reason or _("no reason is known")}
    return _("Not sent: %(reason)s.") % {"reason": reason or _("it expired")}


def _delivered(viewer: Viewer, row: DeliveryRow, events: Sequence[MessageEvent]) -> str:
    first = {each.type: each.at for each in reversed(events)}
    sentences = [
        (_("Delivered on %(time)s."), first.get("delivered", row.updated_at)),
        (_("Opened on %(time)s."), first.get("open")),
        (_("Link clicked on %(time)s."), first.get("click")),
    ]
    return " ".join(
        text % {"time": wording.moment(at, viewer.zone)} for text, at in sentences if at
    )


def _waiting_links(row: DeliveryRow) -> list[Link]:
    if row.waiting == WaitReason.PAUSED:
        return [Link(_("Open pauses"), reverse("admin:messaging_pause_changelist"))]
    if row.waiting in (WaitReason.PROVIDER, WaitReason.RATE):
        return [Link(_("Open providers"), reverse("console:first_providers"))]
    return []


def _manual_review(viewer: Viewer) -> Link:
    page = reverse("console:messages", args=[viewer.organization_id])
    return Link(_("All in manual review"), f"{page}?status={HELD}")


def _blocked(
    viewer: Viewer, row: DeliveryRow, steps: Sequence[TraceStep], stopped_by: Entries
) -> tuple[str, list[Link]]:
    """Return why a gate stopped a delivery: by the last step that refused."""
    entry_ids = [step.entry for step in steps if step.entry and step.result == row.reason]
    entry = entry_ids[-1] if entry_ids else ""
    person = Link(_("Open person"), person_url(viewer, row.contact_id))
    category = {"category": wording.category(row.category)}
    match row.reason:
        case "SUPPRESSED":
            return _suppressed(viewer, row, entry, stopped_by, person)
        case "NO_CONSENT":
            return _unconsented(viewer, row, stopped_by.consent.get(entry)), [person]
        case "FREQUENCY_CAPPED":
            url = reverse("admin:messaging_category_changelist")
            text = _("Not sent. The frequency cap of the category %(category)s is reached.")
            return text % category, [Link(_("Open categories"), url)]
        case StatusReason.UNREACHABLE:
            return _("Not sent. The person has no address or device on these channels."), [person]
    return _not_delivered(row), [person]


def _unconsented(viewer: Viewer, row: DeliveryRow, decided: ConsentEntry | None) -> str:
    if decided is None:
        text = _("Not sent. The person never opted in to %(category)s messages.")
        return text % {"category": wording.category_noun(row.category)}
    decision = wording.decision(decided.status, decided.channel, decided.category)
    return _("Not sent. %(decision)s %(source)s on %(day)s.") % {
        "decision": decision,
        "source": wording.source(decided.source),
        "day": wording.day(decided.occurred_at, viewer.zone),
    }


def _suppressed(
    viewer: Viewer, row: DeliveryRow, entry: str, stopped_by: Entries, person: Link
) -> tuple[str, list[Link]]:
    suppression = stopped_by.suppressions.get(entry)
    if suppression is None:
        text = _("Not sent. The recipient was suppressed at that time, but isn't any more.")
        return text, [person]
    cause = _SUPPRESSED[suppression.reason] % {
        "recipient": viewer.shown(suppression.address or row.address) or _("The recipient"),
        "day": wording.day(suppression.created_at, viewer.zone),
    }
    text = _("Not sent. %(cause)s Lift the suppression to send again.") % {"cause": cause}
    if not viewer.may_change_people:
        return text, [person]
    return text, [lift_link(viewer, suppression.pk), person]


_SUPPRESSED = {
    "HARD_BOUNCE": gettext_lazy("%(recipient)s hard-bounced on %(day)s."),
    "COMPLAINT": gettext_lazy("%(recipient)s complained on %(day)s."),
    "STOP": gettext_lazy("%(recipient)s answered STOP on %(day)s."),
    "UNSUBSCRIBE": gettext_lazy("%(recipient)s unsubscribed on %(day)s."),
    "INVALID_ADDRESS": gettext_lazy("%(recipient)s was found to be invalid on %(day)s."),
    "MANUAL": gettext_lazy("%(recipient)s was suppressed by hand on %(day)s."),
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


def lift_link(viewer: Viewer, suppression_id: UUID) -> Link:
    """Return the link to the question whether to lift a suppression."""
    url = reverse("console:lift", args=[viewer.organization_id, suppression_id])
    return Link(_("Lift suppression"), url, asks=True)
