"""The form of a list's filters, whose fields stand in the page's address."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django import forms


class FilterForm(forms.Form):
    """Filters that combine. An empty field matches all; one with an error filters by nothing."""

    def __init__(self, data: Mapping[str, str]) -> None:
        super().__init__(data, auto_id="filter_%s", label_suffix="")

    def offer(self, name: str, choices: Sequence[tuple[str, str]]) -> None:
        """Set the choices of a field."""
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices

    @property
    def typed(self) -> dict[str, str]:
        """Return the filters that are set, as they were typed."""
        return {name: self.data[name] for name in self.fields if self.data.get(name)}

    @property
    def query(self) -> str:
        """Return the filters that are set as a query string."""
        return urlencode(self.typed)

    def valid_values(self) -> dict[str, Any]:
        """Return the values of the fields that are set and valid."""
        self.is_valid()
        return {name: value for name, value in self.cleaned_data.items() if value}


def search_field(placeholder: str, label: str | None = None) -> forms.CharField:
    """Return a field for the text of a search."""
    widget = forms.TextInput(attrs={"type": "search", "placeholder": placeholder})
    return forms.CharField(required=False, max_length=320, label=label, widget=widget)


class MomentField(forms.DateTimeField):
    """A day and a time, as the browser's own field for them gives it."""

    widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
    input_formats = ("%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")
