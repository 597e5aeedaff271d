"""The form below a dry run: what replaces the cells that were refused, by reason and value."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from django import forms
from django.forms import BoundField
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from rme.tenants.imports.mending import VALUES, Mends, RejectionReason, digest

CellProblem = Callable[[str, str], str]
"""Returns what is wrong with a cell of a column, or an empty text."""


class ReasonRow(NamedTuple):
    """A reason with the fields that replace its cells."""

    reason: RejectionReason
    fields: Sequence[BoundField]
    empty: BoundField | None


class MendForm(forms.Form):
    """A field for each refused value, or one for all, and a box that empties the cells.

    The fields are named by position, so `seen` names the reasons that the page showed.
    """

    seen = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(
        self,
        reasons: Sequence[RejectionReason],
        optional: Collection[str],
        problem: CellProblem,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            data, auto_id="mend_%s", label_suffix="", initial={"seen": digest(reasons)}
        )
        self.reasons, self.problem = reasons, problem
        for number, reason in enumerate(reasons):
            if reason.is_of_row:
                continue
            for place, label in enumerate(_labels(reason)):
                self.fields[f"use_{number}_{place}"] = forms.CharField(
                    label=label,
                    required=False,
                    max_length=1000,
                    widget=forms.TextInput(attrs={"autocomplete": "off"}),
                )
            if reason.column in optional and any(value for value, _ in reason.values):
                label = _("Leave %(column)s empty") % {"column": reason.label}
                self.fields[f"empty_{number}"] = forms.BooleanField(label=label, required=False)

    @property
    def is_outdated(self) -> bool:
        """Return whether the posted values belong to other reasons than those of now."""
        if seen := self.data.get("seen"):
            return bool(seen != self.initial["seen"])
        return any(self.data.get(name) for name in self.fields)

    def rows(self) -> Iterator[ReasonRow]:
        """Yield the reasons, each with its fields."""
        for number, reason in enumerate(self.reasons):
            names = [name for name in self.fields if name.startswith(f"use_{number}_")]
            empty = f"empty_{number}"
            box = self[empty] if empty in self.fields else None
            yield ReasonRow(reason, [self[name] for name in names], box)

    def clean(self) -> dict[str, Any]:
        """Check the values as the cells that they become."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        for name, value in list(cleaned.items()):
            if name.startswith("use_") and value:
                reason = self.reasons[int(name.split("_")[1])]
                if problem := self.problem(reason.column, value):
                    self.add_error(name, f"{problem[:1].upper()}{problem[1:]}.")
        return cleaned

    @property
    def mends(self) -> Mends:
        """Return what a valid form replaces."""
        by_reason: list[tuple[str, str, str]] = []
        by_value: list[tuple[str, str, str, str]] = []
        for number, reason in enumerate(self.reasons):
            if self.cleaned_data.get(f"empty_{number}"):
                by_reason.append((reason.column, reason.text, ""))
            for place, value in enumerate(_values(reason)):
                new = self.cleaned_data.get(f"use_{number}_{place}")
                if new and value is None:
                    by_reason.append((reason.column, reason.text, new))
                elif new and value is not None:
                    by_value.append((reason.column, reason.text, value, new))
        return Mends(by_reason, by_value)


def _values(reason: RejectionReason) -> list[str | None]:
    """Return the values to replace one by one; None stands for all of them."""
    if 0 < reason.different <= VALUES:
        return [value for value, _ in reason.values]
    return [None] if reason.different else []


def _labels(reason: RejectionReason) -> list[str]:
    """Return what stands before each field: the value and its rows."""
    if len(reason.values) == 1 and not reason.values[0][0]:
        text = ngettext(
            "Use for %(column)s in %(rows)s row",
            "Use for %(column)s in all %(rows)s rows",
            reason.rows,
        )
        return [text % {"column": reason.label, "rows": f"{reason.rows:,}"}]
    return [
        _for_all(reason.rows) if value is None else _instead_of(value, times)
        for value, times in zip(
            _values(reason), (times for _value, times in [*reason.values, ("", 0)]), strict=False
        )
    ]


def _for_all(rows: int) -> str:
    return _("Use for all %(rows)s rows") % {"rows": f"{rows:,}"}


def _instead_of(value: str, rows: int) -> str:
    text = ngettext(
        "Instead of %(value)s (%(rows)s row)", "Instead of %(value)s (%(rows)s rows)", rows
    )
    return text % {"value": value or _("an empty cell"), "rows": f"{rows:,}"}
