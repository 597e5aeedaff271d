"""What the router costs a request, beside the cell alone, nginx and HAProxy in the same run."""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from bench import load
from bench.report import say
from bench.scene import Scene, free_port, processes, wait_for_port

SECONDS = float(os.environ.get("BENCH_SECONDS", "4"))
ROUNDS = 5
CONNECTIONS = 32
_NGINX = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; client_body_temp_path {folder}; proxy_temp_path {folder};
  fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
  keepalive_requests 1000000;
  upstream cell {{ server 127.0.0.1:{cell}; keepalive 64; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://cell; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header Host $host; proxy_set_header X-Forwarded-For $remote_addr;
    }}
  }}
}}
"""
_HAPROXY = """
global
  nbthread 1
defaults
  mode http
  timeout connect 1s
  timeout client 30s
  timeout server 30s
  http-reuse always
frontend router
  bind 127.0.0.1:{port}
  default_backend cell
backend cell
  option forwardfor
  server eu 127.0.0.1:{cell}
"""


def router(scene: Scene) -> None:
    """Measure all ways in turns: requests a second, p50, and the CPU time of what is between."""
    cell = free_port()
    with ExitStack() as stack:
        stack.enter_context(processes([_granian("bench.router_cell:app", cell)]))
        wait_for_port(cell)
        ways: dict[str, tuple[int, Callable[[], float]]] = {"the cell alone": (cell, lambda: 0.0)}
        for name, start in (("router", _router), ("nginx", _nginx), ("HAProxy", _haproxy)):
            if name == "router" or shutil.which(name.lower()):
                ways[name] = stack.enter_context(start(cell))
        _measure(ways)


def _measure(ways: dict[str, tuple[int, Callable[[], float]]]) -> None:
    body = b'{"channel":"EMAIL","to":[{"contactId":"01980000"}],"template":{"name":"note"}}' * 4
    rates: dict[str, list[float]] = {name: [] for name in ways}
    medians: dict[str, list[float]] = {name: [] for name in ways}
    costs: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, (port, spent) in ways.items():
            path = "/rme/v1/messages"
            requests = [load.request_bytes(path, body, f"token-{n}", port=port) for n in range(100)]
            before = spent()
            found = load.run(port, requests, connections=CONNECTIONS, seconds=SECONDS)
            costs[name].append((spent() - before) / (found.rate * SECONDS))
            alone = load.run(port, requests, connections=1, seconds=SECONDS / 4)
            rates[name].append(found.rate)
            medians[name].append(alone.p50)
            assert found.statuses.keys() | alone.statuses.keys() == {202}, found
    for name in ways:
        say(f"{name}: {CONNECTIONS} connections", statistics.median(rates[name]), "requests/s")
        say(f"{name}: one connection, p50", statistics.median(medians[name]) * 1e6, "µs")
        if name in costs and name != "the cell alone":
            say(f"{name}: CPU of a request", statistics.median(costs[name]) * 1e6, "µs")


def _granian(target: str, port: int) -> list[str]:
    options = ["--interface", "asginl", "--workers", "1", "--http", "1", "--no-ws"]
    return ["granian", *options, "--port", str(port), "--log-level", "warning", target]


@contextmanager
def _router(cell: int) -> Iterator[tuple[int, Callable[[], float]]]:
    port = free_port()
    env = {"CELLS": f"eu=http://127.0.0.1:{cell}", "CELL_SECRET": "s" * 32}
    command = [sys.executable, "-m", "rme.router"]
    with _running(command, port, PORT=str(port), **env) as spent:
        yield port, spent


@contextmanager
def _nginx(cell: int) -> Iterator[tuple[int, Callable[[], float]]]:
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nginx.conf"
        path.write_text(_NGINX.format(folder=folder, port=port, cell=cell))
        with _running(["nginx", "-c", str(path)], port) as spent:
            yield port, spent


@contextmanager
def _haproxy(cell: int) -> Iterator[tuple[int, Callable[[], float]]]:
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "haproxy.cfg"
        path.write_text(_HAPROXY.format(port=port, cell=cell))
        with _running(["haproxy", "-f", str(path)], port) as spent:
            yield port, spent


@contextmanager
def _running(command: list[str], port: int, **env: str) -> Iterator[Callable[[], float]]:
    """Run a program that listens on a port; yield a function of its processor seconds."""
    child = subprocess.Popen(command, env={**os.environ, **env})
    try:
        wait_for_port(port)

        def spent() -> float:
            process = psutil.Process(child.pid)
            tree = [process, *process.children(recursive=True)]
            return sum(sum(each.cpu_times()[:2]) for each in tree)

        yield spent
    finally:
        child.terminate()
        child.wait(20)
