"""The form of a list's filters, whose fields stand in the page's address."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple
from urllib.parse import urlencode

from django import forms
from django.forms import BoundField
from django.utils.timezone import get_current_timezone
from django.utils.translation import gettext_lazy as _

from messaging.console import wording


class Chip(NamedTuple):
    """A filter that is set, in words, and the query without it."""

    label: str
    text: str
    query: str
    error: bool = False


class FilterForm(forms.Form):
    """Filters that combine. An empty field matches all; one with an error filters by nothing."""

    search_name: ClassVar[str] = ""
    """The field that stands in the line itself, for what people search most; empty: none."""

    def __init__(self, data: Mapping[str, str]) -> None:
        super().__init__(data, auto_id="filter_%s", label_suffix="")

    def offer(self, name: str, choices: Sequence[tuple[str, Any]]) -> None:
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

    @property
    def search(self) -> BoundField | None:
        """Return the field that stands in the line itself."""
        return self[self.search_name] if self.search_name in self.fields else None

    @property
    def menu(self) -> list[BoundField]:
        """Return the fields of the menu *Filter*."""
        return [field for field in self if field.name != self.search_name]

    @property
    def menu_errors(self) -> bool:
        """Return whether a field of the menu has an error."""
        return bool(self.errors.keys() - {self.search_name})

    @property
    def chips(self) -> list[Chip]:
        """Return the filters that are set, but for the search, whose field shows it."""
        return [
            Chip(label, text, self._without(name), name in self.errors)
            for name, label, text in self._words()
            if name != self.search_name
        ]

    @property
    def in_words(self) -> str:
        """Return the filters that are set as a text; empty without any."""
        return ", ".join(f"{label}: {text}" for _name, label, text in self._words())

    def _words(self) -> Iterator[tuple[str, str, str]]:
        """Yield the name, label and value of each filter that is set, in words."""
        for name, text in self.typed.items():
            yield name, str(self[name].label), self.value_in_words(name, text)

    def value_in_words(self, name: str, text: str) -> str:
        """Return what was typed into a field as people say it."""
        field = self.fields[name]
        if choices := getattr(field.widget, "choices", ()):
            return {str(value): str(label) for value, label in choices}.get(text, text)
        moment = self.cleaned_data.get(name) if self.is_valid() or name not in self.errors else None
        if isinstance(field, MomentField) and moment:
            return wording.minute(moment, get_current_timezone())
        return text

    def _without(self, name: str) -> str:
        return urlencode({key: text for key, text in self.typed.items() if key != name})

    def valid_values(self) -> dict[str, Any]:
        """Return the values of the fields that are set and valid."""
        self.is_valid()
        return {name: value for name, value in self.cleaned_data.items() if value}


def search_field(placeholder: Any, label: Any = None) -> forms.CharField:
    """Return a field for the text of a search."""
    widget = forms.TextInput(attrs={"type": "search", "placeholder": placeholder})
    return forms.CharField(required=False, max_length=320, label=label, widget=widget)


def person_field(label: Any = None) -> forms.CharField:
    """Return a field for the search of a person."""
    return search_field(_("Email, phone, name or id"), label or _("Person"))


class MomentField(forms.DateTimeField):
    """A day and a time, as the browser's own field for them gives it."""

    widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
    input_formats = ("%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")
