"""Providers' own ids of messages: stored for receipts that name nothing else, and for polling."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from messaging.models import Attempt, Delivery, ProviderReference
from rme.core import ids
from rme.core.db import clock, sql

STORED = timedelta(days=7)
"""Networks give up after three days."""
ACCOUNTS = 5
"""Accounts polled side by side, chosen at random, so that a silent one delays no other for long."""
PER_ACCOUNT = 50
LEASE_SECONDS = 60
"""After this, what a dead worker had taken is polled again."""
_T = ProviderReference._meta.db_table

Key = tuple[int, str]
"""An account's id, and the provider's own id of the message."""

# The newest row counts, since an SMSC may start its numbers again.
# Plan: provider_reference_of, once for each.
# Run by: find, for feedback.callbacks
FIND = f"""
SELECT DISTINCT ON (r.account_id, r.reference) r.account_id, r.reference, r.id
FROM unnest(%(accounts)s::bigint[], %(references)s::text[]) AS w(account_id, reference)
JOIN {_T} r ON r.account_id = w.account_id AND r.reference = w.reference
ORDER BY r.account_id, r.reference, r.id DESC
"""
# Plan: provider_reference_ask, one step for each account.
# Run by: take_due, for feedback.polling
TAKE_DUE = f"""
WITH RECURSIVE {sql.loose_scan(ProviderReference, ["account_id"], "ask_at IS NOT NULL")},
chosen AS MATERIALIZED (
  SELECT account_id FROM step WHERE account_id <> ALL(%(silent)s::bigint[]) AND EXISTS (
    SELECT FROM {_T} t WHERE t.account_id = step.account_id AND t.ask_at <= statement_timestamp())
  ORDER BY random() LIMIT {ACCOUNTS}
), due AS MATERIALIZED (
  SELECT own.id FROM chosen, LATERAL (
    SELECT id FROM {_T} t
    WHERE t.account_id = chosen.account_id AND t.ask_at <= statement_timestamp()
    ORDER BY t.ask_at LIMIT {PER_ACCOUNT} FOR UPDATE SKIP LOCKED) own
)
UPDATE {_T} t SET ask_at = statement_timestamp() + interval '{LEASE_SECONDS} seconds'
FROM due WHERE {sql.by_key("t.id", "due.id")} RETURNING t.id, t.account_id, t.reference
"""
# A statement of its own, since it chooses partitions: docs/architecture.md, "Locks and pruning".
# Plan: the primary keys of both, once for each.
# Run by: take_due, for feedback.polling
READ_STATUSES = f"""
SELECT a.id, d.status FROM {Attempt._meta.db_table} a
JOIN {Delivery._meta.db_table} d ON d.id = a.delivery_id WHERE a.id = ANY(%(attempts)s)
"""


class NewReference(NamedTuple):
    """A provider's own id of a message. `ask_at`: when to poll first; None: never."""

    id: str
    """The attempt's."""
    account_id: int
    reference: str
    ask_at: datetime | None


class DueMessage(NamedTuple):
    """A message to poll, and the status of its delivery; None if that was deleted."""

    attempt_id: UUID
    account_id: int
    reference: str
    status: str | None


def insert_step(references: Sequence[NewReference]) -> sql.Step | None:
    """Return the step that stores references."""
    rows = [reference._asdict() for reference in references]
    return sql.insert_step(ProviderReference, rows, "ON CONFLICT DO NOTHING")


def find(keys: Collection[Key]) -> dict[Key, UUID]:
    """Return the attempts of providers' own ids: one statement, and none if none are wanted."""
    if not keys:
        return {}
    accounts, references = zip(*sorted(keys), strict=True)
    rows = sql.fetch(FIND, {"accounts": list(accounts), "references": list(references)})
    return {(account, reference): attempt_id for account, reference, attempt_id in rows}


def take_due(silent: Collection[int]) -> list[DueMessage]:
    """Return messages to poll now, without those of silent accounts. Until the lease ends nobody
    else gets them.
    """
    messages = sql.fetch(TAKE_DUE, {"silent": list(silent)})
    if not messages:
        return []
    attempt_ids = [attempt_id for attempt_id, *_ in messages]
    status_of = dict(sql.fetch(READ_STATUSES, {"attempts": attempt_ids}))
    return [
        DueMessage(key, account_id, reference, status_of.get(key))
        for key, account_id, reference in messages
    ]


def set_next_polls(times: Mapping[UUID, datetime | None]) -> None:
    """Set when messages are polled next; None: never again."""
    sql.update(ProviderReference, [{"id": key, "ask_at": at} for key, at in times.items()])


def purge() -> None:
    """Delete rows for which no receipt comes any more. An attempt's id begins with its time."""
    ProviderReference.objects.filter(pk__lt=ids.at_least(clock.now() - STORED)).delete()
