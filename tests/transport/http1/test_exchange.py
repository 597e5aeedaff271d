"""Requests that are answered, over HTTP/1.1 and HTTP/2."""

import signal
import socket
import threading
from pathlib import Path
from types import FrameType

import pytest

from rme.transport import (
    AddressPolicy,
    Failure,
    FailureKind,
    InvalidRequest,
    Reply,
    Request,
    Transport,
)
from tests.fakes import http2, tcp
from tests.fakes.http1 import Http1Server, Seen, ok, respond
from tests.fakes.http2 import Http2Connection, Http2Server, Stream
from tests.fakes.tls import ca_pem, server_context


def statuses(results: list[Reply | Failure]) -> list[int | FailureKind]:
    return [one.status if isinstance(one, Reply) else one.kind for one in results]


def h2_request(server: Http2Server, body: bytes = b"x", timeout: float = 5.0) -> Request:
    return Request(server.url, body, http2=True, ca_pem=ca_pem(), timeout=timeout)


def test_perform_answers_in_the_order_of_the_requests(transport: Transport) -> None:
    with Http1Server() as one, Http1Server(tls=server_context()) as other:
        requests = [
            Request((one, other)[place % 2].url, b"%d" % place, ca_pem=ca_pem())
            for place in range(60)
        ]
        results = transport.perform(requests)
    assert [r.body for r in results if isinstance(r, Reply)] == [b"%d" % i for i in range(60)]


def test_perform_without_requests_returns_nothing(transport: Transport) -> None:
    assert transport.perform([]) == []


def test_request_arrives_unchanged(transport: Transport) -> None:
    with Http1Server() as server:
        headers = (("X-One", "1"), ("Content-Type", "text/x"), ("X-Empty", ""))
        transport.perform([Request(f"{server.url}a/../b%20?c=d", b"\0body", "PUT", headers)])
    assert server.seen == [
        Seen(
            0,
            "PUT",
            "/a/../b%20?c=d",
            (
                ("Host", f"127.0.0.1:{server.port}"),
                ("Accept", "*/*"),
                ("X-One", "1"),
                ("Content-Type", "text/x"),
                ("X-Empty", ""),
                ("Content-Length", "5"),
            ),
            b"\0body",
        )
    ]


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "POST", "PATCH"])
def test_request_without_a_body_has_its_method(transport: Transport, method: str) -> None:
    with Http1Server(lambda connection, seen: respond(connection, 204)) as server:
        (result,) = transport.perform([Request(server.url, method=method)])
    assert (statuses([result]), [(s.method, s.body) for s in server.seen]) == (
        [204],
        [(method, b"")],
    )


def test_reused_handle_does_not_leak_the_last_request(transport: Transport) -> None:
    with Http1Server() as server:
        first = Request(server.url, b"secret", headers=(("Authorization", "Bearer x"),))
        transport.perform([first])
        transport.perform([Request(server.url, method="GET")])
    seen = server.seen[1]
    assert (seen.method, seen.body, seen.header("Authorization")) == ("GET", b"", None)


def test_reply_has_the_headers_of_the_last_answer_in_lower_case(transport: Transport) -> None:
    def answer(connection: socket.socket, seen: Seen) -> None:
        connection.sendall(b"HTTP/1.1 103 Early\r\nX-Early: 1\r\n\r\n")
        respond(connection, 429, b"no", {"Retry-After": "7"})

    with Http1Server(answer) as server:
        (result,) = transport.perform([Request(server.url)])
    assert isinstance(result, Reply)
    assert (result.status, result.body) == (429, b"no")
    assert dict(result.headers) == {"content-length": "2", "retry-after": "7"}
    assert 0 < result.elapsed < 5


def test_connections_are_limited_and_reused_between_calls() -> None:
    transport = Transport(AddressPolicy(["127.0.0.1"]), per_host=4)
    with Http1Server() as server:
        for _ in range(3):
            assert statuses(transport.perform([Request(server.url)] * 40)) == [200] * 40
        assert 1 <= server.connections <= 4
    transport.close()


def test_http2_requests_share_one_connection(transport: Transport) -> None:
    with Http2Server() as server:
        for _ in range(2):
            results = transport.perform([h2_request(server, b"%d" % i) for i in range(90)])
            assert [r.body for r in results if isinstance(r, Reply)] == [
                b"%d" % i for i in range(90)
            ]
        assert server.connections == 1


def test_http2_falls_back_to_http1(transport: Transport) -> None:
    with Http1Server(tls=server_context("http/1.1")) as server:
        request = Request(server.url, b"x", http2=True, ca_pem=ca_pem())
        assert statuses(transport.perform([request] * 5)) == [200] * 5


def test_redirects_are_not_followed(transport: Transport) -> None:
    def answer(connection: socket.socket, seen: Seen) -> None:
        respond(connection, 302, b"", {"Location": "/elsewhere"})

    with Http1Server(answer) as server:
        assert statuses(transport.perform([Request(server.url)])) == [302]
    assert [seen.path for seen in server.seen] == ["/"]


def test_cookies_netrc_and_proxies_of_the_environment_do_not_count(
    transport: Transport, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{tcp.free_port()}")

    def answer(connection: socket.socket, seen: Seen) -> None:
        respond(connection, 200, b"", {"Set-Cookie": "a=b"})

    with Http1Server(answer) as server:
        for _ in range(2):
            assert statuses(transport.perform([Request(server.url)])) == [200]
    assert {name for seen in server.seen for name, _ in seen.headers} == {
        "Host",
        "Accept",
        "Content-Length",
    }


@pytest.mark.promise("faults-7", "push-sending-28")
def test_slow_host_does_not_delay_another(transport: Transport) -> None:
    served = threading.Event()
    answers = 0

    def quick(connection: socket.socket, seen: Seen) -> None:
        nonlocal answers
        ok(connection, seen)
        answers += 1
        if answers == 30:
            served.set()

    def slow(connection: socket.socket, seen: Seen) -> None:
        respond(connection, 200 if served.wait(30) else 500)

    with Http1Server(slow) as waiting, Http1Server(quick) as going:
        requests = [Request(waiting.url), *[Request(going.url)] * 30]
        assert statuses(transport.perform(requests)) == [200] * 31


def test_silent_host_takes_one_time_out() -> None:
    transport = Transport(AddressPolicy(["127.0.0.1"]), per_host=2)
    with Http1Server(lambda connection, seen: tcp.stall(connection)) as server:
        results = transport.perform([Request(server.url, timeout=tcp.TIME_OUT)] * 8)
        assert len(server.seen) == 2
    assert statuses(results) == [FailureKind.UNKNOWN] * 2 + [FailureKind.NOT_SENT] * 6
    transport.close()


def test_host_without_connections_is_not_tried_for_each_request() -> None:
    transport = Transport(AddressPolicy(["127.0.0.1"]), per_host=2)
    with tcp.TcpServer(lambda connection, _: tcp.stall(connection)) as server:
        request = Request(f"https://127.0.0.1:{server.port}/", connect_timeout=0.3)
        assert statuses(transport.perform([request] * 8)) == [FailureKind.NOT_SENT] * 8
        assert server.connections == 2
    transport.close()


def test_stalled_stream_affects_no_other(transport: Transport) -> None:
    def answer(connection: Http2Connection, stream: Stream) -> None:
        if stream.body != b"stall":
            http2.ok(connection, stream)

    with Http2Server(answer) as server:
        stalled = h2_request(server, b"stall", timeout=tcp.TIME_OUT)
        requests = [stalled, *[h2_request(server)] * 5]
        assert statuses(transport.perform(requests)) == [FailureKind.UNKNOWN, *[200] * 5]
        assert statuses(transport.perform([h2_request(server)])) == [200]
        assert server.connections == 1


def test_transport_works_after_a_time_limit_ended_a_call(transport: Transport) -> None:
    class TimeLimit(Exception):
        pass

    def limit(number: int, frame: FrameType | None) -> None:
        raise TimeLimit

    before = signal.signal(signal.SIGALRM, limit)
    try:
        silent = Http1Server(lambda connection, seen: tcp.stall(connection))
        with silent as stalled, pytest.raises(TimeLimit):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            transport.perform([Request(stalled.url)] * 15)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    with Http1Server() as server:
        assert statuses(transport.perform([Request(server.url)] * 15)) == [200] * 15


@pytest.mark.parametrize(
    "given",
    [
        {"url": "https://x.test/\r\nX: y"},
        {"url": "https://x.test/ a"},
        {"url": "https://x.test/\0"},
        {"url": "https://münchen.test/"},
        {"url": ""},
        {"method": "GET / HTTP/1.1\r\nX:"},
        {"headers": (("X", "a\r\nY: b"),)},
        {"headers": (("X", "a\nb"),)},
        {"headers": (("X", "a\0b"),)},
        {"headers": (("X", "é"),)},
        {"headers": (("X\r\nY", "b"),)},
        {"headers": (("X: y", "b"),)},
        {"headers": (("", "b"),)},
    ],
)
def test_unsafe_request_is_rejected(given: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest):
        Request(**{"url": "https://x.test/", **given})  # type: ignore[arg-type]


def test_repr_of_a_request_has_no_secrets() -> None:
    request = Request(
        "https://user:pw@push.test/capability?token=t", b"body", headers=(("Authorization", "s"),)
    )
    assert repr(request) == "Request(POST push.test, 4 bytes)"
