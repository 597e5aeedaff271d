"""The input of a duration: a number and its unit."""

from typing import Any

from django import forms
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

UNITS = {1: _("seconds"), 60: _("minutes"), 3600: _("hours"), 86_400: _("days")}
"""The units by their seconds."""


class DurationInput(forms.Widget):
    """A number and its unit. Its value is in seconds, as the field stores it."""

    def render(
        self, name: str, value: Any, attrs: Any = None, renderer: object = None
    ) -> SafeString:
        """Return the inputs, with the largest unit that makes a whole number."""
        unit = 1
        if str(value).isdecimal() and int(value):
            unit = max(each for each in UNITS if int(value) % each == 0)
            value = int(value) // unit
        values = {"name": name, "value": "" if value is None else value, "unit": unit}
        attributes = self.build_attrs(self.attrs, attrs)
        context = {**values, "units": UNITS.items(), "attributes": attributes}
        return render_to_string("admin/rme/duration.html", context)

    def value_from_datadict(self, data: Any, files: Any, name: str) -> str | None:
        """Return the duration in seconds; what is no number stays for the field to refuse."""
        number: str | None = data.get(name)
        unit = data.get(f"{name}_unit", "1")
        if number and number.isdecimal() and unit.isdecimal() and int(unit) in UNITS:
            return str(int(number) * int(unit))
        return number
