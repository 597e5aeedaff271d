"""Home of one organization, chosen in the address or the one looked at last."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from messaging.console import access, wording
from messaging.console.access import Viewer, viewer_of
from messaging.console.home import channels, needs
from messaging.console.home.channels import Lists
from messaging.console.home.needs import Need
from messaging.console.routing.health_bars import Chart, success
from messaging.console.routing.routing_words import SENDING
from messaging.domain.attention import AccountStatus
from messaging.policy import organization_policy
from messaging.reports import checks, health, open_tasks
from messaging.statistics import figures
from messaging.statistics.figures import HourFigures, Statistics
from rme.core.db import clock
from rme.tenants.access.roles import Permission, held_permissions, organizations_for
from rme.tenants.organizations import latest

ORGANIZATIONS = 50
"""Findings are searched in at most this many organizations."""
BEHIND_SECONDS = 300
"""Figures that end earlier than this are called late."""


@dataclass(frozen=True, slots=True)
class AccountStrip:
    """A provider account: whether it sends now, and how its last hours were."""

    name: str
    channel: str
    url: str
    status: str
    colour: str
    chart: Chart


def context(request: HttpRequest) -> dict[str, object]:
    """Return the template context: figures for who may see messages, needs for who sees settings.
    `checked` is the id of the organization that is checked for needs, or None.

    The number of statements depends on no number of organizations, channels or accounts.
    """
    settings = organizations_for(request, Permission.SEE_SETTINGS).values_list("pk", "name")
    checked = dict(list(settings)[:ORGANIZATIONS])
    viewer = _viewer(request)
    values: dict[str, object] = {"viewer": viewer, "checked": None}
    if viewer:
        state = health.of_organization(viewer.organization_id)
        values |= _figures(request, viewer, state)
        if viewer.organization_id in checked:
            problems = _needs(viewer, state)
            words, colour = _state(problems)
            values |= {
                "checked": viewer.organization_id,
                "needs": problems,
                "elsewhere_needs": needs.elsewhere(checked, viewer.organization_id),
                "state": words,
                "state_colour": colour,
            }
    elif reviewed := organizations_for(request, Permission.SEE_TEMPLATES)[:ORGANIZATIONS]:
        organization_ids = [each.pk for each in reviewed]
        values["needs"] = needs.of_organization(
            open_tasks.reviews(organization_ids), frozenset({Permission.SEE_TEMPLATES})
        )
    return values


def _viewer(request: HttpRequest) -> Viewer | None:
    """Return the person on the organization that is in focus; None without any. Raise Http404."""
    organization_id = request.GET.get("organization") or access.latest(request)
    if not organization_id:
        return None
    viewer = viewer_of(request, organization_id)
    latest.remember(request, viewer.organization_id)
    return viewer


def _needs(viewer: Viewer, state: health.OrganizationHealth) -> list[Need]:
    """Return what needs attention, the most harmful first."""
    permissions = held_permissions(viewer.user, viewer.organization_id)
    together = [
        *needs.of_deployment(checks.run(), viewer.organization_id),
        *needs.of_organization(state.findings, permissions),
    ]
    return sorted(together, key=lambda need: (not need.severe, need.is_note))


def _state(problems: Sequence[Need]) -> tuple[str, str]:
    """Return whether everything is all right, in a sentence, and the name of its colour."""
    if severe := sum(need.severe for need in problems):
        text = ngettext(
            "%(count)s problem stops or delays messages.",
            "%(count)s problems stop or delay messages.",
            severe,
        )
        return text % {"count": severe}, "bad"
    if warnings := sum(not need.is_note for need in problems):
        text = ngettext(
            "%(count)s thing needs attention.", "%(count)s things need attention.", warnings
        )
        return text % {"count": warnings}, "warn"
    return _("Everything is working."), "good"


def _figures(
    request: HttpRequest, viewer: Viewer, state: health.OrganizationHealth
) -> dict[str, object]:
    test = request.GET.get("mode") == "test"
    span = request.GET.get("span", "")
    span = span if span in figures.SPANS else next(iter(figures.SPANS))
    organization_id = viewer.organization_id
    statistics = figures.read(organization_id, test=test, hours=figures.SPANS[span])
    common = {
        "organization": viewer.organization,
        "test": test,
        "span": span,
        "spans": channels.SPANS.items(),
        "messages_url": reverse("console:messages", args=[organization_id]),
    }
    if statistics is None:
        return common
    lists = Lists(viewer, statistics.span, test)
    return {
        **common,
        "since": wording.minute(statistics.span.start, viewer.zone),
        "until": wording.minute(statistics.span.end, viewer.zone),
        "is_late": (clock.now() - statistics.span.end).total_seconds() > BEHIND_SECONDS,
        "tiles": channels.tiles(lists, statistics, [] if test else state.queues),
        "rows": channels.rows(lists, statistics),
        "reasons": channels.reasons(lists, statistics),
        "strips": [] if test else _strips(viewer, statistics, state),
    }


def _strips(
    viewer: Viewer, statistics: Statistics, state: health.OrganizationHealth
) -> list[AccountStrip]:
    """Return the strips of the organization's own accounts, in their order."""
    statuses = {(each.name, each.channel): each.status for each in state.providers}
    sees_settings = viewer.may(Permission.SEE_SETTINGS)
    hours = [HourFigures(at) for at in figures.last_hours(statistics.span.end)]
    strips = []
    for account in organization_policy.of(viewer.organization_id).accounts:
        if account.id is None:
            continue
        words, colour = SENDING[statuses.get((account.name, account.channel), AccountStatus.OK)]
        strips.append(
            AccountStrip(
                name=account.name,
                channel=wording.channel(account.channel),
                url=reverse("console:provider", args=[viewer.organization_id, account.id])
                if sees_settings
                else "",
                status=str(words),
                colour=colour,
                chart=success(statistics.accounts.get(account.id, hours), viewer.zone),
            )
        )
    return strips
