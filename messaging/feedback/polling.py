"""Asking providers that cannot call us what became of messages: bounded, and seldomer with time.

A message is asked about after 15 s, and again whenever it has become three times as old: after
45 s, 2, 7 and 20 min, 1, 3 and 9 h, and last after a day. Nearly all arrive within seconds; Twilio
itself gives up after ten hours. So news is never older than twice the time that it took to come,
and a message of which nobody ever hears costs nine calls.

It ends when the delivery has its final status. No answer is no news: it opens no circuit.
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
from messaging.models import Attempt, Delivery, ProviderAccount, ProviderReference
from messaging.models.statuses import Status
from messaging.policy import organization_policy
from messaging.providers import unknown_codes
from rme.core import ids
from rme.core.db import clock, locks, sql
from rme.core.provider import AcceptedMessage, DeliveryReceipt, UnknownCode
from rme.transport import Transport, run_concurrently

log = structlog.get_logger(__name__)

ACCOUNTS = 5
"""So many are asked side by side, chosen at random: a silent one holds up no other."""
EACH = 50
LEASE_SECONDS = 60
"""Whose worker died with it in hand is asked about again after that."""
LAST = timedelta(days=1)
OPEN = frozenset({Status.ACCEPTED, Status.SENDING, Status.SENT, Status.UNKNOWN})
"""Others are final. A delivery that is sent once more may still be confirmed by its first."""

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
    ORDER BY t.ask_at LIMIT {EACH} FOR UPDATE SKIP LOCKED) own
), taken AS (
  UPDATE {_T} t SET ask_at = statement_timestamp() + interval '{LEASE_SECONDS} seconds'
  FROM due WHERE {sql.by_key("t.id", "due.id")} RETURNING t.id, t.account_id, t.reference
)
SELECT t.id, t.account_id, t.reference, d.status FROM taken t
LEFT JOIN {Attempt._meta.db_table} a ON a.id = t.id
LEFT JOIN {Delivery._meta.db_table} d ON d.id = a.delivery_id
"""

Told = Sequence[DeliveryReceipt | UnknownCode] | None


class _Due(NamedTuple):
    """A message to be asked about, and where its delivery stands; None if that is gone."""

    attempt_id: UUID
    account_id: int
    reference: str
    status: str | None


def poll(transport: Transport, until: float) -> None:
    """Ask about what is due, until a moment of the monotonic clock; one worker at a time does."""
    with locks.alone("messaging.poll") as alone:
        silent: set[int] = set()
        while alone and time.monotonic() < until:
            asked, unanswered = poll_batch(transport, silent)
            if not asked:
                return
            silent |= unanswered


def poll_batch(transport: Transport, silent: Collection[int] = ()) -> tuple[int, set[int]]:
    """Ask about one batch, but not accounts that were silent just now.

    Gives how many messages that were, and the accounts that were silent now. The number of
    statements does not grow with the messages.
    """
    due = _take(silent)
    if not due:
        return 0, set()
    rows = ProviderAccount.objects.in_bulk({each.account_id for each in due})
    told = _ask([each for each in due if each.status in OPEN], rows, transport)
    _apply(due, rows, told)
    unanswered = Counter(each.account_id for each, said in told.items() if said is None)
    for account_id, count in unanswered.items():
        log.warning("poll.unanswered", account_id=account_id, count=count)
    return len(due), set(unanswered)


def _take(silent: Collection[int]) -> list[_Due]:
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, [list(silent)])
        return [_Due(*row) for row in cursor.fetchall()]


def _ask(
    due: Sequence[_Due], rows: Mapping[int, ProviderAccount], transport: Transport
) -> dict[_Due, Told]:
    """Ask all accounts side by side. No transaction is open."""
    by_account: defaultdict[int, list[_Due]] = defaultdict(list)
    for each in due:
        by_account[each.account_id].append(each)
    found: list[list[_Due]] = []
    jobs: list[Callable[[Transport], list[Told]]] = []
    for account_id, group in by_account.items():
        row = rows.get(account_id)
        provider = organization_policy.account_of(row).provider if row else None
        if provider is not None:  # else its settings are broken, which the log says
            taken = [AcceptedMessage(each.attempt_id, each.reference) for each in group]
            found.append(group)
            jobs.append(partial(provider.poll, taken))
    heard = run_concurrently(jobs, transport)
    return {
        each: said
        for group, answers in zip(found, heard, strict=True)
        for each, said in zip(group, answers, strict=True)
    }


def _apply(
    due: Sequence[_Due], rows: Mapping[int, ProviderAccount], told: Mapping[_Due, Told]
) -> None:
    """Apply what was told as calls are, and write down when to ask again."""
    reports: dict[UUID, list[tuple[int, DeliveryReceipt]]] = {}
    deciding: set[str] = set()
    for each, said in told.items():
        row, news = rows[each.account_id], _reports(rows[each.account_id].kind, each, said)
        reports[each.attempt_id] = [(row.pk, report) for report in news]
        if any(map(receipts.needs_gate_lock, news)):
            deciding.add(row.organization_id)
    open_ones = {each.attempt_id for each in due if each.status in OPEN and each.account_id in rows}
    with transaction.atomic():
        gate_lock.take_exclusive(deciding)
        early = receipts.apply_provider_receipts(reports)
        now = clock.now()
        asked_again = open_ones - ({key for key in reports if _is_over(reports[key])} - early)
        sql.update(
            ProviderReference,
            [
                {
                    "id": each.attempt_id,
                    "ask_at": _next(each, now) if each.attempt_id in asked_again else None,
                }
                for each in due
            ],
        )


def _reports(kind: str, each: _Due, told: Told) -> list[DeliveryReceipt]:
    """Give what was reported; codes that no table has are counted, and told of in the log."""
    reports = []
    for said in told or ():
        if isinstance(said, DeliveryReceipt):
            reports.append(said)
        else:
            unknown_codes.count(kind, said.code)
            code, attempt = said.code[:32], str(each.attempt_id)
            log.warning("poll.unknown_code", kind=kind, code=code, attempt=attempt)
    return reports


def _is_over(entries: Sequence[tuple[int, DeliveryReceipt]]) -> bool:
    """Say whether there will be no more news."""
    ends = (Status.DELIVERED, Status.FAILED)
    return any(receipts.TARGET.get(said.type) in ends for _, said in entries)


def _next(each: _Due, now: datetime) -> datetime | None:
    """Say when a message is three times as old as now, at most a day; None after that."""
    sent_at = ids.moment(each.attempt_id)
    age = max(now - sent_at, provider_references.ASK_AFTER)
    return min(now + 2 * age, sent_at + LAST) if age < LAST else None
