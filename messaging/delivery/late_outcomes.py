"""Store outcomes that came after their window had gone on, or that could not be stored before.

A thread of the process does it, as there may be no other to do it: a delivery that was left
unanswered is in doubt until its outcome is stored, and counts against the next window. So a process
whose outcomes cannot be stored (the database is away, its disk full) has no room left after one
window, and sends nothing before a write has succeeded.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from time import monotonic, sleep

import structlog
from django.db import (
    DatabaseError,
    DataError,
    IntegrityError,
    InterfaceError,
    ProgrammingError,
    connections,
)

from messaging.delivery import record
from messaging.delivery.accounts import circuit_history, concurrency
from messaging.delivery.accounts.concurrency import ProcessLoad
from messaging.delivery.outgoing import OutgoingDelivery
from messaging.delivery.record import Answered
from messaging.domain.progress.receipts import Receipt
from rme.core.db import availability, clock, prepared_statements
from rme.core.process import threads

log = structlog.get_logger(__name__)

RETRY_SECONDS = 0.25
RETRY_LIMIT = 5.0
_ROW_ERRORS = (DataError, IntegrityError, ProgrammingError, TypeError, ValueError)
"""Errors of one row, and not of the database."""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """What the caller of the send loop wants to happen once outcomes are stored."""

    on_receipts: Callable[[Sequence[Receipt]], object]
    """Called with the receipts that came with outcomes (the simulator's)."""
    on_room: Callable[[], object]
    """Called when all late outcomes are stored: there is room for more deliveries."""


@dataclass(slots=True)
class _Item:
    """Deliveries whose outcomes are to be stored."""

    answers: list[Answered]
    follow_up: FollowUp


class LateOutcomes:
    """The outcomes that a process has to store, and the thread that stores them."""

    def __init__(self, load: ProcessLoad) -> None:
        """Count in `load` what is in doubt."""
        self._load = load
        self._items: SimpleQueue[_Item] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def store_late(self, deliveries: Sequence[OutgoingDelivery], follow_up: FollowUp) -> None:
        """Apply and store the outcomes of deliveries whose last outcome came late. They are in
        doubt until then.
        """
        self._add(_Item([Answered(each, []) for each in deliveries], follow_up))

    def store_again(self, answers: Sequence[Answered], follow_up: FollowUp) -> None:
        """Store outcomes that the send loop could not store, and apply those that it had not
        applied.

        Deliveries that were about to fail over are released.
        """
        if answers:
            item = _Item([_without_failover(each) for each in answers], follow_up)
            self._load.add_in_doubt(len(answers))
            self._add(item)

    def finish(self, seconds: float) -> bool:
        """Wait until nothing of this process is in doubt; return whether that is so."""
        until = monotonic() + seconds
        while self._load.in_doubt and monotonic() < until:
            sleep(0.02)
        return not self._load.in_doubt

    def _add(self, item: _Item) -> None:
        self._items.put(item)
        with self._lock:
            if self._thread is None:
                self._thread = threads.start(self._run, name="late outcomes")

    def _run(self) -> None:
        while True:
            item = self._items.get()
            try:
                _store(item)
            except MemoryError as error:
                threads.end_process("an outcome had no memory", error=str(error))
            except Exception:
                ids = [each.delivery.claimed.id for each in item.answers]
                log.exception("deliver.left_behind", delivery_ids=ids)
            finally:
                self._load.add_in_doubt(-len(item.answers))
                if self._items.empty():
                    connections.close_all()
                    item.follow_up.on_room()


def _without_failover(answer: Answered) -> Answered:
    """Release a delivery that was about to fail over. Its next attempt may have been committed all
    the same, with the answer to the commit lost: it is removed.
    """
    delivery, attempts, _ = answer
    if delivery.decided or not attempts:
        return answer
    not_made = delivery.cancel_attempts()
    delivery.release(clock.now())
    return Answered(delivery, attempts, not_made)


def _store(item: _Item) -> None:
    """Apply and store the outcomes of an item; tries again for as long as the database is away."""
    late_deliveries = [each.delivery for each in item.answers if not each.attempts]
    _report_to_circuits(late_deliveries)
    now = clock.now()
    for delivery in late_deliveries:
        delivery.apply_outcomes(now=now, may_fail_over=False)
    answers = [
        each if each.attempts else Answered(each.delivery, each.delivery.take_attempts())
        for each in item.answers
    ]
    wait = RETRY_SECONDS
    while True:
        try:
            _record(answers)
            break
        except _ROW_ERRORS:
            for answer in answers:
                _record_alone(answer)
            break
        except (DatabaseError, InterfaceError) as error:
            availability.count_failure(error)
            log.warning("deliver.not_stored", count=len(answers), error=type(error).__name__)
            connections.close_all()
        sleep(wait)
        wait = min(2 * wait, RETRY_LIMIT)
    if receipts := record.receipts(answers):
        item.follow_up.on_receipts(receipts)


def _record(answers: Sequence[Answered]) -> None:
    deliveries = [each.delivery for each in answers]
    with prepared_statements.transaction() as batch:
        changed = record.record(deliveries, record.outcomes(answers), batch)
    record.log_fenced(deliveries, changed)
    record.count_sent(deliveries)


def _record_alone(answer: Answered) -> None:
    """Store one delivery of a set that can't be stored together; the log shows which one failed."""
    try:
        _record([answer])
    except _ROW_ERRORS:
        log.exception("deliver.not_storable", delivery_id=answer.delivery.claimed.id)


def _report_to_circuits(late_deliveries: Sequence[OutgoingDelivery]) -> None:
    """Report late outcomes. An account that left a send unanswered, and then failed, is tried last
    for some seconds.
    """
    attempts = [attempt for delivery in late_deliveries for attempt in delivery.attempts]
    record.count_outcomes(attempts)
    circuit_history.report(
        [(each.account.id, each.outcome) for each in attempts if each.outcome is not None],
        rest_seconds=concurrency.REST_SECONDS,
    )
