"""Until when the processes of workers and beat count as alive; `python -m rme.probe` reads it.

Each process has a file in `RME_VAR/alive`. At the start of a task it stores the time limit of that
task, at the end some seconds more, and once that a task has succeeded. Neither PostgreSQL nor
Redis is asked: a probe that fails in their outage would have all workers restarted, which heals
nothing.
"""

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

IDLE_SECONDS = 60.0
"""How long a process may be without a task. An idle one looks for work every three seconds, and
waits for PostgreSQL for ten."""
_WIDTH = 24
"""The characters of a stored time: a write replaces the one before it as a whole."""
_WORKED = b"worked"
"""Stored behind the time once a task has succeeded."""


@dataclass(frozen=True, slots=True)
class TaskDeadline:
    """The file of a process."""

    file: int

    def extend(self, seconds: float) -> None:
        """Store that the process counts as alive for some seconds from now."""
        text = f"{time.monotonic() + seconds:.3f}".ljust(_WIDTH)
        with contextlib.suppress(OSError):  # on a full disk the stored time passes
            os.pwrite(self.file, text.encode(), 0)

    def note_success(self) -> None:
        """Store that this process has done a task."""
        with contextlib.suppress(OSError):  # the next success stores it
            os.pwrite(self.file, _WORKED, _WIDTH)


_deadline: TaskDeadline | None = None


def begin(var: Path, name: str) -> None:
    """Start to store this process's deadline under the name of its worker. Raises OSError."""
    global _deadline  # noqa: PLW0603 - a process has one
    folder = var / "alive"
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob(f"{name}@*"):
        if not _runs(path):
            path.unlink(missing_ok=True)
    if _deadline:
        os.close(_deadline.file)
    process_file = folder / f"{name}@{os.getpid()}@{_started(os.getpid())}"
    _deadline = TaskDeadline(os.open(process_file, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    _deadline.extend(IDLE_SECONDS)


def extend(seconds: float = IDLE_SECONDS) -> None:
    """Store that this process counts as alive for some seconds; nothing before `begin`."""
    if _deadline:
        _deadline.extend(seconds)


def note_success() -> None:
    """Store that this process has done a task; nothing before `begin`."""
    if _deadline:
        _deadline.note_success()


def has_worked(var: Path, name: str) -> bool:
    """Return whether a process of a worker that runs has done a task."""
    paths = (var / "alive").glob(f"{name}@*")
    return any(_text(path)[_WIDTH:] == _WORKED.decode() for path in paths if _runs(path))


def seconds_left(var: Path, name: str) -> float | None:
    """Return for how long the best process of a worker still counts as alive; below zero: since
    when none does. None: no process of it runs.
    """
    folder = var / "alive"
    times = [_time(path) for path in folder.glob(f"{name}@*") if _runs(path)]
    return max(times) - time.monotonic() if times else None


def _time(path: Path) -> float:
    try:
        return float(_text(path)[:_WIDTH])
    except ValueError:  # it has ended, or is about to store its first time
        return 0.0


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _runs(path: Path) -> bool:
    """Return whether the process of a file still runs. After a restart of a container another one
    may have its number, so its start is compared too.
    """
    _, number, started = path.name.rsplit("@", 2)
    return _started(int(number)) == started


def _started(number: int) -> str:
    """Return when a process started, in ticks since the start of the machine; empty: it has ended.

    Where the system has no /proc, all processes that exist are taken for those that started.
    """
    try:
        status = Path(f"/proc/{number}/stat").read_text()
    except FileNotFoundError:
        return "" if Path("/proc/self/stat").exists() or not _exists(number) else "unknown"
    state, *fields = status.rpartition(")")[2].split()
    return "" if state == "Z" else fields[18]


def _exists(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
