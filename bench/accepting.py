"""Accepting over HTTP beside references; and in this process, without HTTP."""

import json
import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import psutil

from bench import load
from bench.minutes import service_seconds
from bench.scene import Scene, free_port, processes, wait_for_port, web

SECONDS = float(os.environ.get("BENCH_SECONDS", "4"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
STACKS = {
    "ordinary": ("bench.reference.wsgi:application", "/ordinary"),
    "lean": ("bench.reference.wsgi:application", "/lean"),
    "rme": ("rme.asgi:application", "/rme/v1"),
}


@dataclass(frozen=True, slots=True)
class Rates:
    """What one stack does: messages a second over 64 connections, over one, and in bulks."""

    single: float
    seconds: float
    """Processor time of a single message over 64 connections, of all processes but the load's."""
    p50: float
    """Seconds until the answer over one connection, the median."""
    bulk: float


def _rates(scene: Scene, application: str, prefix: str) -> Rates:
    port = free_port()
    with processes([web(application, port)]) as running:
        wait_for_port(port)
        singles = [_request(scene, f"{prefix}/messages", scene.body(i), port) for i in range(200)]
        messages = {"messages": [scene.body(i) for i in range(500)]}
        bulk = _request(scene, f"{prefix}/messages/bulk", messages, port)
        _run(port, singles, 64, 1.5)
        before = service_seconds(running)
        many = _run(port, singles, 64, SECONDS)
        spent = service_seconds(running) - before
        one = _run(port, singles, 1, SECONDS / 2)
        bulks = _run(port, [bulk], 4, SECONDS)
        return Rates(many.rate, spent / many.statuses[202], one.p50, bulks.rate * 500)


def _request(scene: Scene, path: str, body: dict[str, Any], port: int) -> bytes:
    return load.request_bytes(path, json.dumps(body).encode(), scene.token, port=port)


def _run(port: int, requests: Sequence[bytes], connections: int, seconds: float) -> load.Load:
    measured = load.run(port, list(requests), connections=connections, seconds=seconds)
    assert set(measured.statuses) == {202}, measured.statuses
    return measured


def accept(scene: Scene) -> None:
    """Accepting over HTTP, against the ordinary stack and the lean one, in turns."""
    rounds: dict[str, list[Rates]] = {name: [] for name in STACKS}
    for _ in range(ROUNDS):
        for name, stack in STACKS.items():
            rounds[name].append(_rates(scene, *stack))
    median = {
        name: Rates(
            *(
                statistics.median(getattr(each, field) for each in found)
                for field in Rates.__dataclass_fields__
            )
        )
        for name, found in rounds.items()
    }
    ordinary, lean, ours = median["ordinary"], median["lean"], median["rme"]
    print(f"accepting: medians of {ROUNDS} rounds of {psutil.cpu_count()} cores")
    for name, rates in median.items():
        print(
            f"  {name:<10} single {rates.single:>7,.0f}/s, {rates.seconds * 1e3:5.2f} ms of CPU; "
            f"one connection p50 {rates.p50 * 1e3:5.2f} ms; bulk of 500 {rates.bulk:>7,.0f}/s"
        )
    print(
        f"  rme: single {ours.single / ordinary.single:.1f} x ordinary, "
        f"{ours.single / lean.single:.2f} x lean; bulk {ours.bulk / ordinary.bulk:.1f} x ordinary, "
        f"{ours.bulk / lean.bulk:.0%} of lean",
        flush=True,
    )


def accept_in_process(
    scene: Scene, count: int, body: Callable[[int], dict[str, Any]] | None = None
) -> None:
    """Accept messages in bulks of 500; `body` writes the request of a number."""
    from messaging.accept import Submission, accept_bulk
    from messaging.accept.requests import MESSAGE
    from rme.core.http.parsing import parse
    from rme.tenants import organizations
    from rme.tenants.oauth.authentication import Caller

    caller = Caller(organizations.get("bench"), scene.application_id, 1, False)
    write = body or scene.body
    for start in range(0, count, 500):
        submissions = [Submission(parse(MESSAGE, write(start + i))) for i in range(500)]
        accept_bulk(caller, submissions, key=None, request_id="bench")
