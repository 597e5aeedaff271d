"""Eight processes that claim, record outcomes and apply receipts of the same deliveries at once.

`python -m tests.faults.claim_stress` in a service's environment; STRESS_CLAIMS says how many. It
ends with 1 if a connection was lost, or if something was claimed twice or not at all.
"""

import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from multiprocessing.queues import Queue
from uuid import UUID

import django
from django.db import DatabaseError, connection, transaction

CLAIMS = int(os.environ.get("STRESS_CLAIMS", "2000000"))
PROCESSES = 8
ROUND = 40_000
"""So many deliveries at once, half of them of the next month: in another partition."""
IDLE = 15
"""A process ends when it has found nothing so often."""
ACCOUNT = 7
"""The account of the attempts that `backlog_scene` stores; each has its delivery's id."""


def work(ids: Sequence[UUID], counts: "Queue[Counter[str]]") -> None:
    """Claim deliveries until none is left, and do with them what a worker does."""
    django.setup()
    from messaging.delivery import claims
    from messaging.domain.progress.transitions import Transition
    from messaging.domain.statuses import Status
    from messaging.feedback import receipts
    from messaging.feedback.receipts import AccountReceipt
    from messaging.models import Attempt
    from messaging.store.transitions import apply_transitions
    from rme.core.db import sql
    from rme.core.provider import DeliveryReceipt

    found: Counter[str] = Counter()
    idle = 0
    while idle < IDLE:
        try:
            batch = claims.claim("o00", "EMAIL", 1, random.choice([50, 200, 1000]))
            idle = 0 if batch.deliveries else idle + 1
            found["claimed"] += len(batch.deliveries)
            if batch.deliveries:
                apply_transitions(
                    [
                        Transition(id=each.id, fence=each.fence, status=Status.SENT, due_at=None)
                        for each in batch.deliveries
                    ]
                )
                sql.update_partitioned(
                    Attempt,
                    [
                        {"id": each.id, "organization_id": "o00", "outcome": "Accepted"}
                        for each in batch.deliveries
                    ],
                )
            # Of others' too, so that rows change while they are waited for; these confirm nothing.
            reported = dict.fromkeys(random.sample(ids, 12), "sent")
            reported |= {UUID(each.id): "delivered" for each in batch.deliveries}
            with transaction.atomic():
                applied = receipts.apply_provider_receipts(
                    {
                        key: [AccountReceipt(ACCOUNT, DeliveryReceipt(key, kind))]
                        for key, kind in reported.items()
                    }
                )
            found["receipts"] += len(reported)
            found["missing"] += len(applied.missing | applied.unknown)
        except DatabaseError as error:
            found["lost"] += 1
            print(type(error).__name__, str(error)[:200], flush=True)
            connection.close()
    counts.put(found)


def play(count: int) -> Counter[str]:
    """Store deliveries, and let all processes work at them; return what they counted."""
    from messaging.domain.statuses import Status
    from messaging.models import PARTITIONED, Delivery
    from tests.messaging.delivery import backlog_scene

    with connection.cursor() as cursor:  # DELETE would let each round read the rows of those before
        cursor.execute(f"TRUNCATE {', '.join(model._meta.db_table for model in PARTITIONED)}")
    now = datetime.now(UTC)
    for moment in (now, (now.replace(day=1) + timedelta(days=33)).replace(day=2)):
        since = int(moment.timestamp() * 1000)
        backlog_scene.fill("ACCEPTED", count // 2, since=since, organizations=1)
    ids = list(Delivery.objects.values_list("pk", flat=True))
    spawn = multiprocessing.get_context("spawn")
    counts: Queue[Counter[str]] = spawn.Queue()
    processes = [spawn.Process(target=work, args=(ids, counts)) for _ in range(PROCESSES)]
    for process in processes:
        process.start()
    total = sum((counts.get() for _ in processes), Counter[str]())
    for process in processes:
        process.join()
    total["delivered"] = Delivery.objects.filter(status=Status.DELIVERED).count()
    return total


def main() -> int:
    """Play rounds until so much was claimed; return the exit code."""
    django.setup()
    from rme.tenants.models import Organization

    Organization.objects.get_or_create(pk="o00", defaults={"name": "O"})
    total: Counter[str] = Counter()
    while total["claimed"] < CLAIMS:
        began = time.monotonic()
        found = play(ROUND)
        total += found
        print(f"{dict(total)}, {ROUND / (time.monotonic() - began):.0f} claims/s", flush=True)
        if found["lost"] or found["missing"] or found["claimed"] != ROUND:
            return 1
        if found["delivered"] != ROUND:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
