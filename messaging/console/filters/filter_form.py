"""The form of a list's filters, whose fields stand in the page's address."""

from collections.abc import Mapping
from urllib.parse import urlencode

from django import forms


class FilterForm(forms.Form):
    """Filters that combine. An empty field matches all; one with an error filters by nothing."""

    def __init__(self, data: Mapping[str, str]) -> None:
        super().__init__(data, auto_id="filter_%s", label_suffix="")

    @property
    def query(self) -> str:
        """Return the filters that are set as a query string."""
        return urlencode({name: self.data[name] for name in self.fields if self.data.get(name)})


def search_field(placeholder: str, label: str | None = None) -> forms.CharField:
    """Return a field for the text of a search."""
    widget = forms.TextInput(attrs={"type": "search", "placeholder": placeholder})
    return forms.CharField(required=False, max_length=320, label=label, widget=widget)
