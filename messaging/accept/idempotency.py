"""Idempotency keys, by which a caller may repeat a request without sending twice.

The statement that stores the message inserts the row of its key too, so that there is never one
without the other; a unique constraint decides between two concurrent requests.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import NamedTuple

import orjson
from django.db import connection
from django.db.models.functions import Now

from messaging.accept.results import Refusal, SendResult, StoredAnswer
from messaging.models import IdempotencyKey
from rme.core import errors
from rme.core.db import commits, prepared_statements, sql
from rme.core.db.postgresql import direct
from rme.core.http import idempotency_key
from rme.tenants.authentication import Caller

LIFE = timedelta(hours=24)
KEY_LIMIT = 255
_TABLE = IdempotencyKey._meta.db_table


class CallerKey(NamedTuple):
    """The key of a request, with the digest of the request's body."""

    text: str
    digest: str


class KeyScope(NamedTuple):
    """Where a key is unique: an application of an organization."""

    organization_id: str
    application_id: int
    text: str

    @property
    def lock_name(self) -> str:
        """Return the name of the advisory lock that holds the key."""
        return f"{self.organization_id}\n{self.application_id}\n{self.text}"


def scope_of(caller: Caller, key: CallerKey) -> KeyScope:
    """Return the scope of a caller's key."""
    return KeyScope(caller.organization.id, caller.application_id, key.text)


def key_of(header: str | None, body: object) -> CallerKey | None:
    """Read the Idempotency-Key header, with the digest of the body.

    Raises InvalidPayload for a key that is empty, too long or not printable ASCII.
    """
    if header is None:
        return None
    text = idempotency_key.read(header, KEY_LIMIT)
    if not text:
        wanted = f"must be 1 to {KEY_LIMIT} printable characters"
        raise errors.InvalidPayload.at(idempotency_key.NAME, wanted)
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


def find(caller: Caller, keys: Collection[str]) -> dict[KeyScope, StoredAnswer]:
    """Return the stored answers of a caller's keys that have not expired, in one query.

    Answers are as safe as new messages: see `commits.confirm_earlier`.
    """
    if not keys:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT key, digest, status, body FROM {_TABLE} WHERE organization_id = %s "
            "AND application_id = %s AND key = ANY(%s) AND expires_at > now()",
            [caller.organization.id, caller.application_id, list(keys)],
        )
        found = {
            KeyScope(caller.organization.id, caller.application_id, key): StoredAnswer(
                stored_digest, status, body.encode()
            )
            for key, stored_digest, status, body in cursor.fetchall()
        }
    if found:
        commits.confirm_earlier()
    return found


# Requests that repeat a stored answer share the lock. They need it, because the first request may
# still wait for the outcome of its message (`Prefer: wait`).
_HOLD_TEXT = f"""
SELECT k.digest, k.status, k.body,
  CASE WHEN k.body IS NULL THEN pg_try_advisory_{{of}}lock(wanted.lock)
  ELSE pg_try_advisory_{{of}}lock_shared(wanted.lock) END
FROM (
  SELECT w.*, hashtextextended(w.name, 1) AS lock
  FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::text[])
    WITH ORDINALITY w(name, organization_id, application_id, key, place)
  OFFSET 0) wanted
LEFT JOIN LATERAL (
  SELECT digest, status, body FROM {_TABLE}
  WHERE organization_id = wanted.organization_id AND application_id = wanted.application_id
    AND key = wanted.key AND expires_at > now()
  OFFSET 0) k ON true
ORDER BY wanted.place
"""
_HOLD = _HOLD_TEXT.format(of="")
_PROBE = _HOLD_TEXT.format(of="xact_")
"""Holds the locks for its own time only."""
_RELEASE = """
SELECT CASE WHEN held.shared THEN pg_advisory_unlock_shared(hashtextextended(held.name, 1))
  ELSE pg_advisory_unlock(hashtextextended(held.name, 1)) END
FROM unnest(%s::text[], %s::boolean[]) held(name, shared)
"""


@contextmanager
def holding(
    scopes: Sequence[KeyScope], *, waits: bool = False
) -> Iterator[Mapping[KeyScope, StoredAnswer | None]]:
    """Hold keys while their requests run, and yield the stored answers of those used before.

    A key that the first request with it still holds, in another process, is left out. No key may
    be there twice. The locks belong to the session: they end with the process.

    A pooler keeps no session. There, a request that `waits` for the outcome of its message has one
    of its own, and holds its key in it. For all others it is only looked whether a key is held: of
    two concurrent requests one stores its message, and the other finds the answer of the first.
    """
    if not scopes:
        yield {}
        return
    held: dict[KeyScope, StoredAnswer | None] = {}
    if direct.is_pooled() and not waits:
        _hold_all(_PROBE, scopes, held)
        yield held
        return
    with direct.session():
        try:
            _hold_all(_HOLD, scopes, held)
            yield held
        finally:
            _release(held)


def _hold_all(
    statement: str, scopes: Sequence[KeyScope], held: dict[KeyScope, StoredAnswer | None]
) -> None:
    """Add the keys to `held` that no other request holds."""
    held |= _hold(statement, scopes)
    if len(held) < len(scopes):  # the request that held one may have ended meanwhile
        held |= _hold(statement, [scope for scope in scopes if scope not in held])
    if any(held.values()):
        commits.confirm_earlier()


def _hold(statement: str, scopes: Sequence[KeyScope]) -> dict[KeyScope, StoredAnswer | None]:
    parameters = [
        sql.array([scope.lock_name for scope in scopes]),
        sql.array([scope.organization_id for scope in scopes]),
        sql.array([str(scope.application_id) for scope in scopes]),
        sql.array([scope.text for scope in scopes]),
    ]
    rows = prepared_statements.execute(statement, parameters)
    return {
        scope: None if body is None else StoredAnswer(stored_digest, status, body.encode())
        for scope, (stored_digest, status, body, locked) in zip(scopes, rows, strict=True)
        if locked
    }


def _release(held: Mapping[KeyScope, StoredAnswer | None]) -> None:
    if held:
        names = sql.array([scope.lock_name for scope in held])
        shared = sql.array(["f" if stored is None else "t" for stored in held.values()])
        prepared_statements.execute(_RELEASE, [names, shared])


def stored_answer(
    held: Mapping[KeyScope, StoredAnswer | None], scope: KeyScope
) -> StoredAnswer | None:
    """Return the stored answer of a key. Raise IdempotencyInProgress for one that is not held."""
    if scope not in held:
        raise in_progress()
    return held[scope]


def in_progress() -> errors.IdempotencyInProgress:
    """Build the error of a request whose key is held by the first request with it."""
    return errors.IdempotencyInProgress(headers={"Retry-After": "1"})


def amend(scope: KeyScope, result: SendResult | Refusal) -> None:
    """Replace the stored answer of a key. A fault (5xx) frees the key instead."""
    rows = IdempotencyKey.objects.filter(
        organization_id=scope.organization_id, application_id=scope.application_id, key=scope.text
    )
    if result.status_code < 500:
        rows.update(status=result.status_code, body=result.body.decode())
    else:
        rows.delete()


def delete_expired(caller: Caller, keys: Collection[str]) -> None:
    """Delete those of a caller's keys that have expired, so that they may be used again."""
    IdempotencyKey.objects.filter(
        organization_id=caller.organization.id,
        application_id=caller.application_id,
        key__in=keys,
        expires_at__lte=Now(),
    ).delete()


def purge() -> int:
    """Delete keys that have expired; return how many."""
    deleted, _ = IdempotencyKey.objects.filter(expires_at__lte=Now()).delete()
    return deleted
