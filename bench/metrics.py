"""What counting a message on its way costs, and what a scrape costs that reads many processes.

`python -m bench metrics`. The values are those of messages accepted in sets, and sent in windows.
"""

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.report import say
from bench.scene import ROOT, Scene

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
COUNT = 40_000
ROUTE = ("POST", "/rme/v1/messages")
PROCESSES = 20
ROUTES = 40
"""The routes that programs call, of each scraped process."""


def metrics(scene: Scene) -> None:
    """Measure in processes of their own, which count nothing else."""
    runs = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            command = [sys.executable, "-m", "bench.metrics", folder]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    for name in runs[0]:
        say(f"metrics: {name}", statistics.median(run[name] for run in runs), "ns of CPU")


def _measure(folder: Path) -> dict[str, float]:
    import django

    django.setup()
    from django.test import RequestFactory

    from messaging.telemetry.timings import PROVIDER_SECONDS, TIME_TO_PROVIDER
    from rme.core.telemetry import meters
    from rme.core.telemetry.request_times import ACCEPT_SECONDS, REQUEST_SECONDS, REQUESTS, SECONDS
    from rme.metrics import show_processes

    meters.share(folder)
    values = [random.expovariate(20) for _ in range(50)]

    def sent(size: int) -> None:
        TIME_TO_PROVIDER.observe_each((value, ("EMAIL", "0")) for value in values[:size])
        PROVIDER_SECONDS.observe_each((value, ("smtp", "Accepted")) for value in values[:size])

    def accepted(size: int) -> None:
        REQUESTS.add(*ROUTE, "202", by=size)
        SECONDS.add(*ROUTE, by=1.0)
        REQUEST_SECONDS.observe_each((value, ROUTE) for value in values[:size])
        ACCEPT_SECONDS.observe_each((value, ROUTE[1:]) for value in values[:size])

    costs = {
        "sent in windows of 50": _cost(sent, 50, COUNT // 50) / 50,
        "accepted in sets of 8": _cost(accepted, 8, COUNT // 8) / 8,
    }
    children = [_counting_child() for _ in range(PROCESSES)]
    request = RequestFactory(HTTP_HOST="127.0.0.1").get("/metrics")
    costs[f"a scrape of {PROCESSES} processes"] = _cost(lambda _: show_processes(request), 0, 20)
    for child in children:
        os.kill(child, signal.SIGKILL)
    return costs


def _counting_child() -> int:
    """Fork a process that has counted requests of all routes, and lives on."""
    from rme.core.telemetry.request_times import REQUEST_SECONDS, REQUESTS

    ready, write = os.pipe()
    child = os.fork()
    if not child:
        for number in range(ROUTES):
            REQUESTS.add("GET", f"/rme/v1/{number}", "200")
            REQUEST_SECONDS.observe(0.01, "GET", f"/rme/v1/{number}")
        os.write(write, b".")
        signal.pause()
    os.read(ready, 1)
    return child


def _cost(step: Callable[[int], object], size: int, times: int) -> float:
    """Return the CPU of one step, in ns."""
    step(size)
    began = time.process_time()
    for _ in range(times):
        step(size)
    return (time.process_time() - began) / times * 1e9


if __name__ == "__main__":
    print(json.dumps(_measure(Path(sys.argv[1]))))
