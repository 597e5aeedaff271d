"""Idempotency keys: their advisory locks, and the answers that are stored with messages."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import QuerySet
from django.db.models.functions import Now

from messaging.models import IdempotencyKey
from rme.core.db import sql

_TABLE = IdempotencyKey._meta.db_table

# Plan: the unique index of keys.
# Run by: find, for accept.idempotency
FIND = f"""
SELECT key, digest, status, body FROM {_TABLE} WHERE organization_id = %(organization)s
  AND application_id = %(application)s AND key = ANY(%(keys)s) AND expires_at > now()
"""
# Requests that repeat a stored answer share the lock. They need it, because the first request may
# still wait for the outcome of its message (`Prefer: wait`).
#
# Plan: the unique index of keys, once for each.
_HOLD = f"""
SELECT k.digest, k.status, k.body,
  CASE WHEN k.body IS NULL THEN pg_try_advisory_{{of}}lock(wanted.lock)
  ELSE pg_try_advisory_{{of}}lock_shared(wanted.lock) END
FROM (
  SELECT w.*, hashtextextended(w.name, 1) AS lock
  FROM unnest(%(locks)s::text[], %(organizations)s::text[], %(applications)s::bigint[],
    %(keys)s::text[]) WITH ORDINALITY w(name, organization_id, application_id, key, place)
  OFFSET 0) wanted
LEFT JOIN LATERAL (
  SELECT digest, status, body FROM {_TABLE}
  WHERE organization_id = wanted.organization_id AND application_id = wanted.application_id
    AND key = wanted.key AND expires_at > now()
  OFFSET 0) k ON true
ORDER BY wanted.place
"""
# Plan: the unique index of keys, once for each.
# Run by: hold, for accept.idempotency
HOLD = _HOLD.format(of="")
# Plan: that of HOLD.
# Run by: hold, for accept.idempotency
PROBE = _HOLD.format(of="xact_")
"""Holds the locks for its own time only."""
# Plan: reads no table.
# Run by: release, for accept.idempotency
RELEASE = """
SELECT CASE WHEN held.shared THEN pg_advisory_unlock_shared(hashtextextended(held.name, 1))
  ELSE pg_advisory_unlock(hashtextextended(held.name, 1)) END
FROM unnest(%(locks)s::text[], %(shared)s::boolean[]) held(name, shared)
"""


class KeyScope(NamedTuple):
    """Where a key is unique: an application of an organization."""

    organization_id: str
    application_id: int
    text: str

    @property
    def lock_name(self) -> str:
        """Return the name of the advisory lock that holds the key."""
        return f"{self.organization_id}\n{self.application_id}\n{self.text}"


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The answer to the first request with a key, as it was stored."""

    request_digest: str
    status_code: int
    body: bytes


Held = Mapping[KeyScope, StoredAnswer | None]
"""Keys that are held, with the stored answers of those used before."""


def find(
    organization_id: str, application_id: int, keys: Collection[str]
) -> dict[KeyScope, StoredAnswer]:
    """Return the stored answers of an application's keys that have not expired, in one query."""
    values = {"organization": organization_id, "application": application_id, "keys": list(keys)}
    return {
        KeyScope(organization_id, application_id, key): StoredAnswer(digest, status, body.encode())
        for key, digest, status, body in sql.fetch(FIND, values)
    }


def hold(scopes: Sequence[KeyScope], *, probes: bool) -> dict[KeyScope, StoredAnswer | None]:
    """Lock the keys that nobody else holds, and return them. `probes`: only for the statement."""
    rows = sql.read_in_order(
        PROBE if probes else HOLD,
        {
            "locks": sql.array([scope.lock_name for scope in scopes]),
            "organizations": sql.array([scope.organization_id for scope in scopes]),
            "applications": sql.array([str(scope.application_id) for scope in scopes]),
            "keys": sql.array([scope.text for scope in scopes]),
        },
        setting="",
    )
    return {
        scope: None if body is None else StoredAnswer(digest, status, body.encode())
        for scope, (digest, status, body, locked) in zip(scopes, rows, strict=True)
        if locked
    }


def release(held: Held) -> None:
    """Release the locks of keys."""
    if held:
        shared = ["f" if stored is None else "t" for stored in held.values()]
        locks = sql.array([scope.lock_name for scope in held])
        values = {"locks": locks, "shared": sql.array(shared)}
        sql.read_in_order(RELEASE, values, setting="")


def amend(scope: KeyScope, status: int, body: bytes) -> None:
    """Replace the stored answer of a key. A fault (5xx) frees the key instead."""
    rows = _rows(scope.organization_id, scope.application_id, [scope.text])
    if status < 500:
        rows.update(status=status, body=body.decode())
    else:
        rows.delete()


def delete_expired(organization_id: str, application_id: int, keys: Collection[str]) -> None:
    """Delete those of an application's keys that have expired, so that they may be used again."""
    _rows(organization_id, application_id, keys).filter(expires_at__lte=Now()).delete()


def _rows(
    organization_id: str, application_id: int, keys: Collection[str]
) -> QuerySet[IdempotencyKey]:
    return IdempotencyKey.objects.filter(
        organization_id=organization_id, application_id=application_id, key__in=keys
    )


def purge() -> int:
    """Delete keys that have expired; return how many."""
    deleted, _ = IdempotencyKey.objects.filter(expires_at__lte=Now()).delete()
    return deleted
