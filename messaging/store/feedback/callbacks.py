"""Provider callbacks as they came: each is stored once, then applied in a batch and noted."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from messaging.models import Callback, CallbackLogEntry
from rme.core.db import prepared_statements, sql
from rme.core.db.due import is_due
from rme.core.placement import places
from rme.tenants.models import Organization

BATCH = 500
RETRY_DAYS = 1
"""How long a receipt is tried again that comes before the record of its attempt."""
Verdict = CallbackLogEntry.Verdict
_T, _LOG = Callback._meta.db_table, CallbackLogEntry._meta.db_table
_NOTE = (
    f"INSERT INTO {_LOG}"
    " (organization_id, id, account_id, verdict, detail, method, size, count, at)"
)

# Plan: the unique index of digests, once for each. `:check` stands for the step of `writing`.
# Run by: store, for feedback.views and feedback.listeners
STORE = f"""
WITH received AS (
  SELECT id, %(organization)s::text AS organization_id, %(account)s::bigint AS account_id,
    digest, method, query, headers::jsonb, body, at
  FROM unnest(%(ids)s::uuid[], %(digests)s::text[], %(methods)s::text[], %(queries)s::text[],
    %(headers)s::text[], %(bodies)s::bytea[], %(times)s::timestamptz[])
    call(id, digest, method, query, headers, body, at)
), stored AS (
  INSERT INTO {_T} (id, organization_id, account_id, digest, method, query, headers, body,
    received_at, tries)
  SELECT *, 0 FROM received ON CONFLICT (digest) DO NOTHING RETURNING id
), repeated AS (
  {_NOTE}
  SELECT organization_id, id, account_id, '{Verdict.DUPLICATE.value}', '', method, length(body), 1,
    at
  FROM received WHERE id NOT IN (SELECT id FROM stored)
)
SELECT count(*):check FROM stored
"""
# Plan: callback_due, in its order.
# Run by: lock_due, for feedback.callbacks
LOCK_DUE = f"""
SELECT id, organization_id, account_id, method, query, headers, body, received_at, tries
FROM {_T} t WHERE {is_due("t")}
ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
"""
# Plan: the primary key, once for each.
# Run by: finish, for feedback.callbacks
FINISH = f"""
WITH noted AS (
  {_NOTE}
  SELECT c.organization_id, c.id, c.account_id, v.verdict, v.detail, c.method, length(c.body), 1,
    c.received_at
  FROM unnest(%(noted)s::uuid[], %(verdicts)s::text[], %(details)s::text[]) v(id, verdict, detail)
  JOIN {_T} c ON c.id = v.id
  ON CONFLICT DO NOTHING
)
UPDATE {_T} SET tries = tries + 1, letter = id = ANY(%(inbound)s::uuid[]), due_at = CASE
  WHEN id = ANY(%(early)s::uuid[])
    AND received_at > statement_timestamp() - make_interval(days => {RETRY_DAYS})
  THEN statement_timestamp() + make_interval(secs => least(300, power(2, least(tries, 10)))) END
WHERE id = ANY(%(all)s::uuid[])
"""
# Plan: the primary key of the log, one range for each organization.
# Run by: delete_notes, for feedback.callback_log
DELETE_NOTES = f"""
DELETE FROM {_LOG} WHERE (organization_id, id) IN (
  SELECT old.organization_id, old.id FROM {Organization._meta.db_table} o, LATERAL (
    SELECT organization_id, id FROM {_LOG} WHERE organization_id = o.id AND id < %(end)s
    ORDER BY id LIMIT %(limit)s) old LIMIT %(limit)s)
"""


class NewCallback(NamedTuple):
    """A callback that has arrived. `digest` is equal for a repeated call."""

    id: UUID
    digest: str
    method: str
    query: str
    headers: str
    """As JSON."""
    body: bytes
    received_at: datetime


class StoredCallback(NamedTuple):
    """A callback that is due, as stored."""

    id: UUID
    organization_id: str
    account_id: int
    method: str
    query: str
    headers: str | Mapping[str, str]
    body: bytes
    received_at: datetime
    tries: int


class LogNote(NamedTuple):
    """What the log of callbacks says of one."""

    verdict: Verdict
    detail: str = ""


def store(organization_id: str, account_id: int, callbacks: Sequence[NewCallback]) -> int:
    """Store callbacks of an account by one statement; return how many are new.

    It also notes those that came before. If it raises what `organizations.require_served` raises,
    nothing is stored.
    """
    step = sql.bind(
        STORE,
        {
            "organization": organization_id,
            "account": account_id,
            "ids": sql.array([str(callback.id) for callback in callbacks]),
            "digests": sql.array([callback.digest for callback in callbacks]),
            "methods": sql.array([callback.method for callback in callbacks]),
            "queries": sql.array([callback.query for callback in callbacks]),
            "headers": sql.array([callback.headers for callback in callbacks]),
            "bodies": sql.array([f"\\x{callback.body.hex()}" for callback in callbacks]),
            "times": sql.array([callback.received_at.isoformat() for callback in callbacks]),
        },
    )
    with places().writing([organization_id]) as check:
        text = step.text.replace(":check", f", ({check.text})" if check else "")
        parameters = [*step.parameters, *(check.parameters if check else ())]
        ((count, *_),) = prepared_statements.execute(text, parameters)
    return int(count)


def lock_due(limit: int = BATCH) -> list[StoredCallback]:
    """Lock and return the next batch."""
    return [StoredCallback(*row) for row in sql.fetch(LOCK_DUE, {"limit": limit})]


def finish(
    callbacks: Sequence[StoredCallback],
    notes: Mapping[UUID, LogNote],
    *,
    early: Collection[UUID],
    inbound: Collection[UUID],
) -> None:
    """End a batch: note callbacks in the log, and try `early` ones again. `inbound` were SMS."""
    with connection.cursor() as cursor:
        cursor.execute(
            FINISH,
            {
                "noted": list(notes),
                "verdicts": [note.verdict.value for note in notes.values()],
                "details": [note.detail for note in notes.values()],
                "inbound": list(inbound),
                "early": list(early),
                "all": [callback.id for callback in callbacks],
            },
        )


def delete_notes(end: UUID, limit: int) -> int:
    """Delete entries of the log whose ids are below `end`, up to a limit; return how many."""
    with connection.cursor() as cursor:
        cursor.execute(DELETE_NOTES, {"end": end, "limit": limit})
        return int(cursor.rowcount)
