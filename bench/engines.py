"""Our own engines beside libraries, on the whole way that they serve and alone.

`python -m bench engines`, or some of it: `BENCH_ENGINES="http2 smpp smtp"`. Compared is the
processor time of the process that sends; rounds alternate, so that other work on the machine meets
all alike, and the table shows medians.
"""

import json
import os
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Callable

from bench.scene import ROOT, Scene, free_port, processes, wait_for_port

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
COUNT = int(os.environ.get("BENCH_COUNT", "10000"))
CHOSEN = os.environ.get("BENCH_ENGINES", "http2 smpp smtp").split()
SMPPLIB = ("rme", "smpplib")
Run = dict[str, float]
"""Seconds of the processor (`cpu`) and of the clock (`wall`), and the `count` sent in them."""


def use(name: str) -> None:
    """Have this process send by an engine: `http2:libcurl`, `smpp:smpplib`, …"""
    part, _, library = name.partition(":")
    if library in ("", "rme"):
        return
    if part == "http2":
        from bench import engine_http2

        engine_http2.use(library)
    elif part == "smpp":
        from bench import engine_smpp

        engine_smpp.use()
    elif part == "smtp":
        from bench import engine_smtp

        engine_smtp.use(library)


def engines(scene: Scene) -> None:
    """Measure each engine beside the libraries that could replace it."""
    for name, measure in (("http2", _http2), ("smpp", _smpp), ("smtp", _smtp)):
        if name in CHOSEN:
            measure(scene)


def _http2(scene: Scene) -> None:
    from bench import engine_http2
    from bench.push_scene import PushScene
    from bench.push_server import push_server

    with push_server() as server:
        push = PushScene(scene, server)
        _compare("HTTP/2 alone", engine_http2.alone(server, COUNT))
        whole = {
            library: lambda library=library: _whole(  # type: ignore[misc]
                f"http2:{library}", "PUSH", lambda: push.accept("IOS", COUNT)
            )
            for library in engine_http2.ENGINES
        }
        _compare("APNs, rows to outcomes", whole)


def _smpp(scene: Scene) -> None:
    from bench import engine_smpp

    port = free_port()
    with processes([["bench.engine_smpp", str(port)]]):
        wait_for_port(port)
        engine_smpp.prepare(scene, port)
        runners = {
            library: lambda library=library: _whole(  # type: ignore[misc]
                f"smpp:{library}", "SMS", lambda: engine_smpp.accept(scene, COUNT)
            )
            for library in SMPPLIB
        }
        _compare("SMPP, rows to outcomes", runners)
    alone = {library: lambda library=library: _apart("smpp", library) for library in SMPPLIB}  # type: ignore[misc]
    _compare("SMPP PDUs alone", alone)


def _smtp(scene: Scene) -> None:
    from bench import engine_smtp

    port = free_port()
    with processes([["bench.sinks", "--port", str(port)]]):
        wait_for_port(port)
        scene.mail_by(port)
        _compare("SMTP alone", engine_smtp.alone(port, COUNT))
        runners = {
            library: lambda library=library: _whole(  # type: ignore[misc]
                f"smtp:{library}", "EMAIL", lambda: engine_smtp.accept(scene, COUNT)
            )
            for library in engine_smtp.ENGINES
        }
        _compare("SMTP, rows to outcomes", runners)


def _apart(part: str, library: str) -> Run:
    """Measure an engine alone, in a process of its own."""
    code = (
        f"import json; from bench import engine_{part} as engine, engines;"
        f"import django; django.setup(); engines.use('{part}:{library}');"
        f"print(json.dumps(engine.alone({COUNT})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    run: Run = json.loads(done.stdout.splitlines()[-1])
    return run


def _whole(engine: str, channel: str, accept: Callable[[], None]) -> Run:
    """Accept messages, and let a worker's process send them by an engine."""
    from rme.core.cache import TtlCache

    TtlCache.clear_all()
    accept()
    done = subprocess.run(
        [sys.executable, "-m", "bench.sending", channel, str(COUNT), "1"],
        cwd=ROOT,
        env={**os.environ, "OUTBOUND_OPEN_HOSTS": "localhost,127.0.0.1", "BENCH_ENGINE": engine},
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    run: Run = json.loads(done.stdout.splitlines()[-1])
    run["count"] -= COUNT - _sent(engine)
    return run


def _sent(engine: str) -> int:
    """Return how many were sent. A busy machine defers some, and no process sends them later."""
    from messaging.models import Attempt, Delivery

    sent = Delivery.objects.filter(status="SENT").count()
    if sent < COUNT:
        outcomes = Counter(Attempt.objects.values_list("outcome", "reason"))
        print(f"{engine}: {sent} of {COUNT} sent; {outcomes}", flush=True)
    assert sent > 0.98 * COUNT
    return sent


def _compare(title: str, runners: dict[str, Callable[[], Run]]) -> None:
    """Run each in turn, and print the medians; the first is ours."""
    runs: dict[str, list[Run]] = {name: [] for name in runners}
    for _ in range(ROUNDS):
        for name, run in runners.items():
            runs[name].append(run())
    own = None
    for name, found in runs.items():
        costs = sorted(run["cpu"] / run["count"] * 1e6 for run in found)
        rate = statistics.median(run["count"] / run["wall"] for run in found)
        cost = statistics.median(costs)
        own = own or cost
        print(
            f"{f'{title}: {name}':<46} {cost:>7.1f} µs of CPU each ({costs[0]:.1f} to "
            f"{costs[-1]:.1f}), {rate:>8,.0f}/s; {cost / own:.2f} x rme",
            flush=True,
        )
