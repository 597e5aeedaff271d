"""The gateway behind a real granian: no client holds a thread by sending or taking slowly."""

import asyncio
import gc
import json
import sys
import time
import weakref
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
import requests

from rme.core.http.chunked import INCOMPLETE, LIMIT
from rme.core.http.serving.gateway import Bounds, Gateway
from tests.core.http.gateway_calls import (
    PATIENCE,
    answer,
    chunked,
    connect,
    digest,
    fresh,
    head,
    log,
    port,
    post,
)
from tests.core.http.serving.gateway_app import app
from tests.service import wait_for

pytestmark = pytest.mark.xdist_group("gateway")  # one server for all of them
__all__ = ["log", "port"]


MEGABYTE = 1024 * 1024


@pytest.mark.parametrize(
    "pieces",
    [
        ["zz", "{}", "0", "", ""],
        ["2\n{}", "0", "", ""],  # a bare LF ends the size, or the data
        ["2", "{}\n0", "", ""],
        ["2", "{}x0", "", ""],
        ["2", "{}", "fffffffffffffffffff", ""],
    ],
)
def test_malformed_chunk_reaches_the_application_as_an_incomplete_body(port, pieces):
    with connect(port, chunked("/environ", *pieces)) as connection:
        answer = connection.makefile("rb").read()
    top, _, body = answer.partition(b"\r\n\r\n")
    assert top.startswith(b"HTTP/1.1 200")
    environ = json.loads(body)
    assert (environ[INCOMPLETE], environ["CONTENT_LENGTH"]) == (True, "0")


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


def test_repeated_response_header_is_sent_twice(port):
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


@pytest.mark.promise("faults-10")
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


def test_client_disconnecting_within_its_body_is_forgotten(port):
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


def test_incomplete_chunked_body_frees_its_memory():
    gateway = Gateway(app, threads=1, bounds=Bounds(memory=MEGABYTE))
    chunked_body = [(b"transfer-encoding", b"chunked")]
    scope = {"method": "POST", "raw_path": b"/environ", "query_string": b"", "scheme": "http"}
    scope |= {"http_version": "1.1", "headers": chunked_body}

    async def answered(*messages):
        arriving, sent = iter(messages), []

        async def receive():
            return next(arriving)

        async def send(message):
            sent.append(message)

        await gateway(scope, receive, send)
        return sent[0]["status"]

    piece = {"type": "http.request", "body": b"a" * MEGABYTE, "more_body": True}
    assert asyncio.run(answered(piece, {"type": "http.disconnect"})) == 200
    parts = [{**piece, "body": b"a" * 100_000}, {**piece, "body": b"a", "more_body": False}]
    assert asyncio.run(answered(*parts)) == 200


def test_slow_upload_raises_in_its_reader(port):
    with connect(port, head("/digest", 8 * MEGABYTE, "Connection: close") + b"a" * 1000) as slow:
        assert answer(slow) == (400, b"The body did not arrive in time.")


def test_late_upload_frees_its_connection():
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


def test_uploads_leave_threads_for_others(port):
    with ExitStack() as stack:
        slow = [
            stack.enter_context(
                connect(port, head("/digest", 8 * MEGABYTE, "Connection: close") + b"a" * 1000)
            )
            for _ in range(4)
        ]
        assert fresh(port, "/") == 200
        assert sorted(answer(each)[0] for each in slow) == [400, 400, 503, 503]


def test_probes_answer_while_all_threads_are_at_work(port):
    with ExitStack() as stack:
        for _ in range(6):
            request = b"GET /slow?1.5 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            stack.enter_context(connect(port, request))
        started = time.monotonic()
        assert [fresh(port, path) for path in ("/livez", "/readyz")] == [200, 200]
        probed = time.monotonic() - started
        asked = time.monotonic()
        assert fresh(port, "/") == 200  # this one had to wait for a thread
        assert time.monotonic() - asked > probed


def test_long_response_is_complete_and_its_reader_may_not_stall(port, log):
    body = requests.get(f"http://127.0.0.1:{port}/long", timeout=PATIENCE).content
    assert len(body) == 20 * MEGABYTE
    with ExitStack() as stack:
        for _ in range(12):  # three times what there are threads, and more than there is room for
            request = b"GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n"
            stack.enter_context(connect(port, request))
        assert [fresh(port, path) for path in ("/", "/livez")] == [200, 200]
        assert requests.get(f"http://127.0.0.1:{port}/long", timeout=PATIENCE).content == body
        wait_for(lambda: log().count("response.abandoned") == 12, PATIENCE)
    written = log()
    assert "Traceback" not in written[: written.index("response.abandoned")]
    assert "Abandoned" not in written
    assert "TimeoutError" not in written


def test_response_to_a_stalled_reader_is_left_unfinished(port, log):
    """A reader that goes on later sees that something is missing."""
    request = b"GET /long HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with connect(port, request) as slow:
        wait_for(lambda: "response.abandoned" in log(), PATIENCE)
        received = b"".join(iter(lambda: slow.recv(MEGABYTE), b""))
    assert received.startswith(b"HTTP/1.1 200 OK\r\n")
    assert not received.endswith(b"\r\n0\r\n\r\n")


def test_response_generation_stops_when_its_client_has_left(port, log):
    with connect(port, b"GET /dripping HTTP/1.1\r\nHost: localhost\r\n\r\n") as client:
        assert client.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")
    wait_for(lambda: "dripping ended" in log(), PATIENCE)
    assert "dripping ended early" in log()


def test_response_breaking_off_is_left_unfinished_and_logged(port, log):
    request = b"GET /breaking HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with connect(port, request) as client:
        received = b"".join(iter(lambda: client.recv(MEGABYTE), b""))
    assert received.startswith(b"HTTP/1.1 200 OK\r\n")
    assert not received.endswith(b"\r\n0\r\n\r\n")
    wait_for(lambda: "response.broken" in log() and "ValueError: a fault" in log(), PATIENCE)
    (line,) = [each for each in log().splitlines() if "response.broken" in each]
    assert "request_id=the-id" in line


def credential(owners):
    return {"Authorization": owners}


def owned(port, owners, pause, body=b"x"):
    headers = credential(owners)
    return post(port, f"/owned/{pause}", body, headers=headers)


def wait_for_calls(port, gate, count):
    """Wait until so many calls stand before a gate."""
    url = f"http://127.0.0.1:{port}/waiting?{gate}"
    wait_for(lambda: int(requests.get(url, timeout=PATIENCE).text) == count, PATIENCE)


@pytest.mark.parametrize(("owners", "threads"), [("acme/{}", 3), ("/one", 2), ("acme/one", 2)])
def test_calls_of_one_owner_leave_threads_for_others_and_are_all_answered(port, owners, threads):
    gate = f"gate-{owners[:5]}-{threads}".replace("/", "-")
    with ThreadPoolExecutor(16) as pool:
        calls = [pool.submit(owned, port, owners.format(n), gate) for n in range(12)]
        wait_for_calls(port, gate, threads)
        other_answers = [owned(port, "other/two", 0.0).text for _ in range(5)]
        wait_for_calls(port, gate, threads)
        fresh(port, f"/open?{gate}")
        answers = sorted(each.result().text for each in calls)
    assert other_answers == ["other/two x"] * 5
    assert answers == sorted(f"{owners.format(n)} x" for n in range(12))


def test_call_waiting_too_long_for_its_owners_turn_is_rejected(port):
    with ThreadPoolExecutor(16) as pool:
        calls = [pool.submit(owned, port, "acme/one", 4.0) for n in range(10)]
        time.sleep(0.3)
        assert owned(port, "acme/two", 0.0).text == "acme/two x"  # a third thread is acme's too
        answers = Counter((each.result().status_code, each.result().text) for each in calls)
    assert answers[429, "too many\n"] >= 4
    assert set(answers) == {(429, "too many\n"), (200, "acme/one x")}


def test_calls_waiting_for_a_slow_dependency_hold_no_thread(port):
    """There are four threads."""
    with ThreadPoolExecutor(16) as pool:
        calls = [pool.submit(post, port, "/awaits/dependency", f"{n}") for n in range(12)]
        wait_for_calls(port, "dependency", 12)
        assert [owned(port, "other/two", 0.0).text for _ in range(5)] == ["other/two x"] * 5
        assert not any(each.done() for each in calls)
        fresh(port, "/open?dependency")
        answers = sorted((each.result().status_code, each.result().text) for each in calls)
    assert answers == sorted((200, f"ready {n}") for n in range(12))


def test_thread_of_a_long_response_yields_half_of_its_time():
    """A spinning response of 0.4 s of CPU time takes twice as long by the clock."""

    def spinning(environ, start_response):
        start_response("200 OK", [])
        for _ in range(20):
            until = time.thread_time() + 0.02
            while time.thread_time() < until:
                pass
            yield b"x" * MEGABYTE

    async def request():
        sizes = []

        async def receive():
            return await asyncio.Future()  # the client stays

        async def send(message):
            sizes.append(len(message.get("body", b"")))

        scope = {"method": "GET", "raw_path": b"/", "query_string": b"", "scheme": "http"}
        scope |= {"http_version": "1.1", "headers": []}
        started = time.monotonic()
        await Gateway(spinning, threads=1)(scope, receive, send)
        return time.monotonic() - started, sum(sizes)

    seconds, size = asyncio.run(request())
    assert size == 20 * MEGABYTE
    assert seconds > 0.7
