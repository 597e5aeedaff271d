"""One of the processes that play histories: it makes its database, and plays seed after seed."""

import gc
import logging
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from multiprocessing.queues import Queue
from pathlib import Path

import structlog

import rme.celery  # noqa: F401 (loads the tasks' modules)
from tests.simulation.world import database, history, invariants
from tests.simulation.world.clock import VirtualClock
from tests.simulation.world.history import History, Stage
from tests.simulation.world.mutants import MUTANTS
from tests.simulation.world.parallel import Played, Task

VACUUM_EVERY = 200
COLLECT_EVERY = 20


def play_all(
    number: int, folder: Path, waiting: "Queue[Task | None]", found: "Queue[Played | None]"
) -> None:
    """Play tasks until there are no more."""
    logging.disable(logging.CRITICAL)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    name = f"rme_simulation_{os.getpid()}"
    path = folder / f"clock-{number}"
    clock = VirtualClock(path)
    path.chmod(0o644)
    database.create(name, path)
    try:
        stage = history.prepare(clock)
        gc.collect()
        gc.freeze()  # to look at all of the service again and again is a tenth of the time
        gc.disable()
        count = 0
        while task := waiting.get():
            for seed in task.seeds:
                count += 1
                if count % COLLECT_EVERY == 0:
                    gc.collect()
                if count % VACUUM_EVERY == 0:
                    database.vacuum()
                played = play(seed, stage, task.mutant)
                found.put(played)
                if task.stops and played.violations:
                    break
    finally:
        database.drop(name)
    found.put(None)


def play(seed: int, stage: Stage, mutant: str | None = None) -> Played:
    """Play the history of a seed, with a defect or without, and check it."""
    defect: Callable[[], AbstractContextManager[object]] = (
        MUTANTS[mutant] if mutant else nullcontext
    )
    database.empty()
    with defect():
        own = History(seed, stage)
        own.run()
        violations = [f"raised: {type(each).__name__}: {each}" for each in own.turns.errors]
        checks = 1
        if not violations:
            checks, violations = invariants.check(own)
    turns = own.turns
    last = list(turns.last) if violations else []
    return Played(seed, mutant, turns.digest, turns.steps, checks, turns.faults, violations, last)
