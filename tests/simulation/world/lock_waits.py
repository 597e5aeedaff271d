"""Waiting for PostgreSQL's locks: a thread that waits for one lets others go on.

Threads take turns within transactions in some histories. A statement may then wait for a lock of a
thread that waits for its turn. PostgreSQL knows who waits (`pg_blocking_pids`). Locks are released
by what another thread does, so after that it is looked up who waits no longer: the order of a
history does not depend on how fast the machine is.
"""

import select
import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import waiting

from tests.simulation.world.turns import Killed, Turns

QUICK_SECONDS = 0.004
"""What is answered within this time is not looked up."""
LOOK_SECONDS = 0.001
STALLED_SECONDS = 20.0
_BLOCKED = "SELECT cardinality(pg_blocking_pids(%s)) > 0"


@dataclass(eq=False)
class _Statement:
    """A statement that waits for a lock."""

    raw: psycopg.Connection[Any]
    is_answered: bool = False


class LockWaits:
    """The statements that wait for locks."""

    def __init__(self, server: psycopg.Connection[Any]) -> None:
        """`server` is a connection of its own, on which it is looked up who waits."""
        self._server = server
        self._waiting: list[_Statement] = []

    def exchange(
        self, turns: Turns, raw: psycopg.Connection[Any], gen: Generator[Any, Any, Any]
    ) -> Any:
        """Run an exchange with the server; while it waits for a lock, others have their turns."""
        killed: Killed | None = None
        try:
            ready = waiting.Ready.NONE
            wanted = next(gen)
            while True:
                ready = _poll(raw, wanted, QUICK_SECONDS)
                if ready:
                    wanted = gen.send(ready)
                elif killed is None and self._is_blocked(raw):
                    try:
                        self._wait(turns, raw)
                    except Killed as error:  # what a dead process asked for is not done
                        killed = error
                        raw.cancel_safe()
        except StopIteration as end:
            return end.value
        finally:
            self.settle()
            if killed is not None:
                raise killed

    def _wait(self, turns: Turns, raw: psycopg.Connection[Any]) -> None:
        statement = _Statement(raw)
        self._waiting.append(statement)
        turns.note("waits for a lock")
        try:
            while not turns.wait(lambda: statement.is_answered):
                pass
        finally:
            self._waiting.remove(statement)

    def settle(self) -> None:
        """Find out who waits no longer; what is answered may go on when it has its turn."""
        for statement in self._waiting:
            while not statement.is_answered:
                if _poll(statement.raw, waiting.Wait.R, 0.0):
                    statement.is_answered = True
                elif self._is_blocked(statement.raw):
                    break
                else:
                    time.sleep(LOOK_SECONDS)

    def stalled(self) -> bool:
        """Wait until PostgreSQL ends a deadlock; return whether anybody waits."""
        until = time.monotonic() + STALLED_SECONDS
        while self._waiting and time.monotonic() < until:
            self.settle()
            if any(each.is_answered for each in self._waiting):
                return True
            time.sleep(QUICK_SECONDS)
        return False

    def _is_blocked(self, raw: psycopg.Connection[Any]) -> bool:
        row = self._server.execute(_BLOCKED, [raw.info.backend_pid]).fetchone()
        return bool(row and row[0])


def _poll(raw: psycopg.Connection[Any], wanted: int, seconds: float) -> int:
    """Return which of the wanted directions is ready; 0 if none is in time."""
    poll = select.poll()
    number = raw.pgconn.socket
    flags = (select.POLLIN if wanted & waiting.Wait.R else 0) | (
        select.POLLOUT if wanted & waiting.Wait.W else 0
    )
    poll.register(number, flags)
    found = poll.poll(seconds * 1000)
    if not found:
        return 0
    event = found[0][1]
    failed = event & ~(select.POLLIN | select.POLLOUT)
    return (waiting.Ready.R if event & select.POLLIN or failed else 0) | (
        waiting.Ready.W if event & select.POLLOUT else 0
    )
