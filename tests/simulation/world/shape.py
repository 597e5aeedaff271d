"""The shape of a history: how many processes it has, and how much they keep and send at once."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from unittest.mock import patch

from messaging.delivery import claims
from messaging.delivery.accounts import concurrency
from messaging.statistics import minutes

WORKERS = (2, 3)
EXPIRING, NARROW, DOUBLED = 0.25, 0.25, 0.2
"""In how many histories caches expire, windows are full, and each process is there twice."""
NARROW_WINDOW = 2
COUNTED_EVERY = 10
"""The minutes of one history in so many are counted: it costs as much as all else."""


@dataclass(frozen=True)
class Shape:
    """What a history is made of, apart from what happens in it."""

    workers: int
    caches_expire: bool
    """Whether a process reads again what it knows of the organization, as often as it does."""
    is_narrow: bool
    """Whether a window has room for two sends."""
    is_counted: bool
    """Whether the job that counts minutes runs."""
    copies: int
    """How many web, sweeper and feedback processes there are, of each."""

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Let the windows have their size, and count all minutes that have passed at once."""
        with ExitStack() as stack:
            stack.enter_context(patch.object(minutes, "SLICE", timedelta(days=2)))
            if self.is_narrow:
                for module in (claims, concurrency):
                    stack.enter_context(patch.object(module, "WINDOW", NARROW_WINDOW))
            yield


def draw(seed: int) -> Shape:
    """Return the shape of a history."""
    rng = Random(f"shape {seed}")
    return Shape(
        rng.choice(WORKERS),
        rng.random() < EXPIRING,
        rng.random() < NARROW,
        seed % COUNTED_EVERY == 0,
        2 if rng.random() < DOUBLED else 1,
    )
