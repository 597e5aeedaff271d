"""What a process that sends has: made when it starts, and passed down."""

from collections.abc import Callable
from time import monotonic

from messaging.content.outgoing import OutgoingRenderer
from messaging.delivery.accounts.concurrency import THREADS, ProcessLoad
from messaging.delivery.late_outcomes import LateOutcomes
from rme.core.process.threads import Threads


class SendingProcess:
    """The sending threads of a process, and what it has to remember between windows and tasks."""

    def __init__(
        self, threads: Threads | None = None, clock: Callable[[], float] = monotonic
    ) -> None:
        """Start no thread yet. `clock` returns seconds."""
        self.threads = threads or Threads(THREADS, "sending")
        self.load = ProcessLoad(clock)
        self.late_outcomes = LateOutcomes(self.load)
        self.renderer = OutgoingRenderer()
