"""Values before and after a change, with secrets redacted."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db.models import Model
from django.forms import BaseForm, PasswordInput
from django.utils.translation import gettext as _

from rme.core.db.encrypted_fields import EncryptedTextField

REDACTED = "…"
LENGTH = 500
_SECRET_NAME = re.compile(r"secret|password|token|credential|digest|private_key|api_key")

Values = Mapping[str, list[str]]
"""By field, the value before and after."""


def shown(value: object) -> str:
    """Return a value as the audit keeps it."""
    return "" if value is None else str(value)[:LENGTH]


def is_secret(name: str, secrets: Collection[str], field: object = None) -> bool:
    """Return whether a field of a form or a model is a secret: by its name, or by its kind."""
    return bool(
        name in secrets
        or _SECRET_NAME.search(name)
        or isinstance(field, EncryptedTextField)
        or isinstance(getattr(field, "widget", None), PasswordInput)
    )


def of_form(form: BaseForm, secrets: Collection[str]) -> Values:
    """Return the values that a form changed."""
    columns = _columns(form)
    return {
        name: [REDACTED, REDACTED]
        if is_secret(name, secrets, form.fields.get(name))
        or is_secret(name, secrets, columns.get(name))
        else [shown(form.initial.get(name)), shown(form.cleaned_data.get(name))]
        for name in form.changed_data
    }


def _columns(form: Any) -> dict[str, object]:
    model = getattr(getattr(form, "_meta", None), "model", None)
    return {field.name: field for field in model._meta.concrete_fields} if model else {}


def values_of(row: Model, secrets: Collection[str]) -> Values:
    """Return the values of a row that is deleted."""
    return {
        field.name: [
            REDACTED
            if is_secret(field.name, secrets, field)
            else shown(getattr(row, field.attname)),
            "",
        ]
        for field in row._meta.concrete_fields
    }


def describe(changes: Sequence[tuple[str, str, str]], reason: str = "") -> list[str]:
    """Return stored values as lines for people, like `name: Ada → Grace`."""
    lines = [f"{name}: {old or '–'} → {new or '–'}" for name, old, new in changes]
    return [*lines, _("reason: %(reason)s") % {"reason": reason}] if reason else lines
