"""Re-encryption of all stored secrets with the first of FIELD_KEYS, after a new key was put first.

The fields are found by their class in all models, so that none can be forgotten.
"""

from dataclasses import dataclass, field
from typing import Any

from cryptography.fernet import Fernet, InvalidToken
from django.apps import apps
from django.conf import settings
from django.db import connection, models
from django.db.models import F, TextField
from django.db.models.functions import Cast

from rme.core.db.encrypted_fields import EncryptedTextField, keyring

BATCH = 100


@dataclass
class Count:
    """How the values of one field are encrypted."""

    name: str
    """`app.Model.field`."""
    current: int = 0
    old: int = 0
    """Encrypted with an older key: `reencrypt` changes these."""
    unreadable: list[Any] = field(default_factory=list)
    """Primary keys of the rows that none of the keys decrypts."""


def encrypted_fields() -> list[tuple[type[models.Model], EncryptedTextField]]:
    """Return all encrypted fields of the project, with their models."""
    return [
        (model, each)
        for model in apps.get_models(include_auto_created=True)
        if model._meta.managed and not model._meta.proxy
        for each in model._meta.local_concrete_fields
        if isinstance(each, EncryptedTextField)
    ]


def reencrypt(*, change: bool = True) -> list[Count]:
    """Encrypt all values that have another key with the first one; return the counts by field.

    Each batch commits, so that a new run continues after an interruption. A value that is saved
    meanwhile stays as it was saved. Without `change` values are only counted.
    """
    return [_field(model, each, change) for model, each in encrypted_fields()]


def _field(model: type[models.Model], secret: EncryptedTextField, change: bool) -> Count:
    count = Count(f"{model._meta.label}.{secret.name}")
    rows = model._base_manager.annotate(stored=Cast(F(secret.name), TextField()))
    rows = rows.exclude(stored=None).exclude(stored="").order_by("pk")
    batch = list(rows.values_list("pk", "stored")[:BATCH])
    while batch:
        old = _sort(batch, count)
        if change and old:
            _replace(model, secret, old)
        batch = list(rows.filter(pk__gt=batch[-1][0]).values_list("pk", "stored")[:BATCH])
    return count


def _sort(batch: list[tuple[object, str]], count: Count) -> list[tuple[object, str, str]]:
    """Count a batch; return primary key, old and new text of the values with an older key."""
    first = Fernet(settings.FIELD_KEYS[0])
    old = []
    for key, ciphertext in batch:
        try:
            first.decrypt(ciphertext.encode())
            count.current += 1
            continue
        except InvalidToken:
            pass  # encrypted with another key, perhaps
        try:
            old.append((key, ciphertext, keyring().rotate(ciphertext.encode()).decode()))
        except InvalidToken:
            count.unreadable.append(key)
    count.old += len(old)
    return old


def _replace(
    model: type[models.Model], secret: EncryptedTextField, rows: list[tuple[object, str, str]]
) -> None:
    table, key = model._meta.db_table, model._meta.pk
    keys, old, new = zip(*rows, strict=True)
    with connection.cursor() as cursor:
        cursor.execute(
            f'UPDATE "{table}" t SET "{secret.column}" = v.new '
            "FROM unnest(%s::text[], %s::text[], %s::text[]) v(key, old, new) "
            f'WHERE t."{key.column}" = v.key::{key.rel_db_type(connection)} '
            f'AND t."{secret.column}" = v.old',
            [[str(each) for each in keys], list(old), list(new)],
        )
