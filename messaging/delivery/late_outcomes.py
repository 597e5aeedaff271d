"""Storing outcomes that came after their window had gone on, or that could not be stored before.

A thread of the process does it, since nobody else may be there to: a delivery that was left behind
is in doubt until its outcome is stored, and counts against the next window. So a process whose
outcomes cannot be stored (the database is away, its disk full) has no room left after one window,
and sends nothing before a write has succeeded.
"""

import os
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
from messaging.delivery.accounts import circuits, concurrency
from messaging.delivery.next_steps import Sending, Shot
from messaging.feedback.receipts import Receipt
from rme.core.db import clock, prepared_statements

log = structlog.get_logger(__name__)

Told = Callable[[Sequence[Receipt]], object]
Freed = Callable[[], object]
RETRY_SECONDS = 0.25
RETRY_LIMIT = 5.0
_FAULTS = (DataError, IntegrityError, ProgrammingError, TypeError, ValueError)
"""What is wrong with a row, and not with the database."""


@dataclass(slots=True)
class _Item:
    """Deliveries, each with its attempts whose outcomes are to be stored."""

    answered: list[tuple[Sending, list[Shot]]]
    then: "Then"


@dataclass(frozen=True, slots=True)
class Then:
    """What follows once outcomes are stored."""

    told: Told
    """Is given the receipts that came with answers (the simulator's)."""
    freed: Freed
    """Is called when what was left behind has ended: there is room for more."""


def store_late(sendings: Sequence[Sending], then: Then) -> None:
    """Have deliveries judged and stored whose last outcome has come now. They are in doubt."""
    _process.add(_Item([(each, []) for each in sendings], then))


def store_again(answered: Sequence[tuple[Sending, list[Shot]]], then: Then) -> None:
    """Have stored what the loop could not store. What was to be tried once more goes back."""
    now = clock.now()
    for sending, _ in answered:
        if not sending.decided:
            sending.take_back()
            sending.put_back(now)
    concurrency.add_doubt(len(answered))
    if answered:
        _process.add(_Item(list(answered), then))


def finish(seconds: float) -> bool:
    """Wait until nothing of this process is in doubt any more; return whether it is so."""
    until = monotonic() + seconds
    while concurrency.in_doubt() and monotonic() < until:
        sleep(0.02)
    return not concurrency.in_doubt()


class _Process:
    """What this process has to store, and the thread that stores it."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew: on the other side of a fork there is no thread, and nothing to store."""
        self.items: SimpleQueue[_Item] = SimpleQueue()
        self.lock = threading.Lock()
        self.thread: threading.Thread | None = None

    def add(self, item: _Item) -> None:
        self.items.put(item)
        with self.lock:
            if self.thread is None:
                self.thread = threading.Thread(target=self._run, name="left behind", daemon=True)
                self.thread.start()

    def _run(self) -> None:
        while True:
            item = self.items.get()
            try:
                _store(item)
            except Exception:
                ids = [sending.claimed.id for sending, _ in item.answered]
                log.exception("deliver.left_behind", delivery_ids=ids)
            finally:
                concurrency.add_doubt(-len(item.answered))
                if self.items.empty():
                    connections.close_all()
                    item.then.freed()


_process = _Process()


os.register_at_fork(after_in_child=_process.forget)


def _store(item: _Item) -> None:
    """Judge and store an item, however long the database is away."""
    late = [sending for sending, shots in item.answered if not shots]
    _report(late)
    now = clock.now()
    for sending in late:
        sending.judge(now=now, may_go_on=False)
    answered = [(sending, shots or sending.heard()) for sending, shots in item.answered]
    wait = RETRY_SECONDS
    while True:
        try:
            _record(answered)
            break
        except _FAULTS:
            for each in answered:
                _record_alone(each)
            break
        except (DatabaseError, InterfaceError) as error:
            log.warning("deliver.not_stored", count=len(answered), error=type(error).__name__)
            connections.close_all()
        sleep(wait)
        wait = min(2 * wait, RETRY_LIMIT)
    found = [receipt for each, shots in answered for receipt in each.receipts(shots)]
    if found:
        item.then.told(found)


def _record(answered: record.Answered) -> None:
    sendings = [sending for sending, _ in answered]
    with prepared_statements.transaction():
        moved = record.record(sendings, record.outcomes(answered))
    record.log_fenced(sendings, moved)


def _record_alone(answered: tuple[Sending, list[Shot]]) -> None:
    """Store one delivery of several of which one cannot be stored; the log shows which."""
    try:
        _record([answered])
    except _FAULTS:
        log.exception("deliver.not_storable", delivery_id=answered[0].claimed.id)


def _report(late: Sequence[Sending]) -> None:
    """Tell the circuits. Others go before an account that left a send behind, and then failed."""
    shots = [shot for sending in late for shot in sending.shots]
    circuits.report(
        [(shot.account.id, shot.outcome) for shot in shots if shot.outcome is not None],
        rest=concurrency.REST_SECONDS,
    )
