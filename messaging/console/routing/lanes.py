"""The accounts of each channel in the order in which they are tried, and the channel's backlog."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from messaging.console import access, wording
from messaging.console.access import Viewer
from messaging.console.routing import provider_kinds, routing_words
from messaging.console.routing.health_bars import Chart, success
from messaging.console.routing.lane_forms import MOST_ACCOUNTS, OrderForm, StatesForm, steps_of
from messaging.console.routing.route_form import RouteForm
from messaging.domain import attention
from messaging.domain.channels import Channel
from messaging.models import ProviderAccount
from messaging.policy import connection_check
from messaging.reports import account_hour, backlog
from messaging.reports.account_hour import AccountHour
from messaging.statistics import figures
from messaging.statistics.figures import HourFigures
from rme.core.db import clock
from rme.tenants.access.roles import Permission
from rme.tenants.models import Organization

State = ProviderAccount.State


@dataclass(frozen=True, slots=True)
class AccountCard:
    """An account in its lane."""

    row: ProviderAccount
    url: str
    kind: str
    step: int
    """Its place among the channel's priorities, from 1; accounts with the same one share."""
    share: str
    is_shared: bool
    """Another account has the same place."""
    hour: str
    health: Chart
    """Its last 24 hours."""
    checked: str
    state: tuple[str, str]
    """In words, and the name of the colour."""
    problem: str
    """A sentence about what is wrong; empty if nothing is."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A channel: its accounts in their order, and its backlog."""

    channel: Channel
    label: str
    cards: Sequence[AccountCard]
    backlog: str
    is_simulated: bool
    """It has no account, and the simulator takes what is sent."""


@access.page_for(Permission.SEE_SETTINGS)
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the lanes; a POST stores the order of one, or the state of several accounts."""
    account_rows = ProviderAccount.objects.filter(organization_id=viewer.organization_id)
    rows = list(account_rows.order_by("priority", "pk")[:MOST_ACCOUNTS])
    by_channel: defaultdict[str, list[ProviderAccount]] = defaultdict(list)
    for row in rows:
        by_channel[row.channel].append(row)
    filled: OrderForm | StatesForm | None = None
    if request.method == "POST":
        viewer.require(Permission.CHANGE_SETTINGS)
        filled = _store(request, viewer, by_channel[request.POST.get("channel", "")])
        if filled is None:
            return HttpResponseRedirect(url(viewer))
    return access.show(
        request,
        viewer,
        "routing/lanes",
        _("Providers and routing"),
        lanes=[
            _with_forms(lane, by_channel[lane.channel], filled)
            for lane in _lanes(viewer, rows, by_channel)
        ],
        kinds=provider_kinds.by_channel(),
        route_form=RouteForm(viewer),
        may_change=viewer.may(Permission.CHANGE_SETTINGS),
    )


def url(viewer: Viewer) -> str:
    """Return the address of the lanes of a person's organization."""
    return reverse("console:providers", args=[viewer.organization_id])


def account_url(row: ProviderAccount) -> str:
    """Return the address of an account's page."""
    return reverse("console:provider", args=[row.organization_id, row.pk])


def _store(
    request: HttpRequest, viewer: Viewer, rows: Sequence[ProviderAccount]
) -> OrderForm | StatesForm | None:
    """Store the order of a lane, or the state of accounts; return the form if it is not valid."""
    if not rows:
        messages.error(request, _("Nothing was saved: the channel has no account."))
        return None
    form: OrderForm | StatesForm
    form = (StatesForm if "do" in request.POST else OrderForm)(rows, request.POST)
    if not form.is_valid():
        return form
    done, changed = form.store(viewer.actor)
    names = {"accounts": ", ".join(row.name for row in changed)}
    messages.success(request, done % names if changed else _("Nothing was changed."))
    return None


_Row = tuple[AccountCard, forms.BoundField, forms.BoundField]
"""An account, and the fields of its place and its weight."""


def _with_forms(
    lane: Lane, rows: Sequence[ProviderAccount], filled: OrderForm | StatesForm | None
) -> tuple[Lane, OrderForm | None, list[_Row], StatesForm | None]:
    """Return a lane with its forms: as one was sent, if it was and is not valid."""
    if not rows:
        return lane, None, [], None
    is_filled = filled is not None and filled.rows is rows
    form = filled if is_filled and isinstance(filled, OrderForm) else OrderForm(rows)
    states = filled if is_filled and isinstance(filled, StatesForm) else StatesForm(rows)
    fields = [
        (each, form[f"step_{each.row.pk}"], form[f"weight_{each.row.pk}"]) for each in lane.cards
    ]
    return lane, form, fields, states


def _lanes(
    viewer: Viewer,
    rows: Sequence[ProviderAccount],
    by_channel: defaultdict[str, list[ProviderAccount]],
) -> list[Lane]:
    sums = account_hour.read(rows)
    health = figures.read_accounts(viewer.organization_id) if rows else {}
    organization_id = viewer.organization_id
    backlogs = {
        channel: _backlog_text(count, wording.said(attention.in_words(age)))
        for channel, count, age in backlog.backlog("channel", organization_id=organization_id)
    }
    simulated = Organization.objects.filter(pk=organization_id, simulator=True).exists()
    return [
        Lane(
            channel=channel,
            label=wording.channel(channel),
            cards=_cards(viewer, by_channel[channel], sums, health),
            backlog=backlogs.get(channel, _("No messages are waiting.")),
            is_simulated=simulated and all(r.state == State.DRAFT for r in by_channel[channel]),
        )
        for channel in Channel
    ]


def _backlog_text(count: int, age: str) -> str:
    text = ngettext(
        "%(count)s message is waiting, the oldest for %(age)s.",
        "%(count)s messages are waiting, the oldest for %(age)s.",
        count,
    )
    return text % {"count": f"{count:,}", "age": age}


def _cards(
    viewer: Viewer,
    rows: Sequence[ProviderAccount],
    sums: Mapping[int, AccountHour],
    health: Mapping[int, Sequence[HourFigures]],
) -> list[AccountCard]:
    steps = steps_of(rows)
    totals: defaultdict[int, int] = defaultdict(int)
    for row in rows:
        totals[row.priority] += row.weight if row.state == State.ACTIVE else 0
    priorities = Counter(row.priority for row in rows)
    idle = [HourFigures(at) for at in figures.last_hours(clock.now())]
    return [
        AccountCard(
            row=row,
            url=account_url(row),
            kind=provider_kinds.label_of(row),
            step=steps[row.priority],
            share=_share(row, totals[row.priority]),
            is_shared=priorities[row.priority] > 1,
            hour=routing_words.hour(sums[row.pk]),
            health=success(health.get(row.pk, idle), viewer.zone),
            checked=connection_check.in_words(row),
            state=routing_words.state(row, sums[row.pk]),
            problem=wording.said(sums[row.pk].sentence),
        )
        for row in rows
    ]


def _share(row: ProviderAccount, total: int) -> str:
    """Return which share of its place an account takes while all is well."""
    if row.state != State.ACTIVE:
        return _("None")
    return f"{row.weight / total:.0%}"
