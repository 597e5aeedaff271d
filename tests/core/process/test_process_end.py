"""What a process has counted last is in Redis when it ends, or has nothing to do."""

import os
import subprocess
import sys

import pytest

from rme.core.redis import counters
from rme.core.telemetry import process_gauges
from tests.service import ROOT

COUNT = """
from rme.core.redis import counters
for _ in range(3):
    counters.add("ended")
"""
WEB = f"import rme.asgi{COUNT}"
WORKER = f"""
import django
django.setup()
from messaging.delivery import worker_process{COUNT}
worker_process.end_process()
"""


@pytest.mark.parametrize("process", [WEB, WORKER], ids=["web", "worker"])
def test_counters_are_stored_before_a_process_ends(redis, settings, process):
    env = {**os.environ, "REDIS_URL": settings.REDIS_URL, "DJANGO_SETTINGS_MODULE": "rme.settings"}
    subprocess.run([sys.executable, "-c", process], cwd=ROOT, env=env, check=True, timeout=60)
    assert counters.read()["ended"] == {(): 3}


def test_counters_are_stored_with_the_gauges_of_a_process(db, redis):
    counters.flush()
    counters.add("quiet")
    counters.add("quiet")
    process_gauges.store(process_gauges.WEB)
    assert counters.read()["quiet"] == {(): 2}
