"""Histories in several processes, each with a database of its own.

This module needs no Django: the processes set it up themselves.
"""

import importlib
import multiprocessing
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.queues import Queue
from pathlib import Path
from queue import Empty
from typing import Any

CHUNK = 20
"""The seeds that a process takes at once."""
HUNG_SECONDS = 600


@dataclass(frozen=True)
class Task:
    """Seeds to play, with a defect or without."""

    seeds: Sequence[int]
    mutant: str | None = None
    stops: bool = False
    """Whether to stop at the first violation."""


@dataclass
class Played:
    """What one history was."""

    seed: int
    mutant: str | None = None
    digest: str = ""
    steps: int = 0
    checks: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    last: list[str] = field(default_factory=list)
    """The last steps, if anything was violated."""


def play(tasks: Sequence[Task], processes: int) -> Iterator[Played]:
    """Play all tasks, and yield the histories as they end."""
    os.environ["PYTHONHASHSEED"] = "0"  # the order of sets is part of a history
    context = multiprocessing.get_context("spawn")
    folder = Path(tempfile.mkdtemp(prefix="rme-simulation-", dir="/var/tmp"))
    folder.chmod(0o755)  # PostgreSQL reads the clock's file
    waiting: Queue[Task | None] = context.Queue()
    found: Queue[Played | None] = context.Queue()
    for task in tasks:
        waiting.put(task)
    running = []
    for number in range(processes):
        waiting.put(None)
        own = (number, folder, waiting, found)
        running.append(context.Process(target=_work, args=own, daemon=True))
        running[-1].start()
    try:
        open_processes = processes
        while open_processes:
            played = _next(found, running)
            if played is None:
                open_processes -= 1
            else:
                yield played
    finally:
        waiting.cancel_join_thread()  # of a run that is stopped, nobody takes what waits
        for process in running:
            process.terminate()
            process.join()
        shutil.rmtree(folder, ignore_errors=True)


def _next(found: "Queue[Played | None]", running: Sequence[Any]) -> Played | None:
    """Return what was played next; None once for each process that has ended."""
    for _ in range(HUNG_SECONDS):
        try:
            return found.get(timeout=1)
        except Empty:
            if any(process.exitcode for process in running):
                raise SystemExit("a process of the simulation has failed") from None
    raise SystemExit("the simulation hangs")


def mutant_names() -> dict[str, str]:
    """Return the defects, and what each does."""
    _django()
    mutants = importlib.import_module("tests.simulation.world.mutants").MUTANTS
    return {name: str(each.__doc__).rstrip(".") for name, each in mutants.items()}


def _work(
    number: int, folder: Path, waiting: "Queue[Task | None]", found: "Queue[Played | None]"
) -> None:
    _django()
    player = importlib.import_module("tests.simulation.world.player")
    player.play_all(number, folder, waiting, found)


def _django() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "rme.settings")
    importlib.import_module("django").setup()
