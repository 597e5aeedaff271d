"""Inputs of an organization's settings: zone, language, country from lists; a colour by sight."""

from typing import Any

from django import forms
from django.forms.utils import flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from rme.core import zones
from rme.tenants.organizations import languages


class LongSelect(forms.Select):
    """A select of hundreds of choices without groups.

    Django's own renders two templates for each choice: 40 ms for all languages. It also writes
    twice the HTML for zones, whose labels are their values.
    """

    def render(
        self, name: str, value: object, attrs: dict[str, Any] | None = None, renderer: object = None
    ) -> SafeString:
        """Return the element with its options."""
        selected = self.format_value(value)
        options = format_html_join(
            "",
            "<option{}{}>{}</option>",
            (
                (
                    flatatt({"value": code} if str(code) != str(label) else {}),
                    flatatt({"selected": str(code) in selected}),
                    label,
                )
                for code, label in self.choices
            ),
        )
        attributes = flatatt({"name": name, **self.build_attrs(self.attrs, attrs)})
        return format_html("<select{}>{}</select>", attributes, options)


def offer_settings(form: forms.BaseForm) -> None:
    """Let the fields of an organization's form be chosen instead of typed.

    A stored value that isn't offered stands first.
    """
    lists = {
        "zone": [("UTC", "UTC"), *((zone, zone) for zone in zones.choices())],
        "language": languages.choices(),
        "region": languages.countries(),
    }
    for name, choices in lists.items():
        if name in form.fields:
            value = str(form[name].value() or "")
            rare = [(value, value)] if value and value not in dict(choices) else []
            widget = LongSelect({"class": "c-input c-auto"}, [*rare, *choices])
            form.fields[name].widget = widget
    if "brand_color" in form.fields:
        picker = forms.TextInput({"type": "color", "class": "c-color"})
        form.fields["brand_color"].widget = picker
