"""Inputs of an organization's settings: zone, language, country from lists; a colour by sight."""

from typing import Any

from django import forms
from django.forms.utils import flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from rme.core import zones
from rme.tenants.organizations import languages


class LanguagesInput(forms.SelectMultiple):
    """Languages to remove from the chosen ones by their boxes, and a field to add others by name
    or code. A script puts a list in its place: the one of the form's field `language`.
    """

    def render(
        self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: object = None
    ) -> SafeString:
        """Return the boxes and the field."""
        shown = {
            "class": "c-input c-auto",
            "aria-label": gettext("Add a language"),
            "placeholder": gettext("German, fr"),
        }
        box = format_html('<label class="c-check"><input type="checkbox" name="{}" ', name)
        return format_html(
            '<div class="c-form">{}<div class="c-bar"><input{}>'
            '<button type="button" class="c-button" data-adds="language" hidden>{}</button>'
            "</div></div>",
            format_html_join(
                "",
                '{}value="{}" checked> {}</label>',
                ((box, code, languages.name(code)) for code in value or ()),
            ),
            flatatt({"type": "text", "name": name, **shown, **(attrs or {})}),
            gettext("Add language"),
        )

    def value_from_datadict(self, data: Any, files: object, name: str) -> list[str]:
        """Return the codes of the ticked and the typed languages; an unknown one as it is."""
        codes = {label.casefold(): code for code, label in languages.choices()}
        typed = [part.strip() for text in data.getlist(name) for part in text.split(",")]
        return sorted({codes.get(part.casefold(), part) for part in typed if part})


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
    if "languages" in form.fields:
        field = form.fields["languages"]
        form.fields["languages"] = forms.MultipleChoiceField(
            choices=languages.choices(),
            required=False,
            label=field.label,
            help_text=field.help_text,
            widget=LanguagesInput(),
        )
    if "brand_color" in form.fields:
        picker = forms.TextInput({"type": "color", "class": "c-color"})
        form.fields["brand_color"].widget = picker
