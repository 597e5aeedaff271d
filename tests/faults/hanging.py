"""A worker's task that is inside one delivery's rendering, in Python, in native code or at rest."""

import time
from typing import Any

from messaging.content.rendering import RenderLimit
from messaging.delivery import render_limit, tasks
from messaging.domain.deliveries import ClaimedDelivery
from rme.celery import app
from rme.core.db.clock import of_epoch
from rme.core.redis.connection import redis_client

WORK = {
    "nothing": lambda: None,
    # It keeps nothing: the kernel's time for memory would count towards the second limit alone.
    "python": lambda: [None for zero in iter(int, 1) if zero],
    "native": lambda: sum(range(10**15)),  # it looks for no signal, and lets no other thread run
    "sleep": lambda: time.sleep(600),
}


@app.task(name="tests.render")  # type: ignore[untyped-decorator]
def render(organization_id: str, claimed: list[Any], work: str) -> None:
    """Work for a delivery, and leave in Redis what came of it."""
    held = ClaimedDelivery._make(claimed)._replace(expires_at=of_epoch(0))
    redis_client().rpush("tests:begun", held.id)
    try:
        timers = tasks.this_process().render_timers
        with render_limit.limited(timers, organization_id, held):
            WORK[work]()
        outcome = "rendered"
    except RenderLimit as error:
        outcome = str(error)
    redis_client().rpush("tests:outcomes", f"{held.id} {outcome}")
