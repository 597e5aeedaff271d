"""Requests on their way over a link, and who waits for them."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from rme.transport.messages import Failure, FailureKind
from rme.transport.smpp.pdu import Pdu

Answer = Pdu | Failure


@dataclass(slots=True, eq=False)
class PendingRequest:
    """One request: what is to be sent, and what came of it."""

    body: bytes
    by: float
    """When it must have been written, and then when it must have been answered (monotonic)."""
    done: Callable[[], None]
    answer: Answer | None = None
    end: int = 0
    """The place in all that is written at which its last byte stands."""
    whole: bool = False

    def settle(self, answer: Answer) -> None:
        if self.answer is None:
            self.answer = answer
            self.done()

    def lose(self, reason: str) -> None:
        kind = FailureKind.UNKNOWN if self.whole else FailureKind.NOT_SENT
        self.settle(Failure(kind, reason))


@dataclass(slots=True)
class Countdown:
    """How many are still out, for one who waits for all."""

    left: int
    nothing: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    """The link's thread counts, and whoever gives a request back."""

    def down(self) -> None:
        with self.lock:
            self.left -= 1
            if self.left <= 0:
                self.nothing.set()
