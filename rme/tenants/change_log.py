"""Entries of the admin's log: each value before and after a change, with secrets redacted."""

import json
from collections.abc import Iterable
from typing import Any

from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model
from django.forms import BaseForm

REDACTED = "…"
SECRETS = frozenset(
    {
        "client_secret",
        "credentials",
        "digest",
        "password",
        "password1",
        "password2",
        "token",
        "token_digest",
    }
)
"""Columns and form fields that are secret on every page; a page may add others."""

Values = dict[str, list[str]]
"""By field, the value before and after."""


def _text(value: object) -> str:
    return "" if value is None else str(value)[:500]


def of_form(form: BaseForm, secrets: frozenset[str]) -> Values:
    """Return the values that a form changed."""
    return {
        name: [REDACTED, REDACTED]
        if name in secrets | SECRETS
        else [_text(form.initial.get(name)), _text(form.cleaned_data.get(name))]
        for name in form.changed_data
    }


def log_deletions(
    user_id: Any, rows: Iterable[Model], secrets: frozenset[str], reason: str = ""
) -> None:
    """Log the deletion of rows, with their values: one statement."""
    LogEntry.objects.bulk_create(
        LogEntry(
            user_id=user_id,
            content_type_id=ContentType.objects.get_for_model(row, for_concrete_model=False).pk,
            object_id=row.pk,
            object_repr=str(row)[:200],
            action_flag=DELETION,
            change_message=json.dumps(_deletion(row, secrets | SECRETS, reason)),
        )
        for row in rows
    )


def _deletion(row: Model, secrets: frozenset[str], reason: str) -> list[dict[str, object]]:
    values: Values = {
        field.name: [REDACTED if field.name in secrets else _text(getattr(row, field.attname)), ""]
        for field in row._meta.concrete_fields
    }
    message: list[dict[str, object]] = [
        {"deleted": {"name": str(row._meta.verbose_name), "object": str(row)}},
        {"values": values},
    ]
    return [*message, {"reason": reason}] if reason else message


def log_change(user_id: int, row: Model, values: Values, reason: str) -> None:
    """Log a change of a row that no form made, with its values and its reason."""
    message: list[dict[str, object]] = [{"values": values}, {"reason": reason}]
    LogEntry.objects.log_actions(
        user_id=user_id,
        queryset=[row],
        action_flag=CHANGE,
        change_message=message,
        single_object=True,
    )


def describe(entry: LogEntry) -> list[str]:
    """Return a log entry as lines for people, like `name: Ada → Grace`."""
    try:
        parts = json.loads(entry.change_message or "[]")
    except ValueError:
        return []
    lines = []
    for part in parts if isinstance(parts, list) else []:
        lines += [
            f"{name}: {before or '–'} → {after or '–'}"
            for name, (before, after) in part.get("values", {}).items()
        ]
        if "reason" in part:
            lines.append(f"reason: {part['reason']}")
    return lines
