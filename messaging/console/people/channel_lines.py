"""Each channel of a person in one line: whether it reaches them, why not, and what mends it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from messaging.console import wording
from messaging.console.access import Viewer
from messaging.console.messages import explanations
from messaging.console.messages.explanations import Entries, Link
from messaging.console.people.reachability import CategoryReach, ChannelReach, Obstacle
from messaging.domain.gates import GateRefusal
from rme.core import ids
from rme.tenants.access.roles import Permission

CONSENT = "#opt_in"
"""The address of the dialog on the person's page that records consent."""

_SUPPRESSED = {
    "HARD_BOUNCE": gettext_lazy("hard-bounced on %(day)s"),
    "COMPLAINT": gettext_lazy("complained on %(day)s"),
    "STOP": gettext_lazy("answered STOP on %(day)s"),
    "UNSUBSCRIBE": gettext_lazy("unsubscribed on %(day)s"),
    "INVALID_ADDRESS": gettext_lazy("invalid address, found on %(day)s"),
    "MANUAL": gettext_lazy("suppressed by hand on %(day)s"),
}


@dataclass(frozen=True, slots=True)
class ChannelLine:
    """A channel to a person, in words. `colour` is that of its state."""

    label: str
    address: str
    state: str
    colour: str
    reason: str
    remedy: Link | None
    """What mends it, if this person may."""


def lines(
    viewer: Viewer, contact_id: str, channels: Sequence[ChannelReach], *, is_stored: bool
) -> list[ChannelLine]:
    """Return a line for each channel; at most two queries, for the entries that decided.

    `is_stored` says whether the contact is one of rme's own, which can be edited here.
    """
    entry_ids = {each.entry for channel in channels for each in channel.categories if each.code}
    decided_by = explanations.entries_of(viewer.organization_id, filter(None, entry_ids))
    return [_line(viewer, contact_id, each, decided_by, is_stored=is_stored) for each in channels]


def _line(
    viewer: Viewer,
    contact_id: str,
    channel: ChannelReach,
    decided_by: Entries,
    *,
    is_stored: bool,
) -> ChannelLine:
    words, colour = state(channel)
    if channel.obstacle:
        reason = channel.refusal
        remedy = _obstacle_remedy(viewer, contact_id, channel, is_stored=is_stored)
    else:
        reason = _reasons(viewer, channel, decided_by)
        remedy = next(_remedies(viewer, channel.categories), None)
    return ChannelLine(channel.label, channel.address, words, colour, reason, remedy)


def state(channel: ChannelReach) -> tuple[str, str]:
    """Return the state of a channel in words, and its colour."""
    if channel.obstacle:
        return _("Not reachable"), "muted"
    if not channel.reached:
        return _("Not reachable"), "bad"
    if any(each.wait_reason for each in channel.categories if each.reached):
        return _("Waiting"), "info"
    if all(each.reached for each in channel.categories):
        return _("Reachable"), "good"
    return _("Partly reachable"), "warn"


def _reasons(viewer: Viewer, channel: ChannelReach, decided_by: Entries) -> str:
    """Return which categories don't reach the person and why, equal reasons together."""
    by_reason: dict[str, list[str]] = {}
    for each in channel.categories:
        if reason := _reason(viewer, each, decided_by):
            by_reason.setdefault(reason, []).append(wording.category(each.category))
    if not by_reason:
        return _("All categories.")
    parts = []
    for reason, names in by_reason.items():
        whom = _("All categories") if len(names) == len(channel.categories) else ", ".join(names)
        parts.append(_("%(categories)s: %(reason)s.") % {"categories": whom, "reason": reason})
    return " ".join(parts)


def _reason(viewer: Viewer, reach: CategoryReach, decided_by: Entries) -> str:
    """Return why messages of a category don't arrive, or wait."""
    if reach.reached:
        return reach.wait_reason
    entry = reach.entry or ""
    if suppression := decided_by.suppressions.get(entry):
        day = wording.day(suppression.created_at, viewer.zone)
        return _SUPPRESSED[suppression.reason] % {"day": day}
    if decided := decided_by.consent.get(entry):
        source = wording.source(decided.source)
        day = wording.day(decided.occurred_at, viewer.zone)
        return _("opted out %(source)s on %(day)s") % {"source": source, "day": day}
    return _("never opted in") if reach.code == GateRefusal.NO_CONSENT else reach.refusal


def _obstacle_remedy(
    viewer: Viewer, contact_id: str, channel: ChannelReach, *, is_stored: bool
) -> Link | None:
    organization_id = viewer.organization_id
    if channel.obstacle is Obstacle.ADDRESS and is_stored and viewer.may_change_people:
        url = reverse("console:contact_edit", args=[organization_id, contact_id])
        return Link(_("Add address"), url)
    if channel.obstacle is Obstacle.ACCOUNT and viewer.may(Permission.CHANGE_SETTINGS):
        return Link(_("Add a provider"), reverse("console:providers", args=[organization_id]))
    return None


def _remedies(viewer: Viewer, categories: Iterable[CategoryReach]) -> Iterator[Link]:
    """Yield what mends the channel, the most important first."""
    by_code: Mapping[str, CategoryReach] = {each.code: each for each in categories if each.code}
    suppressed = by_code.get(GateRefusal.SUPPRESSED)
    if suppressed and viewer.may_change_people:
        suppression_id = ids.parse(suppressed.entry or "")
        if isinstance(suppression_id, UUID):
            yield explanations.lift_link(viewer, suppression_id)
    if GateRefusal.NO_CONSENT in by_code and viewer.may_change_people:
        yield Link(_("Record consent"), CONSENT)
    if any(each.is_paused for each in categories) and viewer.may_operate:
        yield Link(_("Open pauses"), reverse("admin:messaging_pause_changelist"))
