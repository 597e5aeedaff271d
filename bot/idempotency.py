"""Creates that come again: the first id is given, and nothing is made.

For what has no natural key: the same values from the same key within two minutes. For all: the
same `Idempotency-Key` within a day.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.db import connection
from django.db.models import QuerySet

from bot.models import Creation

SAME_VALUES_LIFETIME = timedelta(minutes=2)
KEY_LIFETIME = timedelta(hours=24)
_TABLE = Creation._meta.db_table

_BEGIN = f"""
WITH old AS (
  DELETE FROM {_TABLE} WHERE id IN (SELECT id FROM {_TABLE}
    WHERE expires_at < now() AND NOT (organization_id = %(organization)s AND digest = %(digest)s)
    ORDER BY expires_at LIMIT 20 FOR UPDATE SKIP LOCKED))
INSERT INTO {_TABLE} (organization_id, digest, record_id, expires_at)
VALUES (%(organization)s, %(digest)s, '', now() + %(life)s)
ON CONFLICT (organization_id, digest) DO UPDATE
SET record_id = '', created_at = now(), expires_at = excluded.expires_at
"""


@dataclass(frozen=True, slots=True)
class CreateKey:
    """By what a create is known again, and for how long."""

    organization_id: str
    digest: str
    life: timedelta

    @classmethod
    def of(cls, organization_id: str, life: timedelta, *parts: object) -> "Token":
        """Make the token of some values."""
        text = orjson.dumps([str(part) for part in parts])
        return cls(organization_id, hashlib.sha256(text).hexdigest(), life)


@dataclass(frozen=True, slots=True)
class EarlierCreate:
    """What an earlier create made; `record_id` is empty where that is not known."""

    record_id: str
    since: datetime


def find(token: CreateKey) -> EarlierCreate | None:
    """Find an earlier create."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT record_id, created_at FROM {_TABLE} "
            "WHERE organization_id = %s AND digest = %s AND expires_at > now()",
            [token.organization_id, token.digest],
        )
        row = cursor.fetchone()
    return EarlierCreate(*row) if row else None


def store_start(token: CreateKey) -> None:
    """Note that a create begins; what has expired goes, some of it each time."""
    own: dict[str, Any] = {"organization": token.organization_id, "digest": token.digest}
    with connection.cursor() as cursor:
        cursor.execute(_BEGIN, own | {"life": token.life})


def store_result(token: CreateKey, record_id: str) -> None:
    """Note what a create made."""
    _rows(token).update(record_id=record_id)


def forget(token: CreateKey) -> None:
    """Drop a create that made nothing."""
    _rows(token).delete()


def _rows(token: CreateKey) -> QuerySet[Creation]:
    return Creation.objects.filter(organization_id=token.organization_id, digest=token.digest)
