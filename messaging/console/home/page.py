"""The operations home of one organization, chosen in the address or the one looked at last."""

from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse

from messaging.console import access
from messaging.console.access import Viewer, viewer_of
from messaging.console.home import channels, needs
from messaging.console.home.charts import Chart, success
from messaging.policy import organization_policy
from messaging.reports import checks, health
from messaging.statistics import figures
from messaging.statistics.figures import HourFigures, Statistics
from rme.core.db import clock
from rme.tenants.access.roles import Permission, organizations_for
from rme.tenants.organizations import latest

ORGANIZATIONS = 50
"""Findings are searched in at most this many organizations."""
BEHIND_SECONDS = 300
"""Figures that end earlier than this are called late."""
STATUSES = {
    checks.OK: ("Sends", "good"),
    checks.DEGRADED: ("Fails often", "warn"),
    checks.DOWN: ("Fails", "bad"),
    "paused": ("Paused", "muted-status"),
    "draining": ("Draining", "muted-status"),
}


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

    The number of statements depends on no number of organizations, channels or accounts.
    """
    settings = organizations_for(request, Permission.SEE_SETTINGS).values_list("pk", "name")
    checked = dict(list(settings)[:ORGANIZATIONS])
    viewer = _viewer(request)
    values: dict[str, object] = {"title": "Home", "viewer": viewer, "checked": checked}
    state = None
    if viewer:
        test = request.GET.get("mode") == "test"
        state = health.of_organization(viewer.organization_id)
        values |= _figures(viewer, state, test=test)
    if checked:
        focused = state if viewer and viewer.organization_id in checked else None
        values["needs"] = needs.read(checked, focused)
        values["pauses"] = needs.pauses(checked)
    return values


def _viewer(request: HttpRequest) -> Viewer | None:
    """Return the person on the organization that is in focus; None without any. Raise Http404."""
    if requested := request.GET.get("organization"):
        viewer = viewer_of(request, requested)
        latest.remember(request, viewer.organization_id)
        return viewer
    organization_id = access.latest(request)
    return viewer_of(request, organization_id) if organization_id else None


def _figures(viewer: Viewer, state: health.OrganizationHealth, *, test: bool) -> dict[str, object]:
    statistics = figures.read(viewer.organization_id, test=test)
    common = {
        "organization": viewer.organization,
        "test": test,
        "backlog": channels.backlog(viewer, state.queues),
        "messages_url": reverse("console:messages", args=[viewer.organization_id]),
    }
    if statistics is None:
        return common
    return {
        **common,
        "until": statistics.until,
        "is_late": (clock.now() - statistics.until).total_seconds() > BEHIND_SECONDS,
        "spans": list(statistics.periods),
        "cards": channels.cards(viewer, statistics, test=test),
        "reasons": channels.reasons(viewer, statistics, test=test),
        "strips": [] if test else _strips(viewer, statistics, state),
    }


def _strips(
    viewer: Viewer, statistics: Statistics, state: health.OrganizationHealth
) -> list[AccountStrip]:
    """Return the strips of the organization's own accounts, in their order."""
    statuses = {(each.name, each.channel): each.status for each in state.providers}
    sees_settings = viewer.may(Permission.SEE_SETTINGS)
    hours = [HourFigures(at) for at in figures.last_hours(statistics.until)]
    strips = []
    for account in organization_policy.of(viewer.organization_id).accounts:
        if account.id is None:
            continue
        status = statuses.get((account.name, account.channel), checks.OK)
        words, colour = STATUSES[status]
        strips.append(
            AccountStrip(
                name=account.name,
                channel=account.channel,
                url=reverse("console:provider", args=[viewer.organization_id, account.id])
                if sees_settings
                else "",
                status=words,
                colour=colour,
                chart=success(statistics.accounts.get(account.id, hours), viewer.zone),
            )
        )
    return strips
