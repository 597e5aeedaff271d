"""The files in which the processes of a machine keep their metrics, and how a scrape reads them.

prometheus_client's multiprocess mode: each process has files of its own in a folder that all
processes share, and the process that answers a scrape adds them up. The files are numbered. A
process takes the lowest number that no process has, by a lock on it, and goes on counting in its
files. So a process that replaces another one, however that one ended, makes no new files, and no
counter falls.
A lock ends with its process, also if that was killed, and holds across containers with the folder
on one volume, whose process ids are the same.
"""

import fcntl
import os
from collections.abc import Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path

from prometheus_client.core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

_LOCK = "process-"
"""The start of the name of the file that a process locks; its number follows."""
_SIZES = {"counter": 2**16, "histogram": 2**18, "gauge_livesum": 2**16, "gauge_livemax": 2**16}
"""The bytes that each kind of file has from the start, so that a full disk doesn't matter: a
process that writes to a file that the disk has no room for is killed. A file that is full grows."""


class FileNumber:
    """The number of this process's files. After a fork, the child takes one of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock: int | None = None
        self._number = ""

    def __call__(self) -> str:
        """Return the number; take one if this process has no number yet. Raises OSError."""
        return self._number or self._take()

    def _take(self) -> str:
        for number in map(str, count()):
            lock = _locked(self._folder / f"{_LOCK}{number}")
            if lock is not None:
                break
        self._lock = lock
        for kind, size in _SIZES.items():
            path = self._folder / f"{kind}_{number}.db"
            if kind.startswith("gauge") or not path.exists():
                new = path.with_suffix(".new")
                new.write_bytes(bytes(size))
                new.rename(path)  # a scrape sees no file that is only begun
        self._number = number
        return number

    def release(self) -> None:
        """Release the number. In a forked child: leave it to the parent."""
        if self._lock is not None:
            os.close(self._lock)
        self._lock, self._number = None, ""


def prepare(folder: Path) -> None:
    """Make the folder, and empty it if no process counts there. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    paths = [*folder.glob(f"{_LOCK}*")]
    locks = {path: lock for path in paths if (lock := _locked(path)) is not None}
    try:
        if len(locks) == len(paths):
            for path in locks:  # and no file of a process that begins just now
                for file in folder.glob(f"*_{path.name.removeprefix(_LOCK)}.*"):
                    file.unlink()
    finally:
        for lock in locks.values():
            os.close(lock)


def read(folder: Path) -> Iterable[Metric]:
    """Return the metrics of all processes, without gauges of those that have ended."""
    for number in {path.stem.rpartition("_")[2] for path in folder.glob("gauge_live*.db")}:
        lock = _locked(folder / f"{_LOCK}{number}")
        if lock is not None:
            with suppress(FileNotFoundError):  # another scrape has removed it
                mark_process_dead(number, str(folder))
            os.close(lock)
    metrics: Iterable[Metric] = MultiProcessCollector(None, str(folder)).collect()
    return metrics


def _locked(path: Path) -> int | None:
    """Lock a file and return its descriptor, which holds the lock; None if a process has it."""
    lock = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock
