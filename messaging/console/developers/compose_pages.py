"""A page that composes a call of the API and shows it as curl, Python and TypeScript.

It sends nothing and stores nothing. The form is checked by the schema that the call is parsed by.
"""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from messaging.console import access
from messaging.console.access import Viewer
from messaging.console.developers import operations, snippets
from messaging.console.developers.operations import OPERATIONS, Json, Operation
from messaging.console.developers.snippets import Composed
from rme.core import errors
from rme.core.http.parsing import parse
from rme.tenants.access.roles import Permission

LONG = frozenset({"content.text", "content.html"})
"""Fields of several lines."""
PAIRS_HELP = _("One pair on each line, such as note = Hello.")


class PairsField(forms.CharField):
    """An object whose values are texts: a line each, `name = value`."""

    widget = forms.Textarea(attrs={"rows": 3})

    def prepare_value(self, value: object) -> object:
        if isinstance(value, dict):
            return "\n".join(f"{name} = {text}" for name, text in value.items())
        return value

    def to_python(self, value: object) -> Any:
        """Return the object. Raise ValidationError for a line without a name."""
        pairs: dict[str, str] = {}
        for line in str(value or "").splitlines():
            name, sign, text = line.partition("=")
            if line.strip() and (not sign or not name.strip()):
                raise forms.ValidationError(PAIRS_HELP)
            if sign:
                pairs[name.strip()] = text.strip()
        return pairs


class ComposeForm(forms.Form):
    """The parameters of a call, and the fields of its body under their own names."""

    def __init__(self, operation: Operation, data: Mapping[str, str] | None) -> None:
        super().__init__(data, label_suffix="")
        self.operation = operation
        example = operations.example_of(operation)
        for name, value in operation.parameters.items():
            self.fields[name] = forms.CharField(initial=value, label=name)
        for path in operation.fields:
            default = operations.value_at(example, path)
            self.fields[path] = _field(path, operations.field_schema(operation, path), default)

    def compose(self) -> Composed | None:
        """Return the call, or None: then the form says what is wrong with which field."""
        if not self.is_valid():
            return None
        call = composed(self.operation, self.cleaned_data)
        if self.operation.body is not None:
            try:
                parse(self.operation.body, call.body)
            except errors.InvalidPayload as error:
                for detail in error.details:
                    name = detail.field if detail.field in self.fields else None
                    self.add_error(
                        name, detail.message if name else f"{detail.field}: {detail.message}"
                    )
                return None
        return call


def composed(operation: Operation, values: Mapping[str, Any]) -> Composed:
    """Return a call with these values; those of the body that are empty are left out."""
    parameters = {name: values[name] for name in operation.parameters}
    if operation.body is None:
        return Composed(operation, parameters, None)
    body: Json = {}
    for path in operation.fields:
        if (value := values.get(path)) not in (None, "", {}):
            operations.put(body, path, value)
    return Composed(operation, parameters, body)


def _field(path: str, schema: Json, initial: object) -> forms.Field:
    """Return the form's field for a field of a body."""
    common: dict[str, Any] = {
        "required": False,
        "label": path,
        "initial": initial,
        "help_text": schema.get("description", ""),
    }
    if choices := operations.choices_of(schema):
        return forms.ChoiceField(choices=[("", "–"), *((each, each) for each in choices)], **common)
    if schema.get("type") == "object":
        return PairsField(**{**common, "help_text": PAIRS_HELP})
    if schema.get("type") == "integer":
        return forms.IntegerField(**common)
    if path in LONG:
        return forms.CharField(widget=forms.Textarea(attrs={"rows": 4}), **common)
    return forms.CharField(**common)


@access.page_for(Permission.SEE_SETTINGS)
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the form of a call with its examples; a POST shows it with typed values."""
    is_posted = request.method == "POST"
    data = request.POST if is_posted else request.GET
    operation = operations.by_key(data.get("operation", ""))
    form = ComposeForm(operation, request.POST if is_posted else None)
    if is_posted:
        call = form.compose()
    else:
        call = composed(operation, {name: form[name].initial for name in form.fields})
    writers = (
        ("curl", snippets.curl),
        ("Python", snippets.python),
        ("TypeScript", snippets.typescript),
    )
    return access.show(
        request,
        viewer,
        "developers/compose",
        gettext("Compose a request"),
        operations=OPERATIONS,
        operation=operation,
        form=form,
        texts=[(name, write(call)) for name, write in writers] if call else [],
    )
