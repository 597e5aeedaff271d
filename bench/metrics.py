"""What counting a message on its way costs: by our counters, and by prometheus-client's files.

`python -m bench metrics`. Both count the same values: of messages accepted in sets, and sent in
windows. Ours adds to Redis once a second, as in the service.
"""

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from bench.report import say
from bench.scene import ROOT, Scene

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
COUNT = 40_000
SETS = {"sent in windows of 50": 50, "accepted in sets of 8": 8}
ROUTE = ("POST", "/rme/v1/messages")


def metrics(scene: Scene) -> None:
    """Measure in processes of their own, since prometheus-client reads its folder at import."""
    runs = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            done = subprocess.run(
                [sys.executable, "-m", "bench.metrics"],
                cwd=ROOT,
                env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": folder},
                capture_output=True,
                text=True,
                check=True,
            )
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    for name in runs[0]:
        say(f"metrics: {name}", statistics.median(run[name] for run in runs), "µs of CPU")


def _measure() -> dict[str, float]:
    import django

    django.setup()
    from prometheus_client import CollectorRegistry, Counter
    from prometheus_client import Histogram as FileHistogram

    from messaging.telemetry.timings import PROVIDER_SECONDS, TIME_TO_PROVIDER
    from rme.core.redis import counters
    from rme.core.telemetry.histograms import Histogram
    from rme.core.telemetry.request_times import ACCEPT_SECONDS, REQUEST_SECONDS

    registry = CollectorRegistry()

    def in_files(ours: Histogram) -> FileHistogram:
        return FileHistogram(
            ours.name, ours.help, ours.labels, buckets=ours.bounds, registry=registry
        )

    requests = Counter("rme_requests_total", "-", ["method", "path", "status"], registry=registry)
    seconds = Counter("rme_request_seconds_total", "-", ["method", "path"], registry=registry)
    request_files, accept_files = in_files(REQUEST_SECONDS), in_files(ACCEPT_SECONDS)
    waiting_files, provider_files = in_files(TIME_TO_PROVIDER), in_files(PROVIDER_SECONDS)
    values = [random.expovariate(20) for _ in range(50)]

    def sent(size: int) -> None:
        TIME_TO_PROVIDER.observe_each((value, ("EMAIL", "0")) for value in values[:size])
        PROVIDER_SECONDS.observe_each((value, ("smtp", "Accepted")) for value in values[:size])

    def sent_by_files(size: int) -> None:
        for histogram in (
            waiting_files.labels("EMAIL", "0"),
            provider_files.labels("smtp", "Accepted"),
        ):
            for value in values[:size]:
                histogram.observe(value)

    def accepted(size: int) -> None:
        counters.add("rme_requests_total", *ROUTE, "202", by=size)
        counters.add("rme_request_seconds_total", *ROUTE, by=1.0)
        REQUEST_SECONDS.observe_each((value, ROUTE) for value in values[:size])
        ACCEPT_SECONDS.observe_each((value, ROUTE[1:]) for value in values[:size])

    def accepted_by_files(size: int) -> None:
        requests.labels(*ROUTE, "202").inc(size)
        seconds.labels(*ROUTE).inc(1.0)
        for histogram in (request_files.labels(*ROUTE), accept_files.labels(*ROUTE[1:])):
            for value in values[:size]:
                histogram.observe(value)

    steps = ((sent, sent_by_files), (accepted, accepted_by_files))
    return {
        f"{name}, {kind}": _cost(step, size)
        for (name, size), pair in zip(SETS.items(), steps, strict=True)
        for kind, step in zip(("ours", "prometheus-client"), pair, strict=True)
    }


def _cost(step: Callable[[int], None], size: int) -> float:
    """Return the CPU of one message of a set, in µs."""
    times = COUNT // size
    step(size)
    began = time.process_time()
    for _ in range(times):
        step(size)
    return (time.process_time() - began) / (times * size) * 1e6


if __name__ == "__main__":
    print(json.dumps(_measure()))
