"""Beat without a broker."""

import os
import subprocess
import sys
import time

from rme.core.process import liveness
from tests.service import ROOT, free_port

SECONDS = 30


def wait_for(condition):
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.1)


def test_beat_starting_without_a_broker_counts_as_alive(tmp_path):
    """A restart would not bring the broker back."""
    broker = f"amqp://127.0.0.1:{free_port()}//"
    env = {**os.environ, "CELERY_BROKER_URL": broker, "RME_VAR": str(tmp_path)}
    command = [sys.executable, "-m", "celery", "-A", "rme.celery", "beat", "--pidfile="]
    with subprocess.Popen(command, cwd=ROOT, env=env) as beat:
        try:
            wait_for(lambda: (liveness.seconds_left(tmp_path, "beat") or 0) > 0)
            [file] = (tmp_path / "alive").iterdir()
            for _ in range(2):  # beat ticks once before it needs the broker
                file.write_text("1.0".ljust(24))  # as if a minute had passed
                wait_for(lambda: liveness.seconds_left(tmp_path, "beat") > 50)
            assert beat.poll() is None
        finally:
            beat.kill()
