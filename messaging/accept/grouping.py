"""Single calls that arrive at the same time are accepted together, as one set.

A call that arrives while no other is being stored is stored at once, by its own thread. Those that
arrive meanwhile wait until the running set ends; then the thread of the first of them accepts all
that wait. So nobody waits for a timer, and sets grow with the load.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType

import structlog
from django.conf import settings
from django.db import IntegrityError

from messaging.accept.acceptance import Call, Wait, accept, accept_set
from messaging.accept.idempotency import KeyScope
from messaging.accept.requests import MessageInput
from messaging.accept.results import Result, SendResult
from rme.core import errors, ids
from rme.core.db import availability

log = structlog.get_logger(__name__)

Outcome = Result | errors.ApiError

SET_SIZE = 64
"""The most calls of a set: what one of them waits for stays small."""
QUEUE_SIZE = 256
"""The most calls that wait for the running set to end. More get 503: they may come again."""


class _Waiting:
    """A call that waits: for its turn to accept a set, or for its outcome."""

    __slots__ = ("call", "calls", "outcome", "refusal", "turn")

    def __init__(self, call: Call) -> None:
        self.call = call
        self.turn = threading.Lock()
        self.turn.acquire()
        self.calls: list[_Waiting] = []
        """The set that its thread has to accept; empty: another thread has accepted it."""
        self.outcome: Outcome | None = None
        """None: its set failed, and it has to be accepted by itself."""


class Grouping:
    """Accepts calls by sets, one set at a time."""

    def __init__(
        self,
        accept_calls: Callable[[Sequence[Call]], Sequence[Outcome]] = accept_set,
        *,
        queue_size: int = QUEUE_SIZE,
    ) -> None:
        self._accept_calls = accept_calls
        self._queue_size = queue_size
        self._lock = threading.Lock()
        self._running = False
        self._queue: deque[_Waiting] = deque()

    @property
    def waiting(self) -> int:
        """Return how many calls wait for the running set to end."""
        return len(self._queue)

    def accept(self, call: Call) -> Result:
        """Accept a call with those that wait, and return its result, as `acceptance.accept` does.

        Raises Unavailable if too many calls wait, or this one has waited too long.
        """
        own = _Waiting(call)
        with self._lock:
            leads = not self._running
            if leads:
                self._running = True
                own.calls = [own]
            elif len(self._queue) >= self._queue_size:
                raise _busy()
            else:
                self._queue.append(own)
        if not leads:
            availability.give_back()  # else those that wait may hold all that the pool has
            self._await_turn(own)
        if own.calls:
            with _Set(self, own.calls):
                outcomes = self._accept_calls([each.call for each in own.calls])
                for each, outcome in zip(own.calls, outcomes, strict=True):
                    each.outcome = outcome
        result = accept(call) if own.outcome is None else own.outcome
        if isinstance(result, errors.ApiError):
            raise result
        return result

    def _await_turn(self, own: _Waiting) -> None:
        if own.turn.acquire(timeout=settings.DATABASE_SECONDS):
            return
        with self._lock:
            if own in self._queue:
                self._queue.remove(own)
                raise _busy()
        own.turn.acquire()  # it is in the set that runs, whose statements end in time

    def hand_over(self) -> None:
        """Let the first call that waits accept the next set."""
        with self._lock:
            following = self._take_set()
            self._running = bool(following)
        if following:
            following[0].calls = following
            following[0].turn.release()

    def _take_set(self) -> list[_Waiting]:
        """Take calls out of the queue. One whose key is in the set waits for the next set, so that
        it gets the stored answer.
        """
        taken: list[_Waiting] = []
        repeats: list[_Waiting] = []
        scopes: set[KeyScope] = set()
        while self._queue and len(taken) < SET_SIZE:
            each = self._queue.popleft()
            scope = each.call.scope
            if scope is not None and scope in scopes:
                repeats.append(each)
                continue
            if scope is not None:
                scopes.add(scope)
            taken.append(each)
        self._queue.extendleft(reversed(repeats))
        return taken


class _Set:
    """The time in which a set is accepted. At its end all threads of the set go on."""

    def __init__(self, grouping: Grouping, calls: Sequence[_Waiting]) -> None:
        self._grouping, self._calls = grouping, calls

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        """Hand over, and return whether a failure is to be forgotten: each call is accepted alone.

        While the database is away it is not: the set may have been stored, and is never repeated.
        """
        self._grouping.hand_over()
        unavailable = error is not None and availability.is_unavailable(error)
        others = self._calls[1:]
        for each in others:
            if error is not None and (unavailable or not isinstance(error, Exception)):
                each.outcome = errors.Unavailable(headers={"Retry-After": "5"})
            each.turn.release()
        if unavailable or not isinstance(error, Exception):
            return False
        if others:
            log.warning("accept.set_failed", calls=len(self._calls), exc_info=error)
        return bool(others) or isinstance(error, IntegrityError)


def _busy() -> errors.Unavailable:
    return errors.Unavailable("Too many calls are waiting.", headers={"Retry-After": "1"})


_grouping = Grouping()
alone = threading.BoundedSemaphore(settings.WEB_THREADS)
"""Calls that are accepted by themselves: each has a database connection for as long as it takes."""


def accept_single(call: Call, *, wait: Wait | None = None) -> Result:
    """Accept one message, together with others that are sent at the same time.

    The result is that of `accept`. Calls that may take long go by themselves: those that need
    another system, that have several recipients, or that hold a key while they wait. Not inside of
    a transaction, whose end would decide of the others too.
    """
    if (wait and call.scope) or not _is_quick(call):
        return _accept_alone(call, wait)
    result = _grouping.accept(call)
    return wait(result) if wait and isinstance(result, SendResult) else result


def _accept_alone(call: Call, wait: Wait | None) -> Result:
    availability.give_back()
    if not alone.acquire(timeout=settings.DATABASE_SECONDS):
        raise _busy()
    try:
        return accept(call, wait=wait)
    finally:
        alone.release()


def _is_quick(call: Call) -> bool:
    """Return whether a message is for one contact that is in our database, and names no record."""
    message = call.submission.message
    if not isinstance(message, MessageInput) or len(message.to) > 1:
        return False
    has_record = message.context is not None and message.context.record_id is not None
    return not has_record and ids.is_canonical(message.to[0].contact_id)
