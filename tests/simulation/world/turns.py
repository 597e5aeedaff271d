"""Logical threads of logical processes, of which one runs at a time, in an order from the seed.

A thread runs until it comes to a point at which it may be interrupted (`pause`, `wait`): before a
transaction, in a call of a provider, while it sleeps or waits. There the seed decides which one is
next, and how much time passes.
"""

import faulthandler
import hashlib
import os
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from random import Random

from tests.simulation.world.clock import VirtualClock

REAL_SECONDS = 60.0
"""The simulation itself hangs if no turn ends for so long."""
KEPT_STEPS = int(os.environ.get("STEPS", "80"))
"""The last steps of a history, which the report of a violation shows."""
CONTINUES = 0.4
"""How often the thread that has the turn keeps it."""
TIMER_FIRST = 0.06
"""How often a timer ends although others could go on: so that waits end early as well as late."""


class Killed(BaseException):
    """The process of this thread was killed: raised wherever the thread would go on."""


class LogicalProcess:
    """A process of the service: its name, its clock, and what it has in its memory."""

    def __init__(self, name: str, skew: float = 0.0) -> None:
        self.name, self.skew = name, skew
        """How many seconds its own clock is ahead of the database's."""
        self.killed = False
        self.frozen_until = 0.0
        self.was_stopped = False
        """Whether it was killed or frozen: what it has begun may stay open."""
        self.failures = 0
        """How often a transaction of it failed, or it did not learn that it had committed."""
        self.last_id = 0
        self.memory: dict[str, object] = {}


class LogicalThread:
    """A thread that has its turn when the seed says so.

    It waits for its turn by a plain lock, which another thread releases: a tenth of a history's
    time is to switch from one to the next.
    """

    def __init__(self, process: LogicalProcess, name: str, job: Callable[[], object]) -> None:
        self.process, self.name, self.job = process, name, job
        self.turn = threading.Lock()
        self.turn.acquire()
        self.is_ready: Callable[[], bool] | None = None
        """What it waits for; None: it can go on."""
        self.wake_at: float | None = None
        """When it goes on in any case."""
        self.takes_gate = False
        """Whether its open transaction holds the gate lock as workers do."""
        self.gate_at = 0.0
        """When its last transaction with that lock was committed."""
        self.on_commit: list[Callable[[], object]] = []
        """What is to be done once its open transaction is committed."""


class _RealThreads:
    """Threads of this process, each of which keeps its connection from one job to the next.

    One does what others of its role did before: its connection has prepared those statements.
    """

    def __init__(self) -> None:
        self._idle: defaultdict[str, list[SimpleQueue[Callable[[], None]]]] = defaultdict(list)

    def run(self, role: str, job: Callable[[], None]) -> None:
        if self._idle[role]:
            self._idle[role].pop().put(job)
            return
        inbox: SimpleQueue[Callable[[], None]] = SimpleQueue()
        inbox.put(job)
        threading.Thread(target=self._work, args=(role, inbox), daemon=True).start()

    def _work(self, role: str, inbox: "SimpleQueue[Callable[[], None]]") -> None:
        while True:
            inbox.get()()
            self._idle[role].append(inbox)


_real = _RealThreads()
_current = threading.local()


def current() -> LogicalThread | None:
    """Return the logical thread that runs here; None in threads of the simulation itself."""
    found: LogicalThread | None = getattr(_current, "thread", None)
    return found


class Turns:
    """The order of one history."""

    def __init__(
        self,
        rng: Random,
        clock: VirtualClock,
        on_switch: Callable[[LogicalProcess], None],
        end_session: Callable[[], None],
    ) -> None:
        """`on_switch` is called before a thread of a process has its turn, and `end_session` in a
        thread that was killed.
        """
        self.rng, self.clock, self._end_session = rng, clock, end_session
        self.threads: list[LogicalThread] = []
        self.errors: list[BaseException] = []
        """What ended a thread, and should not have."""
        self.steps = 0
        self.faults: Counter[str] = Counter()
        self.deadlocks: list[str] = []
        """What PostgreSQL ended because of a deadlock."""
        self.last: deque[str] = deque(maxlen=KEPT_STEPS)
        self.jumps: Sequence[float] = ()
        """Times that may pass at once between two steps."""
        self.is_stalled: Callable[[], bool] = _never
        """Where no thread can go on: whether one can after all, since PostgreSQL lets it."""
        self._digest = hashlib.sha256()
        self._on_switch = on_switch
        self._over = threading.Semaphore(0)

    # --- the history ----------------------------------------------------------------------------

    def note(self, text: str) -> None:
        """Add a step to the history."""
        thread = current()
        name = f"{thread.process.name}/{thread.name}" if thread else "world"
        line = f"{self.clock.now:12.6f} {name}: {text}"
        self._digest.update(line.encode() + b"\n")
        self.last.append(line)

    def fault(self, kind: str) -> None:
        """Count a fault, and add it to the history."""
        self.faults[kind] += 1
        self.note(f"FAULT {kind}")

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()

    @property
    def has_frozen(self) -> bool:
        """Return whether a process is frozen."""
        return any(each.process.frozen_until > self.clock.now for each in self.threads)

    @property
    def is_checking(self) -> bool:
        """Return whether a worker has checked the gates, and not yet committed."""
        return any(each.takes_gate for each in self.threads)

    # --- threads --------------------------------------------------------------------------------

    def spawn(self, process: LogicalProcess, name: str, job: Callable[[], object]) -> None:
        """Add a thread, which has its first turn later."""
        thread, by = LogicalThread(process, name, job), current()
        if by is not None:
            thread.gate_at = by.gate_at
        self.threads.append(thread)
        _real.run(f"{process.name.partition(' ')[0]}/{name}", lambda: self._run(thread))

    def _run(self, thread: LogicalThread) -> None:
        thread.turn.acquire()
        _current.thread = thread
        try:
            self._refuse_killed(thread)
            thread.job()
        except Killed:
            _current.thread = None
            if thread.process.was_stopped:
                self._end_session()
        except BaseException as error:
            self.note(f"RAISED {type(error).__name__}: {error}")
            self.errors.append(error)
        finally:
            _current.thread = None
            self.threads.remove(thread)
            self._pass_on(self._choose(None))

    def run(self) -> None:
        """Run until no thread can go on, and no time brings one to do so."""
        self._pass_on(self._choose(None))
        if not self._over.acquire(timeout=REAL_SECONDS):
            faulthandler.dump_traceback(all_threads=True)
            raise AssertionError("\n".join(["the simulation hangs", *self.last]))

    def end(self) -> None:
        """Kill what still waits, so that its threads are free."""
        for thread in self.threads:
            thread.process.killed = True
        self.run()

    def kill(self, process: LogicalProcess) -> None:
        """Kill a process: none of its threads does anything any more. Raises Killed in this one."""
        process.killed = process.was_stopped = True
        raise Killed

    # --- turns ----------------------------------------------------------------------------------

    def pause(self, label: str) -> None:
        """Let others go first, if the seed says so."""
        thread = current()
        assert thread is not None
        self._refuse_killed(thread)
        self._switch(thread)
        self.note(label)

    def wait(self, is_ready: Callable[[], bool] | None, seconds: float | None = None) -> bool:
        """Wait until something is ready or so many seconds have passed; return whether it is."""
        thread = current()
        assert thread is not None
        self._refuse_killed(thread)
        thread.is_ready = is_ready or _never
        thread.wake_at = None if seconds is None else self.clock.after(max(seconds, 0.0))
        try:
            self._switch(thread)
        finally:
            thread.is_ready = thread.wake_at = None
        return is_ready is not None and is_ready()

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.wait(None, seconds)

    def _switch(self, thread: LogicalThread) -> None:
        chosen = self._choose(thread)
        if chosen is not thread:
            self._pass_on(chosen)
            thread.turn.acquire()
        self._refuse_killed(thread)

    def _refuse_killed(self, thread: LogicalThread) -> None:
        if thread.process.killed:
            raise Killed

    def _pass_on(self, chosen: LogicalThread | None) -> None:
        if chosen is None:
            self._over.release()
            return
        self._on_switch(chosen.process)
        chosen.turn.release()

    def _choose(self, thread: LogicalThread | None) -> LogicalThread | None:
        """Choose who is next, and let time pass; None if nobody can go on."""
        self.steps += 1
        self.clock.advance(self.rng.expovariate(1 / 0.004))
        if self.jumps and self.rng.random() < 0.012:
            self.clock.advance(self.rng.choice(self.jumps))
        while True:
            ready, timed, frozen = self._sorted()
            if ready and not (timed and self.rng.random() < TIMER_FIRST):
                if thread in ready and self.rng.random() < CONTINUES:
                    return thread
                return self.rng.choice(ready)
            if timed:
                first = min(timed, key=lambda each: each.wake_at or 0.0)
                chosen = first if self.rng.random() < 0.85 else self.rng.choice(timed)
                self.clock.reach(chosen.wake_at or 0.0)
                return chosen
            if not frozen:
                if self.is_stalled():
                    continue
                return None
            self.clock.reach(min(each.process.frozen_until for each in frozen))

    def _sorted(self) -> tuple[list[LogicalThread], list[LogicalThread], list[LogicalThread]]:
        """Return the threads that can go on, those that a time lets go on, and the frozen ones."""
        ready: list[LogicalThread] = []
        timed: list[LogicalThread] = []
        frozen: list[LogicalThread] = []
        for each in self.threads:
            if each.process.killed:
                ready.append(each)
            elif each.process.frozen_until > self.clock.now:
                frozen.append(each)
            elif each.is_ready is None or each.is_ready():
                ready.append(each)
            elif each.wake_at is not None:
                (ready if each.wake_at <= self.clock.now else timed).append(each)
        return ready, timed, frozen


def _never() -> bool:
    return False


# --- in place of `threading` and `queue` ----------------------------------------------------------


class LogicalEvent:
    """`threading.Event` for logical threads."""

    turns: Turns

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def wait(self, timeout: float | None = None) -> bool:
        return self._is_set or self.turns.wait(lambda: self._is_set, timeout)


class LogicalQueue:
    """`queue.SimpleQueue` for logical threads."""

    turns: Turns

    def __init__(self) -> None:
        self._items: deque[object] = deque()

    def put(self, item: object) -> None:
        self._items.append(item)

    def get(self) -> object:
        while not self._items:
            self.turns.wait(lambda: bool(self._items))
        return self._items.popleft()

    def empty(self) -> bool:
        return not self._items


class ThreadStart:
    """`threading.Thread` for logical threads: one of the process that starts it."""

    turns: Turns

    def __init__(
        self, target: Callable[..., object], name: str, daemon: bool, args: tuple[object, ...] = ()
    ) -> None:
        self._target, self._name = partial(target, *args), name

    def start(self) -> None:
        thread = current()
        assert thread is not None
        self.turns.spawn(thread.process, self._name, self._target)


class LogicalThreads:
    """`rme.core.process.threads.Threads`: each job has a logical thread."""

    turns: Turns

    def submit(self, job: Callable[[int], object]) -> None:
        thread = current()
        assert thread is not None
        self.turns.spawn(thread.process, "sending", lambda: job(0))


class Threading:
    """What a module uses of `threading`."""

    Lock = threading.Lock
    Event = LogicalEvent
    Thread = ThreadStart


class StartingThreads:
    """What a module uses of `rme.core.process.threads`."""

    @staticmethod
    def start(work: Callable[..., object], *arguments: object, name: str) -> ThreadStart:
        thread = ThreadStart(target=partial(work, *arguments), name=name, daemon=True)
        thread.start()
        return thread


def bind(turns: Turns) -> None:
    """Let all of these take turns of one history."""
    for each in (LogicalEvent, LogicalQueue, ThreadStart, LogicalThreads):
        each.turns = turns
