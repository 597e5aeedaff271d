"""The gauges of processes: set by each, shown by any."""

import os
import subprocess
import sys

import pytest
from django.db import connection

from rme.core.telemetry import process_gauges
from rme.core.telemetry.process_gauges import WEB, WORKER
from tests.scrape import counted, labels, samples
from tests.service import ROOT

pytestmark = pytest.mark.django_db
_OTHER = """
import sys
from pathlib import Path
import django
django.setup()
from rme.core.telemetry import meters, process_gauges
meters.share(Path(sys.argv[1]))
process_gauges.store("worker", ["sms", "default"])
process_gauges.FULLEST.set(0.75, "worker")
print("done", flush=True)
sys.stdin.read()
"""


def test_gauges_of_processes_are_added_up_until_they_end(counting):
    process_gauges.store(WEB)
    process_gauges.store(WORKER, ["sms"])
    process_gauges.FULLEST.set(0.5, WORKER)
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "rme.settings"}
    command, pipe = [sys.executable, "-c", _OTHER, str(counting)], subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=env, stdin=pipe, stdout=pipe) as other:
        assert other.stdout
        assert other.stdout.readline() == b"done\n"
        assert counts() == {WEB: 1, WORKER: 2}
        assert samples("rme_queue_workers") == {
            labels(queue=name): {"sms": 2.0, "default": 1.0}.get(name, 0.0)
            for name in ("default", "email", "push", "sms", "sweep", "webhooks")
        }
        # of the fullest process, which a sum would hide
        assert counted("rme_database_pool_used_ratio")[labels(role=WORKER)] == 0.75
        other.kill()
    assert counts() == {WEB: 1, WORKER: 1}
    assert samples("rme_queue_workers")[labels(queue="default")] == 0
    assert counted("rme_database_pool_used_ratio")[labels(role=WORKER)] == 0.5


def counts() -> dict[str, float]:
    return {dict(names)["role"]: count for names, count in counted("rme_processes").items()}


def test_a_process_stores_its_memory_and_its_connections(counting):
    connection.ensure_connection()
    process_gauges.store(WORKER, {"sms"})
    (memory,) = counted("rme_process_memory_bytes").values()
    assert 10_000_000 < memory < 10_000_000_000
    stats = connection.pool.get_stats()
    states = {
        dict(names)["state"]: count for names, count in counted("rme_database_connections").items()
    }
    assert states["in_use"] >= 1
    assert sum(states.values()) == stats["pool_size"]
    (ratio,) = counted("rme_database_pool_used_ratio").values()
    assert ratio == states["in_use"] / stats["pool_max"]


def test_pool_counts_are_handed_on_once(counting):
    sums = process_gauges._PoolSums()
    for errors, waited in ((2, 500), (2, 500), (3, 1500), (1, 100), (2, 100)):  # a new pool: 1
        sums.hand_on(WEB, errors, waited)
    errors = samples("rme_database_pool_errors_total")
    assert errors == {labels(role=WEB): 4, labels(role=WORKER): 0}
    assert samples("rme_database_pool_wait_seconds_total") == {labels(role=WEB): 1.5}
