"""The gateway behind a real granian, and calls to it by sockets, whole and in pieces."""

import hashlib
import os
import socket
import subprocess
import tempfile
import time

import pytest
import requests

from rme.run import programs
from tests.service import ROOT, free_port

LOG = tempfile.TemporaryFile("w+")  # noqa: SIM115 (the server writes to it)


@pytest.fixture
def log():
    """Return a function that returns what the server has written since the test began."""
    before = LOG.seek(0, os.SEEK_END)

    def read():
        LOG.seek(before)
        return LOG.read()

    return read


@pytest.fixture(scope="module")
def port():
    number = free_port()
    command = programs.web({"PORT": str(number), "WEB_WORKERS": "1"})
    command[command.index("rme.web")] = "granian"  # which loads nothing of the service
    command[command.index("rme.asgi:application")] = (
        "tests.core.http.serving.gateway_app:application"
    )
    process = subprocess.Popen(command, cwd=ROOT, stdout=LOG, stderr=subprocess.STDOUT)
    until = time.monotonic() + 30
    while True:
        try:
            requests.get(f"http://127.0.0.1:{number}/livez", timeout=1)
            break
        except requests.RequestException:
            assert time.monotonic() < until
            assert process.poll() is None
            time.sleep(0.1)
    yield number
    process.terminate()
    process.wait(60)


PATIENCE = 20  # seconds, generous: what is looked at is who is answered at all


def connect(port, data):
    connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    connection.sendall(data)
    return connection


def chunked(path, *pieces):
    fields = ["Host: localhost", "Transfer-Encoding: chunked", "Connection: close"]
    lines = [f"POST {path} HTTP/1.1", *fields, ""]
    return "\r\n".join([*lines, *pieces]).encode()


def head(path, length, *more):
    fields = ["Host: localhost", f"Content-Length: {length}", *more]
    return "\r\n".join([f"POST {path} HTTP/1.1", *fields, "", ""]).encode()


def answer(connection):
    """Return the status and the body of an answer after which the connection ends."""
    with connection.makefile("rb") as file:
        status = int(file.readline().split()[1])
        while file.readline().strip():
            pass
        return status, file.read()


def fresh(port, path):
    return requests.get(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE).status_code


def post(port, path, body, **options):
    return requests.post(f"http://127.0.0.1:{port}{path}", body, timeout=PATIENCE, **options)


def digest(body):
    return f"{len(body)} {hashlib.sha256(body).hexdigest()}"
