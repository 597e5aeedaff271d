"""The faults of a history: drawn from the seed at each point where one can happen."""

from collections.abc import Sequence
from random import Random

import psycopg
from psycopg.errors import ReadOnlySqlTransaction

from tests.simulation.world.clock import VirtualClock
from tests.simulation.world.turns import LogicalThread, Turns, current

INTENSITIES = (0.0, 0.01, 0.03, 0.06)
"""How likely a fault is at each point; a history has one of these."""
IN_WORKERS, ELSEWHERE = 2.5, 0.5
"""How many times as likely: what workers leave behind is the harder part."""
MOST = 6
"""The most faults of a history."""
FROZEN_SECONDS = (2.0, 35.0, 62.0, 66.0, 70.0, 75.0, 140.0, 200.0)
"""How long a process is frozen: less than half a lease, more than half, and more than the lease;
often so that it goes on while its successor is at work.
"""
JUMPS = (1.0, 4.0, 31.0, 61.0, 125.0)
READ_ONLY = "database is read-only"
BEFORE = ("database refused", READ_ONLY, "killed before a transaction",
          "frozen before a transaction")  # fmt: skip
AFTER = ("answer of a commit lost", "killed after a transaction")
WITHIN = ("killed within a transaction", "frozen within a transaction",
          "connection lost within a transaction")  # fmt: skip
CALLED = ("killed in a call", "frozen in a call")
INTERLEAVED = 0.35
"""In how many histories threads take turns within transactions, too."""

SLOW_COMMITS, SLOW_COMMIT_SECONDS = 0.3, (0.02, 0.1, 0.4)
"""How many commits take so long where threads take turns within transactions: what a lock keeps out
meanwhile would come between.
"""


class Faults:
    """The faults of one history."""

    def __init__(self, rng: Random, turns: Turns, clock: VirtualClock) -> None:
        self.rng, self.turns, self.clock = rng, turns, clock
        self.intensity = rng.choice(INTENSITIES)
        self.left = MOST if self.intensity else 0
        self.turns.jumps = JUMPS if rng.random() < 0.7 else ()
        self.interleaves = rng.random() < INTERLEAVED

    def stop(self) -> None:
        """Let no more faults happen, so that the world comes to rest."""
        self.left, self.turns.jumps = 0, ()

    def chance(self, share: float) -> bool:
        """Return whether something happens that happens in this share of cases; never at rest."""
        return self.left > 0 and self.rng.random() < share

    def before_transaction(self, thread: LogicalThread) -> None:
        """Let others go first; then a fault may happen before anything is done."""
        self.turns.pause("transaction")
        self._draw(BEFORE, thread)
        self.clock.publish()

    def within_transaction(self, thread: LogicalThread) -> None:
        """Let others go first, between two statements of a transaction."""
        self.turns.pause("statement")
        self._draw(WITHIN, thread)
        self.clock.publish()

    def before_commit(self) -> None:
        """Let a commit take its time, as where it waits for a disk or a standby."""
        thread = current()
        if thread is not None and not thread.process.killed and self.rng.random() < SLOW_COMMITS:
            self.turns.sleep(self.rng.choice(SLOW_COMMIT_SECONDS))
            self.clock.publish()

    def after_transaction(self, thread: LogicalThread) -> None:
        """A fault may happen after all was done: the thread does not learn of it."""
        self.clock.advance(0.000_5)
        self._draw(AFTER, thread)

    def in_call(self) -> None:
        """A fault may happen in a call of a provider."""
        thread = current()
        assert thread is not None
        self._draw(CALLED, thread)

    def _draw(self, kinds: Sequence[str], thread: LogicalThread) -> None:
        share = IN_WORKERS if thread.process.name.startswith("worker") else ELSEWHERE
        if not self.chance(share * self.intensity):
            return
        self.left -= 1
        kind = self.rng.choice(kinds)
        self.turns.fault(kind)
        process = thread.process
        if kind.startswith("killed"):
            self.turns.kill(process)
        elif kind.startswith("frozen"):
            process.was_stopped = True
            process.frozen_until = self.clock.after(self.rng.choice(FROZEN_SECONDS))
            self.turns.wait(lambda: True)
            self.clock.publish()
            return
        process.failures += 1
        if kind == READ_ONLY:
            raise ReadOnlySqlTransaction(f"simulated: {kind}")
        raise psycopg.OperationalError(f"simulated: {kind}")
