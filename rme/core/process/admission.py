"""Admission: limit one organization's or person's share of a process.

- `FairPool` shares threads. Each owner's calls wait in their own line, and the lines take turns, so
  a thousand calls of one organization delay another's by one. An organization never gets the last
  thread, and a person never more than half of them.
- `ComputingTime` shares the interpreter. While another organization calls, the threads of one whose
  calls compute much rest between them, so that it computes half of the time at most.
- `Budget` shares seconds. An organization pays for costly work (a slow schema, a preview, a check
  of a host) from a balance that refills steadily, and waits while it is overdrawn.

Both count in memory: they protect one process, so processes have nothing to share.
"""

import math
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, NamedTuple, TypeVar, cast

from rme.core import errors
from rme.core.process.threads import Executor

R = TypeVar("R")

OTHERS_SECONDS = 2.0
"""How long an organization counts as one that calls."""
REST_SECONDS = 1.0
"""The longest rest of a thread."""
LINE_SIZE = 256
"""How many calls of one owner may wait."""
_OWNERS = 10_000
"""How many owners' spending a budget remembers."""


class Owners(NamedTuple):
    """The organization and person for whom a call runs; empty if unknown."""

    organization: str = ""
    person: str = ""

    @property
    def line(self) -> str:
        """Return the name of the line in which its calls wait."""
        return self.organization or (self.person and f"person {self.person}")

    @property
    def counted(self) -> tuple[tuple[str, str], ...]:
        """Return the kinds and names of the owners that its calls count for."""
        organization, person = self
        both = (("organization", organization), ("person", person))
        return tuple(each for each in both if each[1])


NOBODY = Owners()
TURN = "rme.turn"
"""The key of a request's turn in its environment."""
AWAITED = "rme.awaited"
"""The key of what a request has waited for, a future, when it starts again."""


def starts_again(environ: Mapping[str, object]) -> bool:
    """Return whether a refused request will run again when it is its owners' turn."""
    turn = environ.get(TURN)
    return isinstance(turn, Turn) and turn.starts_again


def claim(environ: Mapping[str, object], owners: Owners) -> None:
    """Count a request for its owners, once they are known and before it does anything.

    Raises RateLimited if they already have their share of threads; the gateway then lets it wait.
    """
    turn = environ.get(TURN)
    if isinstance(turn, Turn):
        turn.claim(owners)


def too_many() -> errors.RateLimited:
    """Return the error of a call whose owner has too many calls waiting."""
    return errors.RateLimited(
        "You or your organization sent too many requests at once. Send fewer, and retry after the "
        "seconds in Retry-After.",
        headers={"Retry-After": "1"},
    )


def claim_person(environ: Mapping[str, object], person: str) -> None:
    """Count a request for a person, whose organization is known later or never.

    Raises RateLimited, as `claim` does.
    """
    turn = environ.get(TURN)
    if isinstance(turn, Turn) and turn.owners.person != person:
        turn.claim(Owners("", person))


class Budget:
    """Seconds of work that each owner may use; they come back at a steady rate."""

    def __init__(self, rate: float, burst: float) -> None:
        """`rate`: seconds that an owner earns per second; `burst`: the most that it can save."""
        self.rate, self.burst = rate, burst
        self._debts: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """The seconds that each owner owes, and the time of that count."""
        self._lock = Lock()

    def require(self, owner: str) -> None:
        """Raise RateLimited, with `Retry-After`, if an owner has used all of its seconds."""
        if self.is_used_up(owner):
            over = self._debt(owner) - self.burst
            raise errors.RateLimited(
                "Your organization's previews, downloads and other costly work have used all the "
                "computing time that is available now. Retry after the seconds in Retry-After.",
                headers={"Retry-After": str(max(1, math.floor(over / self.rate) + 1))},
            )

    def is_used_up(self, owner: str) -> bool:
        """Return whether an owner has used all of its seconds."""
        return self._debt(owner) >= self.burst

    def charge(self, owner: str, seconds: float) -> None:
        """Count seconds that an owner has used."""
        debt = self._debt(owner) + seconds
        with self._lock:
            self._debts[owner] = (debt, time.monotonic())
            self._debts.move_to_end(owner)
            if len(self._debts) > _OWNERS:
                self._debts.popitem(last=False)

    def forget(self) -> None:
        """Return their seconds to all owners."""
        with self._lock:
            self._debts.clear()

    def _debt(self, owner: str) -> float:
        with self._lock:
            debt, at = self._debts.get(owner, (0.0, 0.0))
        return max(0.0, debt - self.rate * (time.monotonic() - at))


class ComputingTime:
    """The CPU time of organizations' calls. One that computes much gives way while others call.

    Threads that compute take turns of a millisecond, and a short call of another organization
    needs many: each thread more makes it wait longer.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._latest = self._other = ("", -math.inf)
        """Two organizations that called last, and when."""

    def note(self, organization: str) -> None:
        """Note that an organization calls."""
        latest = self._latest
        if organization != latest[0]:
            self._other = latest
        self._latest = (organization, time.monotonic())

    def gives_way(self, organization: str) -> bool:
        """Return whether an organization has computed much, and another one called lately."""
        since = time.monotonic() - OTHERS_SECONDS
        others = any(
            name != organization and at > since for name, at in (self._latest, self._other)
        )
        return others and self.budget.is_used_up(organization)


@dataclass(eq=False)
class Turn:
    """A call in a pool: it waits, runs, or has ended."""

    pool: "FairPool"
    owners: Owners
    call: Callable[["Turn"], Any]
    future: "Future[Any]" = field(default_factory=Future)
    claimed: Owners | None = None
    """Its owners, if it only learned them while it ran."""
    may_repeat: bool = False
    """Whether the call may run again, from its start."""
    starts_again: bool = False
    """Whether it must run again: its owners have their share of threads (`claim`), or it waits for
    something without a thread (`wait_for`).
    """
    awaited: "Future[Any] | None" = None
    """What it waits for before it runs again."""

    def claim(self, owners: Owners) -> None:
        """Count the running call for its owners, who are known now.

        Raises RateLimited if they already have their share: the call must wait in their line.
        """
        self.claimed = owners
        if self.pool.computing and owners.organization:
            self.pool.computing.note(owners.organization)
        if owners != self.owners:
            self.pool.move(self, owners)

    def wait_for(self, awaited: "Future[Any]") -> None:
        """Let the running call, which may repeat, end now and run again when a future is done."""
        self.awaited, self.starts_again = awaited, True


class FairPool:
    """Threads that the owners of calls share fairly."""

    def __init__(
        self,
        threads: int,
        name: str,
        *,
        line: int = LINE_SIZE,
        share: int | None = None,
        computing: ComputingTime | None = None,
    ) -> None:
        """`line`: how many calls of one owner may wait; `share`: how many threads an organization
        may use, by default all but one; `computing`: which of them give way to others.
        """
        self.size = line
        self.computing = computing
        share = max(1, threads - 1) if share is None else share
        self.shares = {"organization": share, "person": max(1, threads // 2)}
        self._free = threads
        self._executor = Executor(threads, name)
        self._running: Counter[tuple[str, str]] = Counter()
        self._lines: OrderedDict[str, deque[Turn]] = OrderedDict()
        self._lock = Lock()

    def submit(self, owners: Owners, call: Callable[[], R]) -> "Future[R]":
        """Run a call when it is its owners' turn. Raises RateLimited if too many wait."""
        return cast("Future[R]", self.enter(owners, lambda turn: call()).future)

    def enter(
        self, owners: Owners, call: Callable[[Turn], Any], *, may_repeat: bool = False
    ) -> Turn:
        """Run a call likewise, and pass it its turn, so that it can `claim` its owners."""
        turn = Turn(self, owners, call, may_repeat=may_repeat)
        if self.computing and owners.organization:
            self.computing.note(owners.organization)
        with self._lock:
            line = self._lines.setdefault(owners.line, deque())
            if len(line) >= self.size:
                line = self._lines[owners.line] = deque(t for t in line if not t.future.done())
            if len(line) >= self.size:
                raise too_many()
            line.append(turn)
            self._start()
        return turn

    def shutdown(self) -> None:
        """Wait for running calls, then end the threads."""
        self._executor.shutdown()

    def move(self, turn: Turn, owners: Owners) -> None:
        """Count a running call for other owners. Raises RateLimited if they have their share."""
        with self._lock:
            self._running.subtract(turn.owners.counted)
            refused = not self._fits(owners)
            if not refused:
                turn.owners = owners
            self._running.update(turn.owners.counted)
        if refused:
            turn.starts_again = turn.may_repeat
            raise too_many()

    def _start(self) -> None:
        """Start the next turn on each free thread."""
        while self._free and (turn := self._next()):
            self._free -= 1
            self._running.update(turn.owners.counted)
            self._executor.submit(self._run, turn)

    def _next(self) -> Turn | None:
        """Take the next turn of the line that has waited longest for one."""
        while (turn := self._take_next()) is not None:
            if turn.future.set_running_or_notify_cancel():
                return turn
        return None

    def _take_next(self) -> Turn | None:
        """Take the next turn, whose caller may have gone."""
        for name, line in list(self._lines.items()):
            if not self._fits(Owners(line[0].owners.organization)):
                continue  # the whole line is of one organization
            next_turn = next((turn for turn in line if self._may_start(turn)), None)
            if next_turn is None:
                continue
            line.remove(next_turn)
            if line:
                self._lines.move_to_end(name)
            else:
                del self._lines[name]
            return next_turn
        return None

    def _may_start(self, turn: Turn) -> bool:
        return turn.future.cancelled() or self._fits(turn.owners)

    def _fits(self, owners: Owners) -> bool:
        return all(self._running[each] < self.shares[each[0]] for each in owners.counted)

    def _run(self, turn: Turn) -> None:
        started = time.thread_time()
        try:
            result = turn.call(turn)
        except BaseException as error:  # noqa: BLE001 (the caller gets it, as from an executor)
            self._charge(turn, time.thread_time() - started)
            self._end(turn)
            turn.future.set_exception(error)
            return
        if rest_seconds := self._charge(turn, time.thread_time() - started):
            turn.future.set_result(result)  # its caller does not wait for the rest
            time.sleep(rest_seconds)
            self._end(turn)
        else:
            self._end(turn)
            turn.future.set_result(result)

    def _charge(self, turn: Turn, used: float) -> float:
        """Count CPU time of a call; return how long its thread has to rest."""
        organization = turn.owners.organization
        if self.computing is None or not organization:
            return 0.0
        self.computing.budget.charge(organization, used)
        if not self.computing.gives_way(organization):
            return 0.0
        # All of its threads together then compute half of the time.
        return min(used * (2 * self.shares["organization"] - 1), REST_SECONDS)

    def _end(self, turn: Turn) -> None:
        with self._lock:
            self._free += 1
            for owner in turn.owners.counted:
                self._running[owner] -= 1
                if not self._running[owner]:
                    del self._running[owner]
            self._start()
