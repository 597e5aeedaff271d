"""Repeated creates: return the first id and create nothing.

Records without a natural key: the same values from the same API key within two minutes. All
records: the same `Idempotency-Key` within a day.

SQL for the start of a create, since one statement inserts, renews and deletes what has expired.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.db import connection
from django.db.models import QuerySet
from django.db.models.functions import Now

from bot.models import Creation
from rme.core.db import commits

SAME_VALUES_LIFETIME = timedelta(minutes=2)
KEY_LIFETIME = timedelta(hours=24)
_TABLE = Creation._meta.db_table

_BEGIN = f"""
WITH old AS (
  DELETE FROM {_TABLE} WHERE id IN (SELECT id FROM {_TABLE}
    WHERE expires_at < now() AND NOT (organization_id = %(organization)s AND digest = %(digest)s)
    ORDER BY expires_at LIMIT 20 FOR UPDATE SKIP LOCKED))
INSERT INTO {_TABLE} (organization_id, digest, record_id, expires_at)
VALUES (%(organization)s, %(digest)s, '', now() + %(lifetime)s)
ON CONFLICT (organization_id, digest) DO UPDATE
SET record_id = '', created_at = now(), expires_at = excluded.expires_at
"""


@dataclass(frozen=True, slots=True)
class CreateKey:
    """What identifies a repeated create, and how long it is remembered."""

    organization_id: str
    digest: str
    lifetime: timedelta

    @classmethod
    def of(cls, organization_id: str, lifetime: timedelta, *parts: object) -> "CreateKey":
        """Build the key from the values' digest."""
        text = orjson.dumps([str(part) for part in parts])
        return cls(organization_id, hashlib.sha256(text).hexdigest(), lifetime)


@dataclass(frozen=True, slots=True)
class EarlierCreate:
    """An earlier create; `record_id` is empty while its outcome is unknown."""

    record_id: str
    since: datetime


def find(key: CreateKey) -> EarlierCreate | None:
    """Return the earlier create with this key, if it is still remembered."""
    row = _rows(key).filter(expires_at__gt=Now()).values_list("record_id", "created_at").first()
    if row is None:
        return None
    commits.confirm_earlier()  # the answer promises what it names
    return EarlierCreate(*row)


def store_start(key: CreateKey) -> None:
    """Store that a create starts, and delete up to 20 expired rows."""
    values: dict[str, Any] = {"organization": key.organization_id, "digest": key.digest}
    with connection.cursor() as cursor:
        cursor.execute(_BEGIN, values | {"lifetime": key.lifetime})


def store_result(key: CreateKey, record_id: str) -> None:
    """Store the id of the created record."""
    _rows(key).update(record_id=record_id)


def forget(key: CreateKey) -> None:
    """Delete the row of a create that created nothing."""
    _rows(key).delete()


def _rows(key: CreateKey) -> QuerySet[Creation]:
    return Creation.objects.filter(organization_id=key.organization_id, digest=key.digest)
