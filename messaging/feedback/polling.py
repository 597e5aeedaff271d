"""Polling: asks providers that make no callbacks for the status of messages.

`messaging.domain.timing` says when.

Polling ends when the delivery has a final status. A provider that does not answer is asked again
later; that opens no circuit.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from uuid import UUID

import structlog
from django.db import transaction

from messaging.consent import gate_lock
from messaging.domain.progress.receipts import STATUS_OF
from messaging.domain.statuses import Status
from messaging.domain.timing import next_poll
from messaging.feedback import receipts
from messaging.feedback.receipts import AccountReceipt
from messaging.models import ProviderAccount
from messaging.policy import organization_policy
from messaging.providers import unknown_codes
from messaging.store.feedback import references
from messaging.store.feedback.references import DueMessage
from rme.core import ids
from rme.core.db import clock, locks
from rme.core.provider import DeliveryReceipt, SentMessage, UnknownCode
from rme.tenants import organizations
from rme.transport import Transport, run_concurrently

log = structlog.get_logger(__name__)

OPEN_STATUSES = frozenset({Status.ACCEPTED, Status.SENDING, Status.SENT, Status.UNKNOWN})
"""The statuses that are not final. ACCEPTED: a delivery that is sent again may still be confirmed
by its first attempt."""

Answer = Sequence[DeliveryReceipt | UnknownCode] | None
"""What a provider answered about a message; None if it did not answer."""


def poll(transport: Transport, until: float) -> None:
    """Poll what is due until a time (monotonic). One worker at a time does."""
    with locks.alone("messaging.poll") as has_lock:
        silent = _accounts_elsewhere()
        while has_lock and time.monotonic() < until:
            polled, unanswered = poll_batch(transport, silent)
            if not polled:
                return
            silent |= unanswered


def _accounts_elsewhere() -> set[int]:
    """Return the accounts of organizations that move elsewhere, or have moved."""
    if organizations.all_served():
        return set()
    rows = ProviderAccount.objects.exclude(organizations.served())
    return set(rows.values_list("pk", flat=True))


def poll_batch(transport: Transport, silent: Collection[int] = ()) -> tuple[int, set[int]]:
    """Poll one batch, without the accounts that have just been silent.

    Return the number of messages, and the accounts that did not answer. The number of statements
    does not depend on the number of messages.
    """
    due = references.take_due(silent)
    if not due:
        return 0, set()
    rows = ProviderAccount.objects.in_bulk({each.account_id for each in due})
    answers = _ask([each for each in due if each.status in OPEN_STATUSES], rows, transport)
    _apply(due, rows, answers)
    unanswered = Counter(each.account_id for each, answer in answers.items() if answer is None)
    for account_id, count in unanswered.items():
        log.warning("poll.unanswered", account_id=account_id, count=count)
    return len(due), set(unanswered)


def _ask(
    due: Sequence[DueMessage], rows: Mapping[int, ProviderAccount], transport: Transport
) -> dict[DueMessage, Answer]:
    """Ask all accounts side by side. No transaction is open."""
    by_account: defaultdict[int, list[DueMessage]] = defaultdict(list)
    for message in due:
        by_account[message.account_id].append(message)
    groups: list[list[DueMessage]] = []
    jobs: list[Callable[[Transport], list[Answer]]] = []
    for account_id, group in by_account.items():
        row = rows.get(account_id)
        provider = organization_policy.account_of(row).provider if row else None
        if provider is not None:  # else its settings are invalid, which is logged
            accepted = [SentMessage(message.attempt_id, message.reference) for message in group]
            groups.append(group)
            jobs.append(partial(provider.poll, accepted))
    reports = run_concurrently(jobs, transport)
    return {
        message: answer
        for group, answers in zip(groups, reports, strict=True)
        for message, answer in zip(group, answers, strict=True)
    }


def _apply(
    due: Sequence[DueMessage],
    rows: Mapping[int, ProviderAccount],
    answers: Mapping[DueMessage, Answer],
) -> None:
    """Apply the receipts as those of callbacks, and store when to poll again."""
    receipts_by_attempt: dict[UUID, list[AccountReceipt]] = {}
    to_lock: set[str] = set()
    for due_message, answer in answers.items():
        row = rows[due_message.account_id]
        reported = _receipts(row.kind, due_message, answer)
        receipts_by_attempt[due_message.attempt_id] = [
            AccountReceipt(row.pk, receipt) for receipt in reported
        ]
        if any(map(receipts.needs_gate_lock, reported)):
            to_lock.add(row.organization_id)
    unfinished = {
        due_message.attempt_id
        for due_message in due
        if due_message.status in OPEN_STATUSES and due_message.account_id in rows
    }
    with transaction.atomic():
        gate_lock.take_exclusive(to_lock)
        early = receipts.apply_provider_receipts(receipts_by_attempt).early
        unfinished -= {
            key for key, entries in receipts_by_attempt.items() if _is_final(entries)
        } - early
        now = clock.now()
        references.set_next_polls(
            {
                key: next_poll(ids.moment(key), now) if key in unfinished else None
                for key in (due_message.attempt_id for due_message in due)
            }
        )


def _receipts(kind: str, message: DueMessage, answer: Answer) -> list[DeliveryReceipt]:
    """Return the receipts of an answer; count and log codes that the provider's tables lack."""
    read_receipts = []
    for item in answer or ():
        if isinstance(item, DeliveryReceipt):
            read_receipts.append(item)
        else:
            unknown_codes.count(kind, item.code)
            code, attempt = item.code[:32], str(message.attempt_id)
            log.warning("poll.unknown_code", kind=kind, code=code, attempt=attempt)
    return read_receipts


def _is_final(entries: Sequence[AccountReceipt]) -> bool:
    """Return whether a receipt gives a final status."""
    final = (Status.DELIVERED, Status.FAILED)
    return any(STATUS_OF.get(entry.receipt.type) in final for entry in entries)
