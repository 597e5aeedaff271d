"""Requests in flight on a session, and the count a caller waits for."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from rme.transport.messages import Failure, FailureKind
from rme.transport.smpp.pdu import Pdu

Answer = Pdu | Failure


@dataclass(slots=True, eq=False)
class PendingRequest:
    """One request, and its answer."""

    body: bytes
    by: float
    """The deadline (monotonic): for writing it first, then for its answer."""
    on_end: Callable[[], None]
    answer: Answer | None = None
    end: int = 0
    """The position of its last byte among all bytes that the session writes."""
    is_written: bool = False

    def settle(self, answer: Answer) -> None:
        if self.answer is None:
            self.answer = answer
            self.on_end()

    def lose(self, reason: str) -> None:
        kind = FailureKind.UNKNOWN if self.is_written else FailureKind.NOT_SENT
        self.settle(Failure(kind, reason))


@dataclass(slots=True)
class Countdown:
    """The number of requests without an answer; `finished` is set at zero."""

    remaining: int
    finished: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    """The session's thread and the caller's both count."""

    def down(self) -> None:
        with self.lock:
            self.remaining -= 1
            if self.remaining <= 0:
                self.finished.set()
