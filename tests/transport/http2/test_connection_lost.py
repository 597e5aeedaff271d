"""HTTP/2 servers that are invalid, silent or close: certainly not sent, or unknown."""

import socket
import threading
import time

import pytest

from rme.transport import AddressPolicy, Failure, FailureKind, Reply, Request, Transport
from rme.transport.in_flight import RequestsInFlight
from tests.fakes import http2, tcp
from tests.fakes.http1 import Http1Server
from tests.fakes.http2 import Http2Connection, Http2Server, Stream, raw
from tests.fakes.tls import ca_pem, server_context
from tests.stopwatch import Stopwatch

NOT_SENT, UNKNOWN = FailureKind.NOT_SENT, FailureKind.UNKNOWN
DATA, HEADERS, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    0, 1, 3, 4, 5, 6, 7, 8, 9,
)  # fmt: skip
END_STREAM, END_HEADERS, PADDED = 1, 4, 8
LAST = END_HEADERS | END_STREAM
OK = b"\x88"
"""A block of fields: the status 200."""
GREATEST = b"\x7f\xff\xff\xff"


def ask(server: tcp.TcpServer, body: bytes = b"x", **given: object) -> Request:
    request = {"http2": True, "ca_pem": ca_pem(), "timeout": 5.0, **given}
    return Request(f"https://localhost:{server.port}/", body, **request)  # type: ignore[arg-type]


def statuses(results: list[Reply | Failure]) -> list[int | FailureKind]:
    return [one.status if isinstance(one, Reply) else one.kind for one in results]


# What is wrong

ALWAYS_WRONG = {
    "garbage": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "too long": raw(SETTINGS, 0, 0, bytes(16_386)),
    "settings cut": raw(SETTINGS, 0, 0, bytes(5)),
    "window too wide": raw(SETTINGS, 0, 0, b"\0\4\x80\0\0\0"),
    "frames too short": raw(SETTINGS, 0, 0, b"\0\5\0\0\x3f\xff"),
    "frames too long": raw(SETTINGS, 0, 0, b"\0\5\1\0\0\0"),
    "promise": raw(PUSH_PROMISE, END_HEADERS, 1, b"\0\0\0\2" + OK),
    "continuation of nothing": raw(CONTINUATION, END_HEADERS, 1, OK),
    "fields of the connection": raw(HEADERS, LAST, 0, OK),
    "data of the connection": raw(DATA, 0, 0, b"x"),
    "reset of the connection": raw(RST_STREAM, 0, 0, bytes(4)),
    "window by nothing": raw(WINDOW_UPDATE, 0, 0, bytes(4)),
    "window too far": raw(WINDOW_UPDATE, 0, 0, GREATEST),
    "window cut": raw(WINDOW_UPDATE, 0, 0, bytes(3)),
    "goodbye cut": raw(GOAWAY, 0, 0, bytes(3)),
}
WRONG_FIRST = {
    "ping": raw(PING, 0, 0, bytes(8)),
    "goodbye": raw(GOAWAY, 0, 0, bytes(8)),
    "answer": raw(HEADERS, LAST, 1, OK),
    "settings of ours": raw(SETTINGS, 1, 0) + raw(PING, 0, 0, bytes(8)),
}
WRONG_ANSWERS = {
    "data before fields": raw(DATA, END_STREAM, 1, b"x"),
    "no status": raw(HEADERS, LAST, 1),
    "status that is none": raw(HEADERS, LAST, 1, b"\x08\x03abc"),
    "no such entry": raw(HEADERS, LAST, 1, b"\xbe"),
    "interrupted": raw(HEADERS, 0, 1, OK) + raw(PING, 0, 0, bytes(8)),
    "continued elsewhere": raw(HEADERS, 0, 1, OK) + raw(CONTINUATION, END_HEADERS, 3),
    "endless": raw(HEADERS, 0, 1, OK) + raw(CONTINUATION, 0, 1, bytes(16_384)) * 5,
    "padding": raw(HEADERS, END_HEADERS, 1, OK) + raw(DATA, PADDED, 1, b"\5xx"),
    "no padding": raw(HEADERS, LAST | PADDED, 1, b""),
    "reset cut": raw(RST_STREAM, 0, 1, bytes(3)),
    "window of one by nothing": raw(WINDOW_UPDATE, 0, 1, bytes(4)),
    "window of one too far": raw(WINDOW_UPDATE, 0, 1, GREATEST),
}


@pytest.mark.promise("push-answers-9")
@pytest.mark.parametrize("wrong", [*ALWAYS_WRONG, *WRONG_FIRST])
def test_error_before_a_request_is_not_sent_and_the_next_works(
    transport: Transport, wrong: str
) -> None:
    def talk(sock: socket.socket, number: int) -> None:
        sock.sendall((ALWAYS_WRONG | WRONG_FIRST)[wrong])
        tcp.stall(sock)

    with Http2Server(first=talk) as server:
        assert statuses(transport.perform([ask(server)])) == [NOT_SENT]
        assert server.wait_until_closed()
        assert statuses(transport.perform([ask(server)])) == [200]
        assert server.connections == 2


@pytest.mark.promise("push-answers-9")
@pytest.mark.parametrize("wrong", [*ALWAYS_WRONG, *WRONG_ANSWERS])
def test_error_after_a_request_is_unknown_and_the_next_works(
    transport: Transport, wrong: str
) -> None:
    def answer(connection: Http2Connection, stream: Stream) -> None:
        if connection.number > 0:
            http2.ok(connection, stream)
        elif len(server.seen) == 2:
            connection.socket.sendall((ALWAYS_WRONG | WRONG_ANSWERS)[wrong])

    with Http2Server(answer) as server:
        assert statuses(transport.perform([ask(server)] * 2)) == [UNKNOWN] * 2
        assert server.wait_until_closed()
        assert statuses(transport.perform([ask(server)])) == [200]
        assert (server.connections, len(server.seen)) == (2, 3)


def test_responses_before_an_error_count(transport: Transport) -> None:
    def answer(connection: Http2Connection, stream: Stream) -> None:
        if len(server.seen) == 2:
            connection.socket.sendall(raw(HEADERS, LAST, 1, OK) + b"\xff" * 50)

    with Http2Server(answer) as server:
        assert statuses(transport.perform([ask(server)] * 2)) == [200, UNKNOWN]


@pytest.mark.parametrize(
    "end",
    [raw(RST_STREAM, 0, 1, b"\0\0\0\7"), raw(GOAWAY, 0, 0, bytes(8))],
    ids=["refused", "goodbye"],
)
def test_refusal_after_the_beginning_of_a_response_is_unknown(
    transport: Transport, end: bytes
) -> None:
    def answer(connection: Http2Connection, stream: Stream) -> None:
        connection.socket.sendall(raw(HEADERS, END_HEADERS, 1, OK) + end)

    with Http2Server(answer) as server:
        (result,) = transport.perform([ask(server)])
    assert result == Failure(UNKNOWN, "the stream was reset", 200)


@pytest.mark.promise("push-answers-9")
@pytest.mark.parametrize(
    "flood",
    [
        raw(PING, 0, 0, bytes(8)),
        raw(SETTINGS, 0, 0),
        raw(DATA, 0, 9, b"x"),
        raw(DATA, 0, 1),
        raw(DATA, PADDED, 1, b"\0"),
        raw(HEADERS, LAST, 9, OK),
        raw(0xEE, 0, 0, bytes(99)),
    ],
    ids=["ping", "settings", "data", "nothing", "padding", "fields", "unknown"],
)
def test_endless_frames_do_not_delay_the_time_out(transport: Transport, flood: bytes) -> None:
    def answer(connection: Http2Connection, stream: Stream) -> None:
        connection.socket.sendall(raw(HEADERS, END_HEADERS, 1, OK))
        while connection.number == 0:  # until we are left
            connection.socket.sendall(flood * 1000)
        http2.ok(connection, stream)

    with Http2Server(answer) as server:
        with Stopwatch() as watch:
            assert statuses(transport.perform([ask(server, timeout=tcp.TIME_OUT)])) == [UNKNOWN]
        assert watch.seconds < tcp.TIME_OUT + 2.4
        transport.close()


# Who is silent, or has no room


@pytest.mark.promise("push-answers-9")
def test_server_without_settings_is_sent_nothing(transport: Transport) -> None:
    with Http2Server(first=lambda sock, _: tcp.stall(sock)) as server:
        began = time.monotonic()
        with Stopwatch() as watch:
            results = transport.perform([ask(server, connect_timeout=0.3)] * 3)
        assert results == [Failure(NOT_SENT, "time-out")] * 3
        assert time.monotonic() - began > 0.25
        assert watch.seconds < 2
        assert server.wait_until_closed()
        assert statuses(transport.perform([ask(server)])) == [200]


def test_later_request_does_not_wait_for_a_dead_connection() -> None:
    in_flight: RequestsInFlight[str] = RequestsInFlight(Transport(AddressPolicy(["localhost"])))
    with Http2Server(first=lambda sock, _: tcp.stall(sock)) as server:
        in_flight.add("early", ask(server, connect_timeout=0.8))
        ended = in_flight.step(0.2)
        in_flight.add("late", ask(server, connect_timeout=5.0))
        while in_flight:
            ended += in_flight.step(0.2)
        assert [key for key, _ in ended] == ["early", "late"]
        assert statuses([result for _, result in ended]) == [NOT_SENT, 200]
    in_flight.close()


def test_connection_that_received_nothing_is_not_reused(transport: Transport) -> None:
    def talk(sock: socket.socket, number: int) -> None:
        sock.sendall(raw(SETTINGS, 0, 0))
        tcp.stall(sock)

    with Http2Server(first=talk) as server:
        assert statuses(transport.perform([ask(server, timeout=tcp.TIME_OUT)])) == [UNKNOWN]
        assert statuses(transport.perform([ask(server, timeout=tcp.TIME_OUT)] * 3)) == [UNKNOWN] * 3
        assert server.wait_until_closed()
        assert statuses(transport.perform([ask(server)])) == [200]


@pytest.mark.promise("push-sending-27")
def test_streams_keep_to_the_servers_limit(transport: Transport) -> None:
    open_streams: list[Stream] = []

    def answer(connection: Http2Connection, stream: Stream) -> None:
        open_streams.append(stream)
        if len(open_streams) == 3:  # one more would end the connection
            for one in open_streams:
                http2.ok(connection, one)
            open_streams.clear()

    with Http2Server(answer, max_concurrent_streams=3) as server:
        assert statuses(transport.perform([ask(server)] * 30)) == [200] * 30
        assert server.connections == 1


def test_request_without_a_free_stream_in_time_is_not_sent(transport: Transport) -> None:
    with Http2Server(max_concurrent_streams=0) as server:
        (result,) = transport.perform([ask(server, timeout=tcp.TIME_OUT)])
        assert result == Failure(NOT_SENT, "no connection became free in time")
        assert server.connections == 1


# Who leaves


@pytest.mark.promise("push-answers-6")
def test_goaway_finishes_open_requests_and_moves_later_ones(transport: Transport) -> None:
    def answer(connection: Http2Connection, stream: Stream) -> None:
        if connection.number > 0:
            http2.ok(connection, stream)
        elif len(server.seen) == 3:
            connection.socket.sendall(raw(GOAWAY, 0, 0, GREATEST + bytes(4)))
            for seen in server.seen:
                http2.ok(connection, seen)
            connection.socket.sendall(raw(GOAWAY, 0, 0, b"\0\0\0\5" + bytes(4)))

    with Http2Server(answer) as server:
        assert statuses(transport.perform([ask(server)] * 3)) == [200] * 3
        assert server.wait_until_closed()
        assert statuses(transport.perform([ask(server)])) == [200]
        assert server.connections == 2


@pytest.mark.promise("push-answers-7")
def test_goaway_on_an_idle_connection_loses_no_request(transport: Transport) -> None:
    answered = threading.Event()

    def answer(connection: Http2Connection, stream: Stream) -> None:
        http2.ok(connection, stream)
        connection.flush()
        time.sleep(0.05)  # so that the client reads it later
        connection.socket.sendall(raw(GOAWAY, 0, 0, b"\0\0\0\1" + bytes(4)))
        answered.set()

    with Http2Server(answer) as server:
        for _ in range(3):
            assert statuses(transport.perform([ask(server)])) == [200]
            assert answered.wait(30)
            answered.clear()
        assert [seen.connection for seen in server.seen] == [0, 1, 2]


@pytest.mark.parametrize("more", [b"", raw(GOAWAY, 0, 0, bytes(8))], ids=["end", "goodbye"])
def test_server_closing_at_once_is_tried_once_per_request(
    transport: Transport, more: bytes
) -> None:
    def talk(sock: socket.socket, number: int) -> None:
        sock.sendall(raw(SETTINGS, 0, 0, b"\0\3\0\0\0\0") + more)
        if more:
            tcp.stall(sock)

    with tcp.TcpServer(talk, server_context("h2")) as server:
        assert statuses(transport.perform([ask(server)] * 3)) == [NOT_SENT] * 3
        assert server.connections == 3


def test_no_connection_is_opened_after_the_last_request_ended(transport: Transport) -> None:
    may_end = threading.Event()

    def talk(sock: socket.socket, number: int) -> None:
        sock.sendall(raw(SETTINGS, 0, 0, b"\0\3\0\0\0\0"))
        assert may_end.wait(30)

    in_flight: RequestsInFlight[str] = RequestsInFlight(transport)
    with tcp.TcpServer(talk, server_context("h2")) as server:
        in_flight.add("only", ask(server))
        (host,) = transport.connections._http2._hosts.values()
        while not (host.connection and host.connection.ready):
            assert in_flight.step(5.0) == []
        may_end.set()
        assert server.wait_until_closed()
        ((_, result),) = in_flight.step(5.0)  # before it sends, it finds that its host has left
        assert statuses([result]) == [NOT_SENT]
        assert (host.connection, server.connections) == (None, 1)


def test_host_without_http2_is_remembered(transport: Transport) -> None:
    with Http1Server(tls=server_context("http/1.1")) as server:
        for _ in range(3):
            assert statuses(transport.perform([ask(server)])) == [200]
        assert server.connections == 2
