"""A form field for JSON."""

from typing import Any

import orjson
from django import forms
from django.forms.fields import InvalidJSONInput

from rme.core.errors import InvalidPayload
from rme.core.http.parsing import refuse_deep, refuse_many_values, refuse_nul


class JsonField(forms.JSONField):
    """A JSON field; what Python cannot parse or PostgreSQL cannot store is an error at the field.

    That is: deep nesting, long numbers, infinity, half of a surrogate pair, NUL.
    """

    def to_python(self, value: object) -> Any:
        if isinstance(value, str) and value not in self.empty_values:
            try:
                text = value.encode()
                refuse_many_values(text)
                read = orjson.loads(text)
                refuse_deep(read)
                refuse_nul(read)
            except (UnicodeEncodeError, orjson.JSONDecodeError, InvalidPayload):
                message = self.error_messages["invalid"]
                raise forms.ValidationError(message, "invalid", {"value": value[:100]}) from None
        return super().to_python(value)

    def prepare_value(self, value: object) -> Any:
        """Return the text of a value; nothing is an empty field."""
        return "" if value is None else super().prepare_value(value)

    def bound_data(self, data: object, initial: object) -> object:
        """Return the typed text, to show it again with its error."""
        if not self.disabled and isinstance(data, str):
            try:
                self.to_python(data)
            except forms.ValidationError:
                return InvalidJSONInput(data)
        return super().bound_data(data, initial)
