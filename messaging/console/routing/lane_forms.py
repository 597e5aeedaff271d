"""The forms of a lane: the order of its accounts, and the state of several, each with a reason."""

from collections.abc import Sequence

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from messaging.console.routing.routing_words import STATE_NOTICES, STATES
from messaging.models import ProviderAccount
from messaging.policy import account_states
from messaging.policy.account_states import RoutingPlace
from rme.tenants.audit import Actor

State = ProviderAccount.State
STEP = 10
"""The distance of priorities that are stored, so that an account fits in between."""
MOST_ACCOUNTS = 500
"""The most accounts that the page shows and orders."""


def reason_field() -> forms.CharField:
    """Return the field that asks why routing changes."""
    return forms.CharField(
        max_length=500,
        label=gettext_lazy("Reason"),
        error_messages={"required": gettext_lazy("Give a reason.")},
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


class OrderForm(forms.Form):
    """The places of a lane's accounts, and why they change."""

    why = reason_field()

    def __init__(self, rows: Sequence[ProviderAccount], data: QueryDict | None = None) -> None:
        super().__init__(data, label_suffix="", auto_id=f"order_{rows[0].channel}_%s")
        self.rows, steps = rows, steps_of(rows)
        for row in rows:
            account = {"account": row.name}
            label = _("Place of %(account)s") % account
            self.fields[f"step_{row.pk}"] = _number(steps[row.priority], label, MOST_ACCOUNTS)
            label = _("Weight of %(account)s") % account
            self.fields[f"weight_{row.pk}"] = _number(row.weight, label, 32767)

    def store(self, actor: Actor) -> tuple[str, Sequence[ProviderAccount]]:
        """Store the order; return what to say of it, and the accounts that were moved."""
        why = self.cleaned_data["why"]
        moved = account_states.reorder(self.rows, self._places(), actor, why)
        return _("Order saved: %(accounts)s."), moved

    def _places(self) -> dict[int, RoutingPlace]:
        """Return the places to store. An order that was not changed keeps its priorities."""
        cleaned = self.cleaned_data
        steps = {row.pk: cleaned[f"step_{row.pk}"] for row in self.rows}
        current_steps = steps_of(self.rows)
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
        error_messages={"required": gettext_lazy("Choose at least one account.")},
        widget=forms.CheckboxSelectMultiple,
    )
    why = reason_field()

    def __init__(self, rows: Sequence[ProviderAccount], data: QueryDict | None = None) -> None:
        super().__init__(data, label_suffix="", auto_id=f"states_{rows[0].channel}_%s")
        self.rows = rows
        field = self.fields["accounts"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [
            (row.pk, f"{row.name}: {STATES[State(row.state)][0]}")
            for row in rows
            if row.state != State.DRAFT
        ]

    def store(self, actor: Actor) -> tuple[str, Sequence[ProviderAccount]]:
        """Store the state; return what to say of it, and the accounts."""
        state, keys = State(self.cleaned_data["do"]), self.cleaned_data["accounts"]
        chosen = [row for row in self.rows if row.pk in keys]
        account_states.change(chosen, state, actor, self.cleaned_data["why"])
        return str(STATE_NOTICES[state]), chosen


def _number(initial: int, label: str, maximum: int) -> forms.IntegerField:
    widget = forms.NumberInput(attrs={"aria-label": label})
    return forms.IntegerField(
        min_value=1, max_value=maximum, initial=initial, label=label, widget=widget
    )


def steps_of(rows: Sequence[ProviderAccount]) -> dict[int, int]:
    """Return the place of each priority, from 1."""
    return {each: step for step, each in enumerate(sorted({row.priority for row in rows}), 1)}
