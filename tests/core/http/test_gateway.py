"""The gateway behind a real granian: no client holds a thread by sending or taking slowly."""

import asyncio
import gc
import hashlib
import json
import socket
import subprocess
import sys
import time
import weakref
from collections import Counter
from contextlib import ExitStack

import pytest
import requests

from rme.core.http.chunked import LIMIT
from rme.core.http.gateway import Bounds, Gateway
from rme.run import programs
from tests.core.http.gateway_app import app
from tests.service import ROOT, free_port

pytestmark = pytest.mark.xdist_group("gateway")  # one server for all of them

PATIENCE = 20  # seconds, generous: what is looked at is who is answered at all

MEGABYTE = 1024 * 1024


@pytest.fixture(scope="module")
def port():
    number = free_port()
    command = programs.web({"PORT": str(number), "WEB_WORKERS": "1"})
    command[command.index("rme.web")] = "granian"  # which loads nothing of the service
    command[command.index("rme.asgi:application")] = "tests.core.http.gateway_app:application"
    process = subprocess.Popen(command, cwd=ROOT)
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
    process.wait(20)


def connect(port, data):
    connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    connection.sendall(data)
    return connection


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


def test_environ_follows_pep_3333(port):
    request = (
        b"GET /environ?q=%20x HTTP/1.1\r\nHost: localhost\r\nX-A: 1\r\nX-A: 2\r\n"
        b"Cookie: a=1\r\nCookie: b=2\r\nX-Lat: caf\xe9\r\nConnection: close\r\n\r\n"
    )
    with connect(port, request) as connection:
        status, body = answer(connection)
    assert status == 200
    shown = json.loads(body)
    assert shown == {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": "",
        "PATH_INFO": "/environ",
        "QUERY_STRING": "q=%20x",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": str(port),
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": "localhost",
        "HTTP_X_A": "1,2",
        "HTTP_COOKIE": "a=1; b=2",
        "HTTP_X_LAT": "caf\xe9",
        "HTTP_CONNECTION": "close",
    }


def test_path_with_escapes_is_bytes_as_latin_1(port):
    with connect(port, b"GET /environ/../%65nviron HTTP/1.0\r\nHost: x\r\n\r\n") as connection:
        assert answer(connection)[1] == b"ok\n"  # nothing is resolved, and so it is another path
    with connect(port, b"GET /%65nviron HTTP/1.0\r\nHost: x\r\n\r\n") as connection:
        assert json.loads(answer(connection)[1])["PATH_INFO"] == "/environ"


def test_header_with_an_underscore_is_left_out(port):
    request = b"GET /environ HTTP/1.0\r\nHost: x\r\nX_Forwarded_For: 6.6.6.6\r\n"
    with connect(port, request + b"X-Forwarded-For: 10.0.0.9\r\n\r\n") as connection:
        assert json.loads(answer(connection)[1])["HTTP_X_FORWARDED_FOR"] == "10.0.0.9"
    with connect(port, request + b"\r\n") as connection:
        assert "HTTP_X_FORWARDED_FOR" not in json.loads(answer(connection)[1])


def test_header_that_comes_twice_goes_out_twice(port):
    headers = requests.get(f"http://127.0.0.1:{port}/", timeout=PATIENCE).raw.headers
    assert headers.getlist("set-cookie") == ["a=1", "b=2"]


@pytest.mark.parametrize("size", [0, 1, 70_000, LIMIT, LIMIT + 1, 9 * MEGABYTE])
def test_body_of_any_size_is_complete(port, size):
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    assert post(port, "/digest", body).text == digest(body)


def test_body_in_chunks_has_a_length_and_a_limit(port):
    parts = [b"a" * 100_000] * 10
    assert post(port, "/digest", iter(parts)).text == digest(b"".join(parts))
    parts = [b"a" * MEGABYTE] * 7
    assert post(port, "/length", iter(parts)).text == str(sys.maxsize)


def test_fault_of_the_application_is_a_500(port):
    assert fresh(port, "/fails") == 500
    assert fresh(port, "/") == 200


def test_half_sent_bodies_hold_no_thread_and_end_in_time(port):
    with ExitStack() as stack:
        halves = [stack.enter_context(connect(port, head("/", 100) + b"{")) for _ in range(50)]
        assert [fresh(port, path) for path in ("/", "/livez", "/readyz")] == [200, 200, 200]
        assert {answer(each) for each in halves} == {(408, b"The body did not arrive in time.\n")}


def test_dripping_body_ends_in_time(port):
    with connect(port, head("/", 1000)) as connection:
        for _ in range(40):
            try:
                connection.sendall(b"a")
            except OSError:
                break  # it was told, and did not listen
            time.sleep(0.2)
        else:
            pytest.fail("a byte every 0.2 s was taken for eight seconds")
    assert fresh(port, "/") == 200


def test_client_that_leaves_within_its_body_is_forgotten(port):
    for _ in range(10):
        connect(port, head("/", 100) + b"{").close()
    assert fresh(port, "/") == 200


def test_half_sent_heads_do_not_delay_others(port):
    with ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(connect(port, b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: "))
        assert [fresh(port, path) for path in ("/", "/livez", "/readyz")] == [200, 200, 200]


def test_bodies_beyond_the_memory_are_refused_and_small_ones_are_not(port):
    with ExitStack() as stack:
        halves = []
        for _ in range(4):  # 14 MiB, of which there is room for 8
            half = head("/", 4 * MEGABYTE) + b"a" * (3 * MEGABYTE + MEGABYTE // 2)
            halves.append(stack.enter_context(connect(port, half)))
        assert post(port, "/digest", b"a" * 1000).text == digest(b"a" * 1000)
        answers = Counter(answer(each) for each in halves)
    assert answers[408, b"The body did not arrive in time.\n"] in (1, 2)
    assert answers[503, b"Too many large requests are arriving at once.\n"] in (2, 3)
    until = time.monotonic() + PATIENCE  # they are gone, and their memory with them
    while post(port, "/digest", b"a" * 2 * MEGABYTE).status_code != 200:
        assert time.monotonic() < until
        time.sleep(0.1)


def test_slow_upload_is_an_error_of_its_reader(port):
    with connect(port, head("/digest", 8 * MEGABYTE, "Connection: close") + b"a" * 1000) as slow:
        assert answer(slow) == (400, b"The body did not arrive in time.")


def test_late_upload_keeps_nothing_of_the_connection():
    """granian ends a connection when what reads its body is freed, so no circle may keep it."""

    class Receive:
        async def __call__(self):
            await asyncio.Event().wait()

    async def request():
        receive, sent = Receive(), []

        async def send(message):
            sent.append(message)

        bounds = Bounds(idle_seconds=0.01)
        headers = [(b"content-length", b"%d" % (LIMIT + 1))]
        scope = {"method": "POST", "raw_path": b"/digest", "query_string": b"", "scheme": "http"}
        scope |= {"http_version": "1.1", "headers": headers}
        await asyncio.create_task(Gateway(app, threads=1, bounds=bounds)(scope, receive, send))
        return weakref.ref(receive), sent[0]["status"]

    gc.disable()
    try:
        receive, status = asyncio.run(request())
        assert status == 400
        until = time.monotonic() + PATIENCE
        while receive() is not None:  # the thread that answered has it for a moment more
            assert time.monotonic() < until
            time.sleep(0.01)
    finally:
        gc.enable()


def test_uploads_leave_threads_to_others(port):
    with ExitStack() as stack:
        slow = [
            stack.enter_context(
                connect(port, head("/digest", 8 * MEGABYTE, "Connection: close") + b"a" * 1000)
            )
            for _ in range(4)
        ]
        assert fresh(port, "/") == 200
        assert sorted(answer(each)[0] for each in slow) == [400, 503, 503, 503]


def test_probes_answer_while_all_threads_are_at_work(port):
    with ExitStack() as stack:
        for _ in range(6):
            request = b"GET /slow?1.5 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            stack.enter_context(connect(port, request))
        started = time.monotonic()
        assert [fresh(port, path) for path in ("/livez", "/readyz")] == [200, 200]
        probed = time.monotonic() - started
        assert fresh(port, "/") == 200  # this one had to wait for a thread
        assert time.monotonic() - started > probed


def test_long_response_is_complete_and_its_reader_may_not_stall(port):
    body = requests.get(f"http://127.0.0.1:{port}/long", timeout=PATIENCE).content
    assert len(body) == 20 * MEGABYTE
    with ExitStack() as stack:
        for _ in range(6):  # three times what there are threads
            request = b"GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n"
            stack.enter_context(connect(port, request))
        assert fresh(port, "/") == 200
