"""The web server as `make run` starts it: forged headers, long bodies, and lies about them."""

import socket
import subprocess
import time
from contextlib import contextmanager

import psutil
import pytest

from rme.core.http.parsing import BODY_LIMIT
from rme.run import programs
from tests.service import ROOT, free_port
from tests.tenants.oauth.test_real_server import answers, environment

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.system]

FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"


@contextmanager
def serving(tmp_path, **more):
    """Run the web's command of `make run`, in one process, until the block ends."""
    port = free_port()
    env = {**environment(port), "TMPDIR": str(tmp_path), "RME_VAR": str(tmp_path / "var"), **more}
    web = programs.web({**env, "PORT": str(port), "WEB_WORKERS": "1"})
    with (tmp_path / "web.log").open("wb") as log:
        process = subprocess.Popen(web, cwd=ROOT, env=env, stderr=log)
    try:
        until = time.monotonic() + 30
        while not answers(port):
            assert process.poll() is None, (tmp_path / "web.log").read_text()
            assert time.monotonic() < until
            time.sleep(0.1)
        yield port, process
    finally:
        process.terminate()
        process.wait(60)


def exchange(port, head, body=()):
    """Send a request as it is written here; return the status and the text, or 0 if cut off."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as wire:
        try:
            wire.sendall(head)
            for part in body:
                wire.sendall(part)
            while part := wire.recv(65_536):
                answer += part
        except ConnectionError:  # refused before all was sent
            pass
    return int(answer.split(b" ", 2)[1]) if answer else 0, answer


def token_call(port, *headers):
    """Ask for a token with headers in the order given."""
    lines = b"".join(line.encode() + b"\r\n" for line in headers)
    start = b"POST /services/oauth2/token HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    body = b"grant_type=client_credentials"
    return exchange(port, start + lines + FORM + b"Content-Length: %d\r\n\r\n" % len(body) + body)


OURS = "Forwarded: for=192.0.2.1;proto=https"
FORGED = [
    ["X_Forwarded_For: 203.0.113.{n}", OURS],
    [OURS, "X_Forwarded_For: 203.0.113.{n}"],
    [OURS, "X-Forwarded_For: 203.0.113.{n}", "x_forwarded-for: 203.0.113.{n}"],
    [OURS, "X-Forwarded-For: 203.0.113.{n}", "X-Forwarded-Proto: http"],
    [OURS, "X_Forwarded_Proto: http"],
    ["Forwarded: for=203.0.113.{n};proto=http", OURS],
]


def test_headers_by_underscore_forge_neither_address_nor_scheme(redis, tmp_path):
    with serving(tmp_path, TLS_PROXY="forwarded", TOKENS_PER_MINUTE="1") as (port, _):
        status, _answer = token_call(port, OURS)
        assert status == 401
        for n, headers in enumerate(FORGED):
            status, answer = token_call(port, *(line.format(n=n) for line in headers))
            assert (status, b"Retry-After" in answer.title()) == (429, True), headers
        for line in ("X_Forwarded_Proto: https", "X-Forwarded-Proto: https"):
            for order in (1, -1):
                plain = ["Forwarded: for=192.0.2.2;proto=http", line][::order]
                status, answer = token_call(port, *plain)
                assert (status, b"came by plain HTTP" in answer) == (400, True)


def endless(count):
    """Yield the chunks of a body that is sent without saying its length."""
    part = b"a" * 65_536
    yield from (b"10000\r\n" + part + b"\r\n" for _ in range(count))


def chunked(path, kind):
    return b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n%s%s\r\n" % (
        path,
        b"Content-Type: %s\r\n" % kind,
        b"Transfer-Encoding: chunked\r\n",
    )


PATHS = [b"/admin/login/", b"/admin/messaging/suppression/imports/new/", b"/rme/v1/messages"]
PATHS += [b"/services/oauth2/token", b"/bot/api_create.php", b"/hooks/1", b"/p/1", b"/nowhere"]


def send_long_bodies(port):
    """Send each path a body of 300 MB by its length, and one of 100 MB without."""
    for path in PATHS:
        told = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 314572800\r\n" % path
        kind = b"Content-Type: multipart/form-data; boundary=x\r\nConnection: close\r\n\r\n"
        part = b'--x\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n'
        for head, body in (
            (told + kind + part, (b"a" * 65_536 for _ in range(4_800))),
            (chunked(path, b"multipart/form-data; boundary=x"), endless(1_600)),
        ):
            status, answer = exchange(port, head, body)
            assert status in (0, 400, 403, 404, 405, 413, 415), (path, answer)


def test_long_bodies_are_kept_neither_in_memory_nor_on_disk(redis, tmp_path):
    with serving(tmp_path) as (port, process):
        (worker,) = psutil.Process(process.pid).children()
        files = set(tmp_path.rglob("*"))
        sizes = [worker.memory_info().rss]
        for _ in range(3):
            send_long_bodies(port)
            sizes.append(worker.memory_info().rss)
        assert set(tmp_path.rglob("*")) == files
        assert answers(port)
    # a few buffers of the limit's size stay with the allocator, and no more with each round
    assert sizes[-1] - sizes[0] < 12 * BODY_LIMIT
    assert sizes[-1] - sizes[-2] < 3 * BODY_LIMIT


def test_false_content_length_is_rejected(redis, tmp_path):
    start = (
        b"POST /services/oauth2/token HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n" + FORM
    )
    lies = {
        b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n": 400,
        b"Content-Length: -1\r\n\r\n": 400,
        b"Content-Length: 1e9\r\n\r\n": 400,
        b"Content_Length: 999999999\r\nContent-Length: 3\r\n\r\na=b": 400,
        b"Content_Length: abc\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na=b\r\n0\r\n\r\n": 400,
    }
    with serving(tmp_path) as (port, _):
        for lie, expected in lies.items():
            status, answer = exchange(port, start + lie)
            assert status == expected, (lie, answer)
    assert "Traceback" not in (tmp_path / "web.log").read_text()
