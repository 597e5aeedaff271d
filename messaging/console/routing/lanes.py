"""The accounts of each channel in the order in which they are tried, and the channel's backlog."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.urls import reverse

from messaging import providers
from messaging.console import access
from messaging.console.access import Viewer
from messaging.console.routing import routing_words
from messaging.console.routing.route_form import RouteForm
from messaging.console.routing.routing_words import CIRCUIT_COLOURS, CIRCUITS, STATES, ChangeLine
from messaging.delivery import accounts
from messaging.domain import attention
from messaging.domain.channels import Channel
from messaging.models import CircuitChange, ProviderAccount
from messaging.policy import account_states, connection_check
from messaging.policy.account_states import RoutingPlace
from messaging.reports import account_hour, backlog
from messaging.reports.account_hour import AccountHour
from rme.tenants.access.roles import Permission
from rme.tenants.audit import Actor
from rme.tenants.models import Organization

State = ProviderAccount.State
STEP = 10
"""The distance of priorities that are stored, so that an account fits in between."""
MOST_ACCOUNTS = 500
"""The most accounts that the page shows and orders."""


@dataclass(frozen=True, slots=True)
class AccountCard:
    """An account in its lane."""

    row: ProviderAccount
    url: str
    kind: str
    step: int
    """Its place among the channel's priorities, from 1; accounts with the same one share."""
    share: str
    hour: str
    circuit: str
    circuit_colour: str
    changes: Sequence[ChangeLine]
    """The latest changes of its circuit, the latest first."""
    checked: str
    state: tuple[str, str]
    """In words, and the name of the colour."""
    problem: str
    """A sentence about what is wrong; empty if nothing is."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A channel: its accounts in their order, and its backlog."""

    channel: Channel
    cards: Sequence[AccountCard]
    backlog: str
    is_simulated: bool
    """It has no account, and the simulator takes what is sent."""


def reason_field() -> forms.CharField:
    """Return the field that asks why routing changes."""
    return forms.CharField(
        max_length=500,
        label="Why?",
        error_messages={"required": "Give a reason."},
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


class OrderForm(forms.Form):
    """The places of a lane's accounts, and why they change."""

    why = reason_field()

    def __init__(self, rows: Sequence[ProviderAccount], data: QueryDict | None = None) -> None:
        super().__init__(data, label_suffix="", auto_id=f"order_{rows[0].channel}_%s")
        self.rows, steps = rows, _steps(rows)
        for row in rows:
            self.fields[f"step_{row.pk}"] = _number(
                steps[row.priority], f"Place of {row.name}", MOST_ACCOUNTS
            )
            self.fields[f"weight_{row.pk}"] = _number(row.weight, f"Weight of {row.name}", 32767)

    def store(self, actor: Actor) -> tuple[str, Sequence[ProviderAccount]]:
        """Store the order; return what was done, and the accounts that were moved."""
        why = self.cleaned_data["why"]
        return "Stored", account_states.reorder(self.rows, self._places(), actor, why)

    def _places(self) -> dict[int, RoutingPlace]:
        """Return the places to store. An order that was not changed keeps its priorities."""
        cleaned = self.cleaned_data
        steps = {row.pk: cleaned[f"step_{row.pk}"] for row in self.rows}
        current_steps = _steps(self.rows)
        same_order = all(steps[row.pk] == current_steps[row.priority] for row in self.rows)
        ranks = {step: rank for rank, step in enumerate(sorted(set(steps.values())), 1)}
        return {
            row.pk: RoutingPlace(
                row.priority if same_order else STEP * ranks[steps[row.pk]],
                cleaned[f"weight_{row.pk}"],
            )
            for row in self.rows
        }


class StatesForm(forms.Form):
    """The accounts of a lane whose state changes together, and why. Drafts are activated alone."""

    do = forms.ChoiceField(
        choices=[(each, each) for each in (State.ACTIVE, State.PAUSED, State.DRAINING)]
    )
    accounts = forms.TypedMultipleChoiceField(
        coerce=int,
        error_messages={"required": "Choose at least one account."},
        widget=forms.CheckboxSelectMultiple,
    )
    why = reason_field()

    def __init__(self, rows: Sequence[ProviderAccount], data: QueryDict | None = None) -> None:
        super().__init__(data, label_suffix="", auto_id=f"states_{rows[0].channel}_%s")
        self.rows = rows
        field = self.fields["accounts"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [
            (row.pk, f"{row.name}: {STATES[State(row.state)][0].lower()}")
            for row in rows
            if row.state != State.DRAFT
        ]

    def store(self, actor: Actor) -> tuple[str, Sequence[ProviderAccount]]:
        """Store the state; return it in words, and the accounts."""
        state, keys = State(self.cleaned_data["do"]), self.cleaned_data["accounts"]
        chosen = [row for row in self.rows if row.pk in keys]
        account_states.change(chosen, state, actor, self.cleaned_data["why"])
        return STATES[state][0], chosen


def _number(initial: int, label: str, maximum: int) -> forms.IntegerField:
    widget = forms.NumberInput(attrs={"aria-label": label})
    return forms.IntegerField(
        min_value=1, max_value=maximum, initial=initial, label=label, widget=widget
    )


def _steps(rows: Sequence[ProviderAccount]) -> dict[int, int]:
    """Return the place of each priority, from 1."""
    return {each: step for step, each in enumerate(sorted({row.priority for row in rows}), 1)}


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
        "Providers and routing",
        lanes=[
            _with_forms(lane, by_channel[lane.channel], filled)
            for lane in _lanes(viewer, rows, by_channel)
        ],
        kinds=_kinds(viewer),
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
        messages.error(request, "Nothing was stored: the channel has no account.")
        return None
    form: OrderForm | StatesForm
    form = (StatesForm if "do" in request.POST else OrderForm)(rows, request.POST)
    if not form.is_valid():
        return form
    done, changed = form.store(viewer.actor)
    names = ", ".join(row.name for row in changed)
    messages.success(request, f"{done}: {names}." if changed else "Nothing was changed.")
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
    changes = accounts.latest_changes([row.pk for row in rows])
    organization_id = viewer.organization_id
    backlogs = {
        channel: _backlog_text(count, attention.in_words(age))
        for channel, count, age in backlog.backlog("channel", organization_id=organization_id)
    }
    simulated = Organization.objects.filter(pk=organization_id, simulator=True).exists()
    return [
        Lane(
            channel=channel,
            cards=_cards(by_channel[channel], sums, changes),
            backlog=backlogs.get(channel, "No messages are waiting."),
            is_simulated=simulated and all(r.state == State.DRAFT for r in by_channel[channel]),
        )
        for channel in Channel
    ]


def _backlog_text(count: int, age: str) -> str:
    noun = "message is" if count == 1 else "messages are"
    return f"{count:,} {noun} waiting, the oldest for {age}."


def _cards(
    rows: Sequence[ProviderAccount],
    sums: dict[int, AccountHour],
    changes: Mapping[int, Sequence[CircuitChange]],
) -> list[AccountCard]:
    steps = _steps(rows)
    totals: defaultdict[int, int] = defaultdict(int)
    for row in rows:
        totals[row.priority] += row.weight if row.state == State.ACTIVE else 0
    return [
        AccountCard(
            row=row,
            url=account_url(row),
            kind=_label(row.kind),
            step=steps[row.priority],
            share=_share(row, totals[row.priority]),
            hour=routing_words.hour(sums[row.pk]),
            circuit=CIRCUITS[sums[row.pk].circuit],
            circuit_colour=CIRCUIT_COLOURS[sums[row.pk].circuit],
            changes=routing_words.changes(changes.get(row.pk, ())),
            checked=connection_check.in_words(row),
            state=routing_words.state(row, sums[row.pk]),
            problem=sums[row.pk].sentence,
        )
        for row in rows
    ]


def _share(row: ProviderAccount, total: int) -> str:
    """Return which share of its place an account takes while all is well."""
    if row.state != State.ACTIVE:
        return "none"
    return f"{100 * row.weight / total:.0f} %"


def _label(kind: str) -> str:
    return providers.REGISTRY[kind].label if kind in providers.REGISTRY else kind


@dataclass(frozen=True, slots=True)
class KindCard:
    """A kind of account that can be added."""

    label: str
    channels: str
    url: str


def _kinds(viewer: Viewer) -> list[KindCard]:
    return [
        KindCard(
            label=each.label,
            channels=", ".join(Channel(name).label for name in sorted(each.channels)),
            url=reverse("console:new_provider", args=[viewer.organization_id, kind]),
        )
        for kind, each in providers.REGISTRY.items()
    ]
