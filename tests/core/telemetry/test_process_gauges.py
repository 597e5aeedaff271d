"""The gauges of processes: stored by each, shown by any."""

from dataclasses import asdict, replace

import orjson
import pytest
from django.db import connection

from rme.core.redis import counters
from rme.core.redis.connection import redis_client
from rme.core.telemetry import process_gauges
from rme.core.telemetry.process_gauges import WEB, WORKER, PoolUse, ProcessGauges
from tests.scrape import labels, samples

pytestmark = pytest.mark.django_db
WEB_GAUGES = ProcessGauges("a", WEB, [], 1000, in_use=9, idle=1, waiting=2, most=10)


@pytest.fixture(autouse=True)
def _nothing_counted(redis):
    counters.flush()
    redis.flushdb()


def store(process: str, gauges: ProcessGauges) -> None:
    stored = {**asdict(gauges), "later": "a field of the next release"}
    redis_client().set(f"rme:process:{process}", orjson.dumps(stored), ex=15)
    redis_client().sadd("rme:processes", process)


def test_gauges_are_summed_by_role_and_host():
    mail = replace(WEB_GAUGES, role=WORKER, queues=["email", "sweep"], in_use=1, waiting=0)
    for place, gauges in enumerate([WEB_GAUGES, replace(WEB_GAUGES, in_use=2), mail]):
        store(f"a:{place}", gauges)
    redis_client().sadd("rme:processes", "a:9")  # which has ended
    web, worker = labels(role="web", host="a"), labels(role="worker", host="a")
    assert samples("rme_processes") == {web: 2, worker: 1}
    assert samples("rme_process_memory_bytes") == {web: 2000, worker: 1000}
    assert samples("rme_database_pool_waiting") == {web: 4, worker: 0}
    assert samples("rme_database_connections") == {
        web | labels(state="in_use"): 11,
        web | labels(state="idle"): 2,
        worker | labels(state="in_use"): 1,
        worker | labels(state="idle"): 1,
    }
    # of the fullest process, which a sum would hide
    assert samples("rme_database_pool_used_ratio") == {
        labels(role="web"): 0.9,
        labels(role="worker"): 0.1,
    }
    assert samples("rme_queue_workers") == {
        labels(queue=name): float(name in mail.queues)
        for name in ("default", "email", "push", "sms", "sweep", "webhooks")
    }
    assert redis_client().scard("rme:processes") == 3


def test_a_process_stores_its_memory_and_its_connections():
    connection.ensure_connection()
    process_gauges.store(WORKER, {"sms"})
    (found,) = process_gauges.read()
    assert (found.role, found.queues) == (WORKER, ["sms"])
    assert 10_000_000 < found.memory < 10_000_000_000
    stats = connection.pool.get_stats() if connection.pool else {}
    assert found.most == stats.get("pool_max", 0)
    assert PoolUse(found.in_use, found.idle, found.waiting, found.most).in_use >= bool(stats)


def test_pool_counts_are_handed_on_once():
    sums = process_gauges._PoolSums()
    for errors, waited in ((2, 500), (2, 500), (3, 1500), (1, 100), (2, 100)):  # a new pool: 1
        sums.hand_on(WEB, errors, waited)
    errors = samples("rme_database_pool_errors_total")
    assert errors == {labels(role=WEB): 4, labels(role=WORKER): 0}
    assert samples("rme_database_pool_wait_seconds_total") == {labels(role=WEB): 1.5}
