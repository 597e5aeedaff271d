"""Idempotency keys, by which a caller may repeat a request without sending twice.

The statement that stores the message inserts the row of its key too, so that there is never one
without the other; a unique constraint decides between two concurrent requests.
"""

import hashlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple

import orjson
from django.db import connection
from django.db.models.functions import Now

from messaging.accept.results import Refusal, SendResult, StoredAnswer
from messaging.models import IdempotencyKey
from rme.core import errors

LIFE = timedelta(hours=24)
_TABLE = IdempotencyKey._meta.db_table


class CallerKey(NamedTuple):
    """The key of a request, with the digest of the request's body."""

    text: str
    digest: str


def key_of(header: str | None, body: object) -> CallerKey | None:
    """Read the Idempotency-Key header. A quoted key (the IETF draft's form) equals the bare one.

    Raises InvalidPayload for a key that is empty, too long or not printable ASCII.
    """
    if header is None:
        return None
    text = header.strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = text[1:-1]
    if not 1 <= len(text) <= 255 or not (text.isascii() and text.isprintable()):
        raise errors.InvalidPayload.at("Idempotency-Key", "must be 1 to 255 printable characters")
    return CallerKey(text, digest(body))


def digest(body: object) -> str:
    """Return the SHA-256 of a JSON value; member order and white space do not count."""
    canonical = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(canonical).hexdigest()


def replay(stored: StoredAnswer, key: CallerKey) -> StoredAnswer:
    """Return a stored answer; raise IdempotencyKeyReused if it answered another request."""
    if key.digest != stored.request_digest:
        raise errors.IdempotencyKeyReused
    return stored


def find(
    organization_id: str, application_id: int, keys: Collection[str]
) -> dict[str, StoredAnswer]:
    """Return the stored answers of the keys that were used and have not expired, in one query."""
    if not keys:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT key, digest, status, body FROM {_TABLE} WHERE organization_id = %s "
            "AND application_id = %s AND key = ANY(%s) AND expires_at > now()",
            [organization_id, application_id, list(keys)],
        )
        return {
            key: StoredAnswer(stored_digest, status, body.encode())
            for key, stored_digest, status, body in cursor.fetchall()
        }


# Requests that repeat a stored answer share the lock. They need it, because the first request may
# still wait for the outcome of its message (`Prefer: wait`).
_HOLD = f"""
SELECT k.digest, k.status, k.body, CASE WHEN k.body IS NULL THEN pg_try_advisory_lock(lock.name)
  ELSE pg_try_advisory_lock_shared(lock.name) END
FROM (SELECT hashtextextended(%s, 1) AS name) lock
LEFT JOIN {_TABLE} k ON k.organization_id = %s AND k.application_id = %s
  AND k.key = %s AND k.expires_at > now()
"""


@contextmanager
def holding(
    organization_id: str, application_id: int, key: CallerKey | None
) -> Iterator[StoredAnswer | None]:
    """Hold a key while its request runs, and yield the stored answer if the key was used before.

    Raises IdempotencyInProgress while the first request holds it. The lock belongs to the database
    connection: it ends with the process.
    """
    if key is None:
        yield None
        return
    name = f"{organization_id}\n{application_id}\n{key.text}"
    parameters: list[Any] = [name, organization_id, application_id, key.text]
    with connection.cursor() as cursor:
        cursor.execute(_HOLD, parameters)
        *row, locked = cursor.fetchone()
        if not locked:  # the request that held it may have ended meanwhile
            cursor.execute(_HOLD, parameters)
            *row, locked = cursor.fetchone()
    if not locked:
        raise errors.IdempotencyInProgress(headers={"Retry-After": "1"})
    stored_digest, status, body = row
    stored = None if body is None else StoredAnswer(stored_digest, status, body.encode())
    try:
        yield stored
    finally:
        release = "pg_advisory_unlock_shared" if stored else "pg_advisory_unlock"
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {release}(hashtextextended(%s, 1))", [name])


def amend(
    organization_id: str, application_id: int, key: CallerKey, result: SendResult | Refusal
) -> None:
    """Replace the stored answer of a key. A fault (5xx) frees the key instead."""
    rows = IdempotencyKey.objects.filter(
        organization_id=organization_id, application_id=application_id, key=key.text
    )
    if result.status_code < 500:
        rows.update(status=result.status_code, body=result.body.decode())
    else:
        rows.delete()


def purge() -> int:
    """Delete keys that have expired; return how many."""
    deleted, _ = IdempotencyKey.objects.filter(expires_at__lte=Now()).delete()
    return deleted
