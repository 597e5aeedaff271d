"""The form that says what each column of a file is, and the values of columns that it lacks."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django import forms
from django.forms import BoundField
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget

from rme.core.addresses import Digits
from rme.tenants.imports import guessing, prepared
from rme.tenants.imports.mend_form import CellProblem
from rme.tenants.models import FileImport

DIGITS = [
    (
        Digits.UNSAID,
        gettext_lazy("Numbers of the organization's region; refuse those that may be foreign"),
    ),
    (Digits.NATIONAL, gettext_lazy("Numbers of the organization's region")),
    (Digits.INTERNATIONAL, gettext_lazy("Numbers with their country code, like 33612345678")),
]
Data = Mapping[str, Any] | None
"""What was posted."""
SAMPLES = 10
"""The rows that are shown, and from which columns are guessed."""


class ColumnsForm(forms.Form):
    """Which column of the list each column of a file is. A subclass knows the list's columns."""

    def __init__(
        self,
        run: FileImport,
        names: Iterable[str],
        data: Data,
        problem: CellProblem,
        *,
        has_phones: bool,
    ) -> None:
        super().__init__(data, label_suffix="")
        self.titles, self.cell_problem = run.titles or run.columns, problem
        self.samples = prepared.sample(run, SAMPLES)
        column_names = list(names)
        self.guesses = guessing.columns(self.titles, self.samples, column_names)
        if run.columns != self.titles:  # a person chose them before
            self.guesses = run.columns
        choices = [
            ("", _("Skip")),
            *((name, guessing.words(name).capitalize()) for name in column_names),
        ]
        for index, title in enumerate(self.titles):
            self.fields[f"column_{index}"] = forms.ChoiceField(
                label=title or _("Column %(number)d") % {"number": index + 1},
                choices=choices,
                required=False,
                initial=self.guesses[index],
                widget=UnfoldAdminSelectWidget(),
                help_text=self._examples(index),
            )
        if has_phones:
            self.fields["digits"] = forms.ChoiceField(
                label=_("Phone numbers without +"),
                choices=DIGITS,
                required=False,
                initial=run.digits,
                widget=UnfoldAdminSelectWidget(),
            )
        for name, field in self.fixed_fields().items():
            field.required, field.initial = False, run.fixed.get(name) or field.initial
            field.label = guessing.words(name).capitalize()
            self.fields[f"fixed_{name}"] = field

    def _examples(self, index: int) -> str:
        cells = self.cells_of(index)[:3]
        return (_("Examples: %(cells)s") % {"cells": ", ".join(cells)})[:200] if cells else ""

    def cells_of(self, index: int) -> list[str]:
        """Return what stands in a column of the first rows, without empty cells."""
        return [row[index] for row in self.samples if index < len(row) and row[index]]

    # --- what a subclass knows ------------------------------------------------------------------
    def fixed_fields(self) -> Mapping[str, forms.Field]:
        """Return a field for each column that may have one value in all rows."""
        return {}

    def problem(self) -> str:
        """Return why the file cannot be imported as chosen, or an empty text."""
        return prepared.named_twice(self.columns)

    # --- what was chosen ------------------------------------------------------------------------
    @property
    def columns(self) -> list[str]:
        """Return the name of each column, "" for those left out."""
        return [self.cleaned_data[f"column_{index}"] for index in range(len(self.titles))]

    @property
    def fixed(self) -> dict[str, str]:
        """Return the values of columns that the file doesn't have."""
        values = {name: self.cleaned_data.get(f"fixed_{name}") for name in self.fixed_fields()}
        return {name: value for name, value in values.items() if value}

    @property
    def options(self) -> dict[str, object]:
        """Return the fields of the run that were chosen besides."""
        digits = self.cleaned_data.get("digits") or Digits.UNSAID.value
        return {"digits": digits, "fixed": self.fixed}

    def clean(self) -> dict[str, Any]:
        """Check that rows can be made of the chosen columns and values."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        for name, value in self.fixed.items():
            if name in self.columns:
                text = _("The file has this column. Skip the column, or leave this empty.")
                self.add_error(f"fixed_{name}", text)
            elif problem := self.cell_problem(name, value):
                self.add_error(f"fixed_{name}", f"{problem[:1].upper()}{problem[1:]}.")
        if not self.errors and (problem := self.problem()):
            raise forms.ValidationError(problem)
        return cleaned

    # --- as the page shows it -------------------------------------------------------------------
    def column_fields(self) -> Iterator[BoundField]:
        """Yield the fields of columns and of how they are read."""
        return (field for field in self if not field.name.startswith("fixed_"))

    def fixed_values(self) -> list[BoundField]:
        """Return the fields of fixed values."""
        return [field for field in self if field.name.startswith("fixed_")]

    def fixed_in_words(self) -> list[tuple[str, str]]:
        """Return the columns with a fixed value, and the values as people read them."""
        return [
            (str(field.label), str(dict(getattr(field.field, "choices", ())).get(value, value)))
            for field in self.fixed_values()
            if (value := field.value())
        ]

    @property
    def has_fixed(self) -> bool:
        """Return whether a fixed value is filled in."""
        return any(field.value() for field in self.fixed_values())
