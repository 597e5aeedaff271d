"""The request log: what it costs single sends over 64 connections, with it and without in turns."""

import json
import os
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from bench import load
from bench.minutes import service_seconds
from bench.scene import Scene, free_port, processes, wait_for_port, web

SECONDS = float(os.environ.get("BENCH_SECONDS", "5"))
PAIRS = int(os.environ.get("BENCH_ROUNDS", "4"))


class Cost(NamedTuple):
    """What single sends took in a turn."""

    rate: float
    seconds: float
    """Processor time of one, of all processes but the load's."""


def request_log(scene: Scene) -> None:
    """Single sends without the log and with it, several times in turns, as ratios of each pair."""
    pairs = []
    for number in range(PAIRS):
        days = ("0", "7") if number % 2 else ("7", "0")  # what is first finds another machine
        costs = {each: _cost(scene, each) for each in days}
        pairs.append((costs["0"], costs["7"]))
    _say("rate", [on.rate / off.rate for off, on in pairs])
    _say("processor time", [on.seconds / off.seconds for off, on in pairs])
    microseconds = statistics.median((on.seconds - off.seconds) * 1e6 for off, on in pairs)
    print(f"request log: {microseconds:.1f} µs of processor time a send", flush=True)


def _say(what: str, ratios: Sequence[float]) -> None:
    every = ", ".join(f"{each:.3f}" for each in sorted(ratios))
    median = statistics.median(ratios)
    print(f"request log: {what} with it to without: {median:.3f} of {every}", flush=True)


def _cost(scene: Scene, days: str) -> Cost:
    scene.clear()
    port = free_port()
    with processes([web("rme.asgi:application", port)], REQUEST_LOG_DAYS=days) as running:
        wait_for_port(port)
        requests = [
            load.request_bytes(
                "/rme/v1/messages", json.dumps(scene.body(i)).encode(), scene.token, port=port
            )
            for i in range(200)
        ]
        load.run(port, requests, connections=64, seconds=1.5)
        before = service_seconds(running)
        measured = load.run(port, requests, connections=64, seconds=SECONDS)
        assert set(measured.statuses) == {202}, measured.statuses
        return Cost(measured.rate, (service_seconds(running) - before) / measured.statuses[202])
