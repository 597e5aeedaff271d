"""Single sends the whole way: what one costs in each part of the service; how soon it leaves."""

import json
import os
import statistics
import time
from collections.abc import Sequence

from bench import load
from bench.parts import Parts, parts_of
from bench.scene import Scene, free_port, processes, taken, wait_for_port, web

SECONDS = float(os.environ.get("BENCH_SECONDS", "6"))
LONE = 100
"""The messages that are sent one at a time."""
PAUSE_SECONDS = 0.05
"""Between two of them: the worker is idle again."""

_LATENCY = """
SELECT extract(epoch FROM sent_at - accepted_at)::float8
FROM messaging_delivery d JOIN messaging_attempt a ON a.delivery_id = d.id
WHERE sent_at IS NOT NULL
"""


def singles(scene: Scene) -> None:
    """Single sends over 64 connections, until the last outcome is recorded; then one at a time."""
    port, sink = free_port(), free_port()
    scene.mail_by(sink)
    workers = ["rme.workers", "--beat", "--concurrency", os.environ.get("WORKER_CONCURRENCY", "2")]
    commands = [
        ["bench.sinks", "--port", str(sink)],
        web("rme.asgi:application", port),
        workers,
    ]
    with processes(commands, OUTBOUND_OPEN_HOSTS=f"127.0.0.1:{sink}") as (_, web_server, worker):
        wait_for_port(port)
        wait_for_port(sink)
        requests = [
            load.request_bytes(
                "/rme/v1/messages", json.dumps(scene.body(i)).encode(), scene.token, port=port
            )
            for i in range(200)
        ]
        load.run(port, requests, connections=64, seconds=1.5)
        _wait_until_sent(sink)
        _measure_many(port, sink, requests, parts_of(web_server, [worker]))
        scene.clear()
        _measure_lone(port, sink, requests)


def _measure_many(port: int, sink: int, requests: Sequence[bytes], parts: Parts) -> None:
    before = {name: part() for name, part in parts.items()}
    started = time.perf_counter()
    measured = load.run(port, list(requests), connections=64, seconds=SECONDS)
    assert set(measured.statuses) == {202}, measured.statuses
    _wait_until_sent(sink)
    took, count = time.perf_counter() - started, measured.statuses[202]
    spent = {name: (part() - before[name]) / count * 1e3 for name, part in parts.items()}
    shares = ", ".join(f"{name} {milliseconds:.2f}" for name, milliseconds in spent.items())
    print(
        f"singles, whole way: {count / took:,.0f}/s (accepted {measured.rate:,.0f}/s); "
        f"CPU {sum(spent.values()):.2f} ms a message: {shares}",
        flush=True,
    )


def _measure_lone(port: int, sink: int, requests: Sequence[bytes]) -> None:
    from django.db import connection

    for request in requests[:LONE]:
        load.send(port, [request], connections=1)
        time.sleep(PAUSE_SECONDS)
    _wait_until_sent(sink)
    with connection.cursor() as cursor:
        cursor.execute(_LATENCY)
        times = [seconds * 1e3 for (seconds,) in cursor.fetchall()]
    print(
        f"singles, one at a time: accepted to sent p50 {statistics.median(times):.1f} ms, "
        f"p90 {statistics.quantiles(times, n=10)[-1]:.1f} ms",
        flush=True,
    )


def _wait_until_sent(sink: int) -> None:
    from django.db import connection

    while True:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM messaging_delivery WHERE status <> 'SENT'")
            if cursor.fetchone()[0] == 0:
                return
        taken(sink)  # the sink is there
        time.sleep(0.05)
