"""/metrics at the workers' own port."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
import requests

from tests.service import ROOT, free_port, wait_for

TOKEN = "a-long-metrics-token"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
_WORKERS = """
import django
django.setup()
from django.conf import settings
from rme.core.process import worker
from rme.core.telemetry import meters
from rme.workers import metrics_server
meters.share(settings.METRICS_DIR)
worker.TASKS.add("messaging.sweep", "failed", by=3)
metrics_server.serve()
"""


@pytest.fixture(scope="module")
def port(tmp_path_factory) -> Iterator[int]:
    port = free_port()
    env = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "rme.settings",
        "METRICS_DIR": str(tmp_path_factory.mktemp("workers")),
        "METRICS_PORT": str(port),
        "METRICS_TOKEN": TOKEN,
        "HOST": "127.0.0.1",
    }
    process = subprocess.Popen([sys.executable, "-c", _WORKERS], cwd=ROOT, env=env)
    try:
        wait_for(lambda: answers(port), 60)
        yield port
    finally:
        process.terminate()
        process.wait(10)


def answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_workers_show_what_they_have_counted(port):
    answer = requests.get(f"http://127.0.0.1:{port}/metrics", headers=BEARER, timeout=10)
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert 'rme_tasks_total{outcome="failed",task="messaging.sweep"} 3.0' in answer.text
    assert 'rme_queue_workers{queue="email"} 0.0' in answer.text
    assert "rme_up" not in answer.text  # no database, no Redis


@pytest.mark.promise("health-11")
@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/metrics", {}, 200),
        ("GET", "/metrics", {"X-Forwarded-For": "192.0.2.9"}, 404),
        ("GET", "/metrics", {"Host": "rme.example.org"}, 404),
        ("GET", "/metrics", {"Host": "rme.example.org", **BEARER}, 200),
        ("GET", "/metrics", {"Host": "rme.example.org", "Authorization": "Bearer x"}, 404),
        ("POST", "/metrics", BEARER, 405),
        ("GET", "/", BEARER, 404),
        ("GET", "/admin/", BEARER, 404),
    ],
)
def test_workers_answer_as_the_web_does(port, method, path, headers, status):
    url = f"http://127.0.0.1:{port}{path}"
    assert requests.request(method, url, headers=headers, timeout=10).status_code == status
