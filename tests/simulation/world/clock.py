"""The virtual clock: of the database, of our modules, and of the ids.

PostgreSQL reads it from a file, by functions that stand before its own in `search_path`. So no
statement is needed when time passes.
"""

import mmap
import random
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from types import ModuleType

from rme.core import ids

BEGINS = datetime(2030, 1, 7, 12, 1, tzinfo=UTC)
"""When each history begins: a process whose clock is behind is in the hour before."""
OURS = ("messaging", "push", "rme")
FUNCTIONS = ("now", "statement_timestamp", "transaction_timestamp", "clock_timestamp")


class VirtualClock:
    """Seconds since the history began, and the file by which PostgreSQL knows them."""

    def __init__(self, path: Path) -> None:
        self.now = 0.0
        path.write_bytes(bytes(len(self._text)))
        with path.open("r+b") as file:
            self._file = mmap.mmap(file.fileno(), 0)
        self._written = -1.0
        self.publish()

    def restart(self) -> None:
        """Begin again."""
        self.now, self._written = 0.0, -1.0
        self.publish()

    def after(self, seconds: float) -> float:
        """Return the moment after so many seconds, in whole microseconds as PostgreSQL has it."""
        return round(self.now + seconds, 6)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now = self.after(seconds)

    def reach(self, moment: float) -> None:
        """Let time pass until a moment, if that is to come."""
        self.now = max(self.now, round(moment, 6))

    def publish(self) -> None:
        """Let PostgreSQL know the time."""
        if self._written != self.now:
            self._file[:] = self._text
            self._written = self.now

    @property
    def _text(self) -> bytes:
        return f"{self.moment.isoformat(' ', 'microseconds')}".encode()

    @property
    def moment(self) -> datetime:
        """Return the time by the database's clock."""
        return BEGINS + timedelta(seconds=self.now)


def sql_functions(path: Path) -> str:
    """Return the statements that put the clock before PostgreSQL's own, in the schema simulated."""
    functions = "".join(
        f"CREATE FUNCTION simulated.{name}() RETURNS timestamptz STABLE LANGUAGE sql "
        f"AS $$ SELECT pg_catalog.pg_read_file('{path}')::timestamptz $$;"
        for name in FUNCTIONS
    )
    return f"CREATE SCHEMA simulated; {functions}"


class _Time:
    """What a module uses of `time`."""

    def __init__(self, clock: VirtualClock, sleep: Callable[[float], None]) -> None:
        self._clock, self.sleep = clock, sleep

    def monotonic(self) -> float:
        return self._clock.now

    def time(self) -> float:
        return self._clock.moment.timestamp()


class _Uuids:
    """What `rme.core.ids` uses of `uuid_utils`: ids by the clock of the process, and the seed."""

    def __init__(self, make: Callable[[], int]) -> None:
        self._make = make

    def uuid7(self) -> uuid.UUID:
        return uuid.UUID(int=self._make())


def id_of(milliseconds: int, rng: random.Random, last: int) -> int:
    """Return a UUIDv7 of a time that is greater than the last one of its process."""
    new = (milliseconds << 80) | (0x7 << 76) | (rng.getrandbits(12) << 64)
    new |= (0x2 << 62) | rng.getrandbits(62)
    return new if new > last else last + 1


def _unlock(owner: type) -> None:
    """Let a cached property be read while another thread computes it for another object.

    Until Python 3.12 one lock is held for all of a class: a logical thread would wait for another
    one that waits for its turn.
    """
    for each in vars(owner).values():
        if isinstance(each, cached_property):
            vars(each)["lock"] = nullcontext()


def install(
    clock: VirtualClock,
    sleep: Callable[[float], None],
    rng: random.Random,
    make_id: Callable[[], int],
) -> None:
    """Give all our modules this clock in place of `time`, and this source in place of `random`.

    For the life of this process: to look for all modules again costs a tenth of a history.
    """
    own = _Time(clock, sleep)
    replaced: dict[object, object] = {
        time: own,
        time.monotonic: own.monotonic,
        time.sleep: sleep,
        random: rng,
    }
    for key, module in sorted(sys.modules.items()):
        if key.partition(".")[0] not in OURS:
            continue
        for name, value in list(vars(module).items()):
            if isinstance(value, type):
                _unlock(value)
            if isinstance(value, ModuleType | type(time.sleep)) and value in replaced:
                setattr(module, name, replaced[value])
    vars(ids)["uuid_utils"] = _Uuids(make_id)
