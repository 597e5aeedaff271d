"""The whole way, from bulk calls over HTTP to recorded outcomes, beside a lean prototype of it."""

import json
import os
import statistics
import time
from collections.abc import Sequence

import psutil

from bench import load
from bench.minutes import seconds_of
from bench.parts import parts_of
from bench.report import say
from bench.scene import Scene, free_port, processes, taken, wait_for_port, web

COUNT = 20_000
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))


def whole(scene: Scene) -> None:
    """Send in turns by the lean prototype (`bench/reference/`) and by rme; medians."""
    lean, ours = [], []
    for _ in range(ROUNDS):
        lean.append(_lean_rate(scene))
        scene.clear()
        ours.append(_rate(scene))
        scene.clear()
    bound, rate = statistics.median(lean), statistics.median(ours)
    say("whole way: lean prototype", bound, "messages/s")
    say("whole way: rme", rate, "messages/s", f"{rate / bound:.0%} of lean")


def service(port: int, sink: int) -> list[list[str]]:
    """Return the commands of a mail server, the web server and the workers."""
    workers = ["rme.workers", "--beat", "--concurrency", os.environ.get("WORKER_CONCURRENCY", "2")]
    web_command = web("rme.asgi:application", port)
    return [["bench.sinks", "--port", str(sink)], web_command, workers]


def _rate(scene: Scene) -> float:
    port, sink = free_port(), free_port()
    scene.mail_by(sink)
    env = {"OUTBOUND_OPEN_HOSTS": f"127.0.0.1:{sink}"}
    with processes(service(port, sink), **env) as (mail, web_server, worker):
        wait_for_port(port)
        wait_for_port(sink)
        return _measure("rme", scene, port, sink, (mail, web_server, worker))


def _lean_rate(scene: Scene) -> float:
    port, sink = free_port(), free_port()
    with processes([["bench.sinks", "--port", str(sink)]]) as (mail,):
        wait_for_port(sink)
        worker = ["bench.reference.lean_worker", str(sink)]
        commands = [web("bench.reference.wsgi:application", port), worker, worker]
        with processes(commands) as running:
            wait_for_port(port)
            return _measure("lean", scene, port, sink, (mail, *running), "/lean/way")


def _measure(
    name: str,
    scene: Scene,
    port: int,
    sink: int,
    running: Sequence[psutil.Process],
    prefix: str = "/rme/v1",
) -> float:
    """Print and return how many messages a second pass, and print what one costs in each part."""
    mail, web_server, *workers = running
    send_through(scene, port, sink, 2000, prefix)
    parts = {**parts_of(web_server, workers), "mail server": lambda: seconds_of(mail)}
    before = {part: seconds() for part, seconds in parts.items()}
    rate = send_through(scene, port, sink, COUNT, prefix)
    spent = {part: (parts[part]() - before[part]) / COUNT * 1e6 for part in parts}
    shares = ", ".join(f"{part} {microseconds:.0f}" for part, microseconds in spent.items())
    total = sum(spent.values())
    print(f"  {name:<5} {rate:>7,.0f}/s; CPU {total:.0f} µs a message: {shares}", flush=True)
    return rate


def send_through(scene: Scene, port: int, sink: int, count: int, prefix: str = "/rme/v1") -> float:
    """Send messages the whole way; return how many a second, until the last outcome is stored."""
    from django.db import connection

    before = taken(sink)
    body = json.dumps({"messages": [scene.body(i) for i in range(500)]}).encode()
    request = load.request_bytes(f"{prefix}/messages/bulk", body, scene.token, port=port)
    started = time.perf_counter()
    load.send(port, [request] * (count // 500), connections=2)
    while taken(sink) < before + count:
        time.sleep(0.02)
    with connection.cursor() as cursor:
        while True:
            cursor.execute("SELECT count(*) FROM messaging_delivery WHERE status <> 'SENT'")
            if cursor.fetchone()[0] == 0:
                break
            time.sleep(0.02)
    took = time.perf_counter() - started
    assert taken(sink) == before + count
    return count / took
