"""Inputs of an organization's settings: zone, language, country from lists; a colour by sight."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.forms.utils import flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from rme.core import zones
from rme.tenants.organizations import languages


class LongSelect(forms.Select):
    """A choice among hundreds, in a third of the HTML that Django writes for it."""

    def render(
        self, name: str, value: Any, attrs: Any = None, renderer: object = None
    ) -> SafeString:
        """Return the list. A stored value that isn't offered stands first."""
        attributes = self.build_attrs(self.attrs, {"name": name, **(attrs or {})})
        chosen = "" if value is None else str(value)
        offered = [(str(code), str(label)) for code, label in self.choices]
        if chosen and chosen not in dict(offered):
            offered.insert(0, (chosen, chosen))
        options = format_html_join("", "<option{}{}>{}", _options(offered, chosen))
        return format_html("<select{}>{}</select>", flatatt(attributes), options)


def _options(
    choices: Sequence[tuple[str, str]], chosen: str
) -> list[tuple[SafeString, SafeString, str]]:
    return [
        (
            flatatt({"value": value} if value != label else {}),
            flatatt({"selected": value == chosen}),
            label,
        )
        for value, label in choices
    ]


def offer_settings(form: forms.BaseForm) -> None:
    """Let the fields of an organization's form be chosen instead of typed."""
    lists = {
        "zone": [("UTC", "UTC"), *((zone, zone) for zone in zones.choices())],
        "language": languages.choices(),
        "region": languages.countries(),
    }
    for name, choices in lists.items():
        if name in form.fields:
            form.fields[name].widget = LongSelect({"class": "c-input c-auto"}, choices)
    if "brand_color" in form.fields:
        picker = forms.TextInput({"type": "color", "class": "c-color"})
        form.fields["brand_color"].widget = picker
