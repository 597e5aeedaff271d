"""Polling: asks providers that make no callbacks for the status of messages, ever more rarely.

A message is polled after 15 s, and then whenever it has become three times as old: after 45 s, 2, 7
and 20 min, 1, 3 and 9 h, and last after a day. Nearly all arrive within seconds; Twilio itself
gives up after ten hours. So a status is known at the latest when twice the time has passed that it
took, and a message without a final status costs nine calls.

Polling ends when the delivery has a final status. A provider that does not answer is asked again
later; that opens no circuit.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple
from uuid import UUID

import structlog
from django.db import connection, transaction

from messaging.consent import gate_lock
from messaging.feedback import provider_references, receipts
from messaging.feedback.receipts import AccountReceipt
from messaging.models import Attempt, Delivery, ProviderAccount, ProviderReference
from messaging.models.statuses import Status
from messaging.policy import organization_policy
from messaging.providers import unknown_codes
from rme.core import ids
from rme.core.db import clock, locks, sql
from rme.core.provider import AcceptedMessage, DeliveryReceipt, UnknownCode
from rme.tenants import cells
from rme.transport import Transport, run_concurrently

log = structlog.get_logger(__name__)

ACCOUNTS = 5
"""Accounts polled side by side, chosen at random, so that a silent one delays no other for long."""
PER_ACCOUNT = 50
LEASE_SECONDS = 60
"""After this, what a dead worker had taken is polled again."""
LAST_AFTER = timedelta(days=1)
OPEN_STATUSES = frozenset({Status.ACCEPTED, Status.SENDING, Status.SENT, Status.UNKNOWN})
"""The statuses that are not final. ACCEPTED: a delivery that is sent again may still be confirmed
by its first attempt."""

_T = ProviderReference._meta.db_table
# The index is provider_reference_ask: one step an account.
_STEP = sql.loose_scan(ProviderReference, ["account_id"], "ask_at IS NOT NULL")
_TAKE = f"""
WITH RECURSIVE {_STEP}, chosen AS MATERIALIZED (
  SELECT account_id FROM step WHERE account_id <> ALL(%s) AND EXISTS (
    SELECT FROM {_T} t WHERE t.account_id = step.account_id AND t.ask_at <= statement_timestamp())
  ORDER BY random() LIMIT {ACCOUNTS}
), due AS MATERIALIZED (
  SELECT own.id FROM chosen, LATERAL (
    SELECT id FROM {_T} t
    WHERE t.account_id = chosen.account_id AND t.ask_at <= statement_timestamp()
    ORDER BY t.ask_at LIMIT {PER_ACCOUNT} FOR UPDATE SKIP LOCKED) own
), taken AS (
  UPDATE {_T} t SET ask_at = statement_timestamp() + interval '{LEASE_SECONDS} seconds'
  FROM due WHERE {sql.by_key("t.id", "due.id")} RETURNING t.id, t.account_id, t.reference
)
SELECT t.id, t.account_id, t.reference, d.status FROM taken t
LEFT JOIN {Attempt._meta.db_table} a ON a.id = t.id
LEFT JOIN {Delivery._meta.db_table} d ON d.id = a.delivery_id
"""

Answer = Sequence[DeliveryReceipt | UnknownCode] | None
"""What a provider answered about a message; None if it did not answer."""


class _DueMessage(NamedTuple):
    """A message to poll, and the status of its delivery; None if that was deleted."""

    attempt_id: UUID
    account_id: int
    reference: str
    status: str | None


def poll(transport: Transport, until: float) -> None:
    """Poll what is due until a time (monotonic). One worker at a time does."""
    with locks.alone("messaging.poll") as alone:
        silent = _accounts_elsewhere()
        while alone and time.monotonic() < until:
            polled, unanswered = poll_batch(transport, silent)
            if not polled:
                return
            silent |= unanswered


def _accounts_elsewhere() -> set[int]:
    """Return the accounts of organizations that move to another cell, or have moved."""
    absent = cells.absent()
    rows = ProviderAccount.objects.filter(organization_id__in=absent)
    return set(rows.values_list("pk", flat=True)) if absent else set()


def poll_batch(transport: Transport, silent: Collection[int] = ()) -> tuple[int, set[int]]:
    """Poll one batch, without the accounts that have just been silent.

    Return the number of messages, and the accounts that did not answer. The number of statements
    does not depend on the number of messages.
    """
    due = _take(silent)
    if not due:
        return 0, set()
    rows = ProviderAccount.objects.in_bulk({each.account_id for each in due})
    answers = _ask([each for each in due if each.status in OPEN_STATUSES], rows, transport)
    _apply(due, rows, answers)
    unanswered = Counter(each.account_id for each, answer in answers.items() if answer is None)
    for account_id, count in unanswered.items():
        log.warning("poll.unanswered", account_id=account_id, count=count)
    return len(due), set(unanswered)


def _take(silent: Collection[int]) -> list[_DueMessage]:
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, [list(silent)])
        return [_DueMessage(*row) for row in cursor.fetchall()]


def _ask(
    due: Sequence[_DueMessage], rows: Mapping[int, ProviderAccount], transport: Transport
) -> dict[_DueMessage, Answer]:
    """Ask all accounts side by side. No transaction is open."""
    by_account: defaultdict[int, list[_DueMessage]] = defaultdict(list)
    for each in due:
        by_account[each.account_id].append(each)
    groups: list[list[_DueMessage]] = []
    jobs: list[Callable[[Transport], list[Answer]]] = []
    for account_id, group in by_account.items():
        row = rows.get(account_id)
        provider = organization_policy.account_of(row).provider if row else None
        if provider is not None:  # else its settings are invalid, which is logged
            accepted = [AcceptedMessage(each.attempt_id, each.reference) for each in group]
            groups.append(group)
            jobs.append(partial(provider.poll, accepted))
    found = run_concurrently(jobs, transport)
    return {
        each: answer
        for group, answers in zip(groups, found, strict=True)
        for each, answer in zip(group, answers, strict=True)
    }


def _apply(
    due: Sequence[_DueMessage],
    rows: Mapping[int, ProviderAccount],
    answers: Mapping[_DueMessage, Answer],
) -> None:
    """Apply the receipts as those of callbacks, and store when to poll again."""
    found: dict[UUID, list[AccountReceipt]] = {}
    to_lock: set[str] = set()
    for each, answer in answers.items():
        row = rows[each.account_id]
        reported = _receipts(row.kind, each, answer)
        found[each.attempt_id] = [AccountReceipt(row.pk, receipt) for receipt in reported]
        if any(map(receipts.needs_gate_lock, reported)):
            to_lock.add(row.organization_id)
    unfinished = {
        each.attempt_id for each in due if each.status in OPEN_STATUSES and each.account_id in rows
    }
    with transaction.atomic():
        gate_lock.take_exclusive(to_lock)
        early = receipts.apply_provider_receipts(found).early
        unfinished -= {key for key, entries in found.items() if _is_final(entries)} - early
        now = clock.now()
        sql.update(
            ProviderReference,
            [
                {
                    "id": each.attempt_id,
                    "ask_at": _next_poll(each, now) if each.attempt_id in unfinished else None,
                }
                for each in due
            ],
        )


def _receipts(kind: str, each: _DueMessage, answer: Answer) -> list[DeliveryReceipt]:
    """Return the receipts of an answer; count and log codes that the provider's tables lack."""
    found = []
    for item in answer or ():
        if isinstance(item, DeliveryReceipt):
            found.append(item)
        else:
            unknown_codes.count(kind, item.code)
            code, attempt = item.code[:32], str(each.attempt_id)
            log.warning("poll.unknown_code", kind=kind, code=code, attempt=attempt)
    return found


def _is_final(entries: Sequence[AccountReceipt]) -> bool:
    """Return whether a receipt gives a final status."""
    final = (Status.DELIVERED, Status.FAILED)
    return any(receipts.STATUS_OF.get(entry.receipt.type) in final for entry in entries)


def _next_poll(each: _DueMessage, now: datetime) -> datetime | None:
    """Return when the message is three times as old as now, at most a day; None after that."""
    sent_at = ids.moment(each.attempt_id)
    age = max(now - sent_at, provider_references.ASK_AFTER)
    return min(now + 2 * age, sent_at + LAST_AFTER) if age < LAST_AFTER else None
