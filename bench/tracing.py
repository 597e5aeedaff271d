"""What tracing costs an accept: the processor time of web processes, in turns, by the sampling."""

import json
import os
import statistics
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from bench import load
from bench.minutes import seconds_of
from bench.scene import Scene, free_port, processes, wait_for_port, web

SECONDS = float(os.environ.get("BENCH_SECONDS", "4"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
PARENT = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-"
CASES = {"off": ("0", "01"), "on, not sampled": ("1", "00"), "on, sampled": ("1", "01")}


class _Sink(BaseHTTPRequestHandler):
    """Takes what is exported, and drops it."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def _seconds_each(scene: Scene, collector: int, switch: str, flag: str) -> float:
    """Return the processor seconds of the web processes for one call."""
    port = free_port()
    env = {"TRACING": switch, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector}"}
    with processes([web("rme.asgi:application", port)], **env) as (server,):
        wait_for_port(port)
        plain = [
            load.request_bytes(
                "/rme/v1/messages", json.dumps(scene.body(i)).encode(), scene.token, port=port
            )
            for i in range(200)
        ]
        header = f"\r\n{PARENT}{flag}\r\n\r\n".encode()
        requests = [each.replace(b"\r\n\r\n", header, 1) for each in plain]
        load.run(port, requests, connections=64, seconds=1.5)
        before = seconds_of(server)
        measured = load.run(port, requests, connections=64, seconds=SECONDS)
        assert set(measured.statuses) == {202}, measured.statuses
        return (seconds_of(server) - before) / measured.statuses[202]


def tracing(scene: Scene) -> None:
    """Print the processor time of an accepted message without traces, and with them."""
    collector = ThreadingHTTPServer(("127.0.0.1", 0), _Sink)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    found: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(ROUNDS):
        for name, (switch, flag) in CASES.items():
            found[name].append(_seconds_each(scene, collector.server_port, switch, flag))
            scene.clear()
    collector.shutdown()
    for name, times in found.items():
        ratios = [mine / off for mine, off in zip(times, found["off"], strict=True)]
        print(
            f"tracing {name:<16} {statistics.median(times) * 1e6:6.0f} µs of web CPU a message, "
            f"{statistics.median(ratios):.2f} x off",
            flush=True,
        )
