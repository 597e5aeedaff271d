"""Push: from rows in the database to recorded outcomes, beside other libraries sending alone.

`python -m bench push`, or some of it: `BENCH_PUSH="apns webpush fcm transport"`. The aims are
per core, so what counts is the processor time of the process that sends; the wall's clock stands
beside it, in which our figure has PostgreSQL, Valkey and the push server on the same cores.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

from bench import push_peers
from bench.push_scene import PushScene, check
from bench.push_server import push_server
from bench.push_transport import transport
from bench.scene import ROOT, Scene

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
CHOSEN = os.environ.get("BENCH_PUSH", "apns webpush fcm transport").split()


@dataclass(frozen=True)
class Contest:
    """A push service, how many messages go to it, and how much faster than whom we mean to be."""

    platform: str
    count: int
    aims: dict[str, int]


CONTESTS = {
    "apns": Contest("IOS", 10_000, {"aioapns": 3}),
    "webpush": Contest("WEB", 3_000, {"pywebpush": 2, "web-push (node)": 3}),
    "fcm": Contest("ANDROID", 3_000, {"firebase-admin": 3, "pyfcm": 3}),
}


OURS = {1: "rme, one process", 2: "rme, as deployed (two)"}
"""Ourselves, by how many processes of a worker send."""


def push(scene: Scene) -> None:
    """Send by each service's sender, in turn with its peers; print the medians and the ratios."""
    try:
        with push_server() as server:
            sending = PushScene(scene, server)
            for name, contest in CONTESTS.items():
                if name in CHOSEN:
                    _contest(name, contest, sending)
            if "transport" in CHOSEN:
                transport(server, ROUNDS)
    except FileNotFoundError as missing:
        print(f"push: skipped: {missing}", flush=True)


def _contest(name: str, contest: Contest, sending: PushScene) -> None:
    job = sending.job(contest.platform, contest.count)
    runners: dict[str, Callable[[], dict[str, float]]] = {}
    for peer in contest.aims:
        try:
            command = push_peers.command(peer)
        except (OSError, subprocess.SubprocessError) as why:
            print(f"{name}: {peer} skipped: {why}", flush=True)
            continue
        runners[peer] = lambda command=command: push_peers.run(command, job)  # type: ignore[misc]
    for workers, label in OURS.items():
        runners[label] = lambda workers=workers: _ours(contest, sending, workers)  # type: ignore[misc]
    measured: dict[str, list[dict[str, float]]] = {who: [] for who in runners}
    for _ in range(ROUNDS):  # in turn, so that what else the machine does meets all alike
        for who, run in runners.items():
            measured[who].append(run())
    ours = [_median(measured[who], "cpu") for who in OURS.values()]
    for who, runs in measured.items():
        cpu, wall = _median(runs, "cpu"), _median(runs, "wall")
        note = f"{wall:,.0f} a second of the wall's clock"
        if who in contest.aims:
            ratios = " and ".join(f"{each / cpu:.1f}" for each in ours)
            note += f"; rme {ratios} x (aim: {contest.aims[who]})"
        _say(f"{name}: {who}", cpu, note)


def _median(runs: list[dict[str, float]], clock: str) -> float:
    """Return messages a second."""
    return statistics.median(run["count"] / run[clock] for run in runs)


def _ours(contest: Contest, sending: PushScene, workers: int) -> dict[str, float]:
    """Accept the messages, and let workers' processes send them."""
    sending.accept(contest.platform, contest.count)
    done = subprocess.run(
        [sys.executable, "-m", "bench.sending", "PUSH", str(contest.count), str(workers)],
        cwd=ROOT,
        env={**os.environ, "OUTBOUND_OPEN_HOSTS": "localhost"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    check(contest.count)
    return measured


def _say(what: str, value: float, note: str) -> None:
    print(f"{what:<34} {value:>10,.0f} a CPU second   {note}", flush=True)
