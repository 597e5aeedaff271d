"""Sends, and what providers call back with, at once: now this first, and now that."""

import random
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from django.db import connections

from messaging.feedback import callbacks
from rme.crm.models import Contact

AT_ONCE = 10
"""So many calls are applied, and messages sent, in one round."""


def race(
    people: Sequence[Contact], call: Callable[[Contact], None], send: Callable[[], None]
) -> dict[str, datetime]:
    """Apply one call for each person while messages are sent; gives when each was committed."""
    rounds = [people[start : start + AT_ONCE] for start in range(0, len(people), AT_ONCE)]
    both = threading.Barrier(2)
    committed_at: dict[str, datetime] = {}
    took, sent = [0.02], [0.02]  # applying, and a send, at the speed of this machine

    def sends() -> None:
        dice = random.Random(1)
        for _ in rounds:
            both.wait(30)
            time.sleep(dice.random() * 1.5 * took[0])
            started = time.perf_counter()
            send()
            sent[0] = 0.8 * sent[0] + 0.2 * (time.perf_counter() - started)
        connections.close_all()

    thread, chance = threading.Thread(target=sends), random.Random(2)
    thread.start()
    for together in rounds:  # the oldest first, as they are claimed
        for person in together:
            call(person)
        both.wait(30)
        time.sleep(chance.random() * sent[0])
        started = time.perf_counter()
        assert callbacks.apply_due()[0] == AT_ONCE
        took[0] = 0.8 * took[0] + 0.2 * (time.perf_counter() - started)
        committed_at.update(dict.fromkeys((str(each.pk) for each in together), datetime.now(UTC)))
    thread.join()
    return committed_at
