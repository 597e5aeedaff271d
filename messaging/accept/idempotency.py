"""Keys by which a caller may repeat a request without sending twice.

The row of a key is inserted by the statement that stores the message, so that the two cannot
part; a unique constraint decides between two who come at once.
"""

import hashlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson
from django.db import connection

from messaging.models import IdempotencyKey
from rme.core import errors

LIFE = timedelta(hours=24)
_TABLE = IdempotencyKey._meta.db_table


@dataclass(frozen=True, slots=True)
class Key:
    """A key as a caller gave it, with the digest of what came with it."""

    text: str
    digest: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer that was given the first time."""

    digest: str
    status: int
    body: bytes

    def replay(self, key: Key) -> "Answer":
        """Give the answer again; raises IdempotencyKeyReused for another request."""
        if key.digest != self.digest:
            raise errors.IdempotencyKeyReused
        return self


def key_of(header: str | None, body: Any) -> Key | None:
    """Read the Idempotency-Key header: quoted (as the IETF draft has it) and bare are the same."""
    if header is None:
        return None
    text = header.strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = text[1:-1]
    if not 1 <= len(text) <= 255 or not (text.isascii() and text.isprintable()):
        raise errors.InvalidPayload.at("Idempotency-Key", "must be 1 to 255 printable characters")
    return Key(text, digest(body))


def digest(body: Any) -> str:
    """Digest a JSON value: member order and white space do not count."""
    canonical = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(canonical).hexdigest()


def find(organization_id: str, application_id: int, keys: Collection[str]) -> dict[str, Answer]:
    """Find the answers of keys that were used and still live, in one query."""
    if not keys:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT key, digest, status, body FROM {_TABLE} WHERE organization_id = %s "
            "AND application_id = %s AND key = ANY(%s) AND expires_at > now()",
            [organization_id, application_id, list(keys)],
        )
        return {row[0]: Answer(row[1], row[2], row[3].encode()) for row in cursor.fetchall()}


# Whoever has an answer to repeat shares the lock with all others who have. It is not free of one,
# since the first request may still wait for what becomes of its message (`Prefer: wait`).
_HOLD = f"""
SELECT k.digest, k.status, k.body, CASE WHEN k.body IS NULL THEN pg_try_advisory_lock(lock.name)
  ELSE pg_try_advisory_lock_shared(lock.name) END
FROM (SELECT hashtextextended(%s, 1) AS name) lock
LEFT JOIN {_TABLE} k ON k.organization_id = %s AND k.application_id = %s
  AND k.key = %s AND k.expires_at > now()
"""


@contextmanager
def holding(organization_id: str, application_id: int, key: Key | None) -> Iterator[Answer | None]:
    """Hold a key while its request runs, and give the answer if it was used before.

    Raises IdempotencyInProgress while the first request holds it. The lock is the connection's: a
    process that dies lets go of it.
    """
    if key is None:
        yield None
        return
    name = f"{organization_id}\n{application_id}\n{key.text}"
    parameters: list[Any] = [name, organization_id, application_id, key.text]
    with connection.cursor() as cursor:
        cursor.execute(_HOLD, parameters)
        *stored, locked = cursor.fetchone()
        if not locked:  # whoever held it may have ended meanwhile
            cursor.execute(_HOLD, parameters)
            *stored, locked = cursor.fetchone()
    if not locked:
        raise errors.IdempotencyInProgress(headers={"Retry-After": "1"})
    stored_digest, status, body = stored
    known = None if body is None else Answer(stored_digest, status, body.encode())
    try:
        yield known
    finally:
        release = "pg_advisory_unlock_shared" if known else "pg_advisory_unlock"
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {release}(hashtextextended(%s, 1))", [name])


def amend(organization_id: str, application_id: int, key: Key, *, status: int, body: bytes) -> None:
    """Change the answer that a key gives. One that is a fault (5xx) does not use the key up."""
    rows = IdempotencyKey.objects.filter(
        organization_id=organization_id, application_id=application_id, key=key.text
    )
    if status < 500:
        rows.update(status=status, body=body.decode())
    else:
        rows.delete()


def purge() -> int:
    """Delete keys whose time is over; give how many."""
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {_TABLE} WHERE expires_at <= now()")
        return int(cursor.rowcount)
