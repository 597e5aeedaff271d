"""Requests without a complete response: certainly not sent, or unknown, and never sent twice."""

import socket
import time

import pytest
from h2.errors import ErrorCodes

from rme.transport import AddressPolicy, Failure, FailureKind, Reply, Request, Transport
from tests.fakes import http2, tcp
from tests.fakes.http1 import Http1Server, Seen, ok
from tests.fakes.http2 import Http2Connection, Http2Server, Stream
from tests.fakes.tls import ca_pem, server_context

NOT_SENT, UNKNOWN, TLS = FailureKind.NOT_SENT, FailureKind.UNKNOWN, FailureKind.TLS


def kind_of(transport: Transport, request: Request) -> FailureKind | int:
    (result,) = transport.perform([request])
    return result.kind if isinstance(result, Failure) else result.status


# Before anything was written


@pytest.mark.promise("reliability-5")
def test_refused_connection_is_not_sent(transport: Transport) -> None:
    assert kind_of(transport, Request(f"http://127.0.0.1:{tcp.free_port()}/")) is NOT_SENT


def test_request_to_an_unresolvable_name_is_not_sent(transport: Transport) -> None:
    assert kind_of(transport, Request("https://nowhere.invalid/")) is NOT_SENT


@pytest.mark.parametrize(
    ("talk", "kind"),
    [
        (lambda connection, _: None, NOT_SENT),
        (lambda connection, _: connection.recv(9999) and None, NOT_SENT),
        (lambda connection, _: tcp.reset(connection), NOT_SENT),
        (lambda connection, _: tcp.stall(connection), NOT_SENT),
        (lambda connection, _: connection.sendall(b"HTTP/1.1 400 No\r\n\r\n"), TLS),
    ],
)
def test_failed_handshake_is_not_sent(
    transport: Transport, talk: tcp.Talk, kind: FailureKind
) -> None:
    with tcp.TcpServer(talk) as server:
        url = f"https://127.0.0.1:{server.port}/"
        wait = 0.3 if kind is NOT_SENT else 5.0
        assert kind_of(transport, Request(url, b"x", connect_timeout=wait)) is kind


def test_certificate_of_an_unknown_authority_is_not_trusted(transport: Transport) -> None:
    with Http1Server(tls=server_context()) as server:
        assert kind_of(transport, Request(server.url, b"x")) is TLS
    assert server.seen == []


def test_certificate_of_another_name_is_not_trusted() -> None:
    with Http1Server(tls=server_context()) as server:
        where = f"other.test:{server.port}"
        transport = Transport(AddressPolicy(["other.test"]), resolve=[f"{where}:127.0.0.1"])
        assert kind_of(transport, Request(f"https://{where}/", b"x", ca_pem=ca_pem())) is TLS
        transport.close()
    assert server.seen == []


# After something was written, or may have been


def stall(connection: socket.socket, seen: Seen) -> None:
    tcp.stall(connection)


def half(connection: socket.socket, seen: Seen) -> bool:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf")
    return False


def half_head(connection: socket.socket, seen: Seen) -> bool:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Le")
    return False


def half_chunk(connection: socket.socket, seen: Seen) -> bool:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf")
    return False


def drip(connection: socket.socket, seen: Seen) -> None:
    tcp.drip(connection, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" + b"x" * 9, 0.1)


def too_long(connection: socket.socket, seen: Seen) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + b"x" * 5000)


def too_long_unannounced(connection: socket.socket, seen: Seen) -> bool:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 5000)
    return False


def garbage(connection: socket.socket, seen: Seen) -> bool:
    connection.sendall(b"\0\1\2 what is this\r\n\r\n")
    return False


def endless_headers(connection: socket.socket, seen: Seen) -> bool:
    connection.sendall(b"HTTP/1.1 200 OK\r\n" + b"X-Filler: 0123456789\r\n" * 50_000)
    return False


@pytest.mark.promise("routes-25", "reliability-5", "faults-7")
@pytest.mark.parametrize(
    "answer",
    [
        stall,
        lambda connection, seen: False,
        lambda connection, seen: tcp.reset(connection),
        half,
        half_head,
        half_chunk,
        drip,
        too_long,
        too_long_unannounced,
        garbage,
        endless_headers,
    ],
)
@pytest.mark.parametrize("reused", [False, True])
@pytest.mark.parametrize(("method", "body"), [("POST", b"x"), ("POST", b""), ("DELETE", b"")])
def test_incomplete_response_is_unknown_and_sent_once(
    transport: Transport, answer: object, reused: bool, method: str, body: bytes
) -> None:
    def then(connection: socket.socket, seen: Seen) -> bool | None:
        return ok(connection, seen) if seen.path == "/first" else answer(connection, seen)  # type: ignore[operator,no-any-return]

    with Http1Server(then) as server:
        if reused:
            assert kind_of(transport, Request(f"{server.url}first", b"x")) == 200
        patience = 1.0 if reused else tcp.TIME_OUT
        timeout = patience if answer in (stall, drip) else 5.0
        request = Request(f"{server.url}it", body, method, timeout=timeout, max_response=1000)
        assert kind_of(transport, request) is UNKNOWN
        time.sleep(0.05)
    assert [seen.connection for seen in server.seen if seen.path == "/it"] == [0]


def test_status_of_a_too_long_answer_is_known(transport: Transport) -> None:
    with Http1Server(too_long) as server:
        (result,) = transport.perform([Request(server.url, max_response=1000)])
    assert result == Failure(UNKNOWN, "the answer is too long", 200)


def test_response_of_the_greatest_length_is_accepted(transport: Transport) -> None:
    with Http1Server(too_long) as server:
        (result,) = transport.perform([Request(server.url, max_response=5000)])
    assert isinstance(result, Reply)
    assert len(result.body) == 5000


def test_incompletely_read_body_is_unknown(transport: Transport) -> None:
    def talk(connection: socket.socket, number: int) -> None:
        connection.recv(1000)
        tcp.reset(connection)

    with tcp.TcpServer(talk) as server:
        request = Request(f"http://127.0.0.1:{server.port}/", b"x" * 5_000_000, timeout=2)
        assert kind_of(transport, request) is UNKNOWN


def test_repeatable_request_is_repeated_after_a_dead_connection(
    transport: Transport,
) -> None:
    def answer(connection: socket.socket, seen: Seen) -> bool | None:
        return ok(connection, seen) if len(server.seen) != 2 else False

    with Http1Server(answer) as server:
        request = Request(server.url, method="GET")
        assert [kind_of(transport, request) for _ in range(2)] == [200, 200]
    assert [seen.connection for seen in server.seen] == [0, 0, 1]


def test_connection_closed_while_idle_loses_no_request(transport: Transport) -> None:
    def answer(connection: socket.socket, seen: Seen) -> bool:
        ok(connection, seen)
        return False

    with Http1Server(answer) as server:
        results = []
        for _ in range(4):
            results.append(kind_of(transport, Request(server.url, b"x")))
            server.wait_until_closed()
    assert results == [200] * 4
    assert [seen.connection for seen in server.seen] == [0, 1, 2, 3]


@pytest.mark.promise("push-answers-7")
def test_http2_connection_closed_while_idle_loses_no_request(transport: Transport) -> None:
    def answer(connection: Http2Connection, stream: Stream) -> bool:
        http2.ok(connection, stream)
        connection.flush()
        tcp.end_in_order(connection.socket)
        return False

    with Http2Server(answer) as server:
        results = []
        for _ in range(4):
            request = Request(server.url, b"x", http2=True, ca_pem=ca_pem())
            results.append(kind_of(transport, request))
            server.wait_until_closed()
    assert results == [200] * 4
    assert [seen.connection for seen in server.seen] == [0, 1, 2, 3]


# HTTP/2


def refuse(connection: Http2Connection, stream: Stream) -> None:
    connection.h2.reset_stream(stream.id, ErrorCodes.REFUSED_STREAM)


def cancel(connection: Http2Connection, stream: Stream) -> None:
    connection.h2.reset_stream(stream.id, ErrorCodes.INTERNAL_ERROR)


def go_away_before(connection: Http2Connection, stream: Stream) -> bool:
    connection.h2.close_connection(last_stream_id=stream.id - 2 if stream.id > 1 else 0)
    return False


def go_away_after(connection: Http2Connection, stream: Stream) -> bool:
    connection.h2.close_connection(last_stream_id=stream.id)
    return False


def close(connection: Http2Connection, stream: Stream) -> bool:
    return False


def reset(connection: Http2Connection, stream: Stream) -> None:
    tcp.reset(connection.socket)


def say_nothing(connection: Http2Connection, stream: Stream) -> None:
    return None


def half_stream(connection: Http2Connection, stream: Stream) -> bool:
    connection.h2.send_headers(stream.id, [(":status", "200"), ("content-length", "9")])
    return False


@pytest.mark.promise("push-answers-8")
@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (refuse, NOT_SENT),
        (go_away_before, NOT_SENT),
        (go_away_after, UNKNOWN),
        (cancel, UNKNOWN),
        (close, UNKNOWN),
        (reset, UNKNOWN),
        (say_nothing, UNKNOWN),
        (half_stream, UNKNOWN),
    ],
)
@pytest.mark.parametrize("reused", [False, True])
@pytest.mark.parametrize("body", [b"x", b""])
def test_http2_request_is_sent_once(
    transport: Transport, answer: http2.Answer, kind: FailureKind, reused: bool, body: bytes
) -> None:
    def then(connection: Http2Connection, stream: Stream) -> bool | None:
        first = stream.headers[":path"] == "/first"
        return http2.ok(connection, stream) if first else answer(connection, stream)

    with Http2Server(then) as server:
        if reused:
            first = Request(f"{server.url}first", b"x", http2=True, ca_pem=ca_pem())
            assert kind_of(transport, first) == 200
        patience = 1.0 if reused else tcp.TIME_OUT
        timeout = patience if answer is say_nothing else 5.0
        request = Request(f"{server.url}it", body, http2=True, ca_pem=ca_pem(), timeout=timeout)
        assert kind_of(transport, request) is kind
        time.sleep(0.05)
    assert [s.headers[":path"] for s in server.seen].count("/it") == 1


@pytest.mark.promise("push-answers-6")
def test_streams_above_a_goaway_are_not_sent_and_lower_ones_unknown(
    transport: Transport,
) -> None:
    def answer(connection: Http2Connection, stream: Stream) -> bool | None:
        if len(server.seen) < 6:
            return None
        connection.h2.close_connection(last_stream_id=5)
        return False

    with Http2Server(answer) as server:
        request = Request(server.url, b"x", http2=True, ca_pem=ca_pem())
        results = transport.perform([request] * 6)
        assert len(server.seen) == 6
    kinds = sorted(result.kind for result in results if isinstance(result, Failure))
    assert kinds == [NOT_SENT] * 3 + [UNKNOWN] * 3
