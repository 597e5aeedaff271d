"""Valid behaviour of HTTP/2 servers: each request has its response, over one connection."""

import socket
from collections.abc import Iterator

import pytest
from h2.errors import ErrorCodes

from rme.transport import Failure, FailureKind, Reply, Request, Transport
from tests.fakes import http2, tcp
from tests.fakes.http2 import Frame, Http2Connection, Http2Server, Stream, raw
from tests.fakes.tls import ca_pem

NOT_SENT, UNKNOWN = FailureKind.NOT_SENT, FailureKind.UNKNOWN
DATA, HEADERS, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 4, 6, 8
END_STREAM = ACK = 1
END_HEADERS, PADDED, PRIORITY = 4, 8, 0x20
LAST = END_HEADERS | END_STREAM
OK = b"\x88"
"""A block of fields: the status 200."""


def ask(server: Http2Server, body: bytes = b"x", path: str = "", **given: object) -> Request:
    request = {"http2": True, "ca_pem": ca_pem(), "timeout": 5.0, **given}
    return Request(f"{server.url}{path}", body, **request)  # type: ignore[arg-type]


def statuses(results: list[Reply | Failure]) -> list[int | FailureKind]:
    return [one.status if isinstance(one, Reply) else one.kind for one in results]


def bodies(results: list[Reply | Failure]) -> list[bytes]:
    return [one.body for one in results if isinstance(one, Reply)]


# Requests


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "PUT", "POST", "PATCH"])
def test_request_without_a_body_has_its_method(transport: Transport, method: str) -> None:
    with Http2Server() as server:
        assert statuses(transport.perform([ask(server, b"", method=method)])) == [200]
        assert [(s.headers[":method"], bytes(s.body)) for s in server.seen] == [(method, b"")]


def test_request_arrives_unchanged(transport: Transport) -> None:
    with Http2Server() as server:
        headers = (("X-One", "1"), ("AUTHORIZATION", "Bearer t"), ("x-empty", ""))
        transport.perform(
            [ask(server, b"\0body", "a/../b%20?c=d#e", method="PUT", headers=headers)]
        )
    assert server.seen[0].body == b"\0body"
    assert list(server.seen[0].headers.items()) == [
        (":method", "PUT"),
        (":scheme", "https"),
        (":authority", f"localhost:{server.port}"),
        (":path", "/a/../b%20?c=d"),
        ("x-one", "1"),
        ("authorization", "Bearer t"),
        ("x-empty", ""),
        ("content-length", "5"),
    ]


@pytest.mark.parametrize(("end", "path"), [("", "/"), ("?a=/b", "/?a=/b"), ("/?a", "/?a")])
def test_url_without_a_path_asks_for_the_root(transport: Transport, end: str, path: str) -> None:
    with Http2Server() as server:
        request = Request(server.url.rstrip("/") + end, b"x", http2=True, ca_pem=ca_pem())
        assert statuses(transport.perform([request])) == [200]
    assert server.seen[0].headers[":path"] == path


def test_headers_longer_than_a_frame_are_continued(transport: Transport) -> None:
    with Http2Server() as server:
        headers = tuple((f"x-{place}", "y" * 5000) for place in range(10))
        assert statuses(transport.perform([ask(server, headers=headers), ask(server)])) == [200] * 2
        assert server.seen[0].headers["x-9"] == "y" * 5000
        assert server.connections == 1


def test_bodies_beyond_every_window_arrive_completely(transport: Transport) -> None:
    sent = [bytes([place]) * 1_000_000 for place in range(3)]
    with Http2Server(lambda on, stream: on.respond(stream, 200)) as server:
        results = transport.perform([ask(server, body) for body in sent])
        assert statuses(results) == [200] * 3
        assert sorted(bytes(stream.body) for stream in server.seen) == sent


def test_body_is_one_frame_if_the_server_accepts_longer_ones(transport: Transport) -> None:
    with Http2Server(max_frame_size=2**24 - 1) as server:
        server.answer = lambda connection, stream: connection.respond(stream, 200)
        assert statuses(transport.perform([ask(server, b"y" * 60_000)])) == [200]
        assert server.seen[0].body == b"y" * 60_000


def data_until(frames: Iterator[Frame], size: int) -> bytes:
    """Read bodies up to a size; skip other frames."""
    body = b""
    while len(body) < size:
        kind, _, _, payload = next(frames)
        body += payload if kind == DATA else b""
    return body


def number(value: int) -> bytes:
    return value.to_bytes(4, "big")


def window_of(size: int) -> bytes:
    return raw(SETTINGS, 0, 0, b"\0\4" + number(size))


@pytest.mark.promise("push-sending-27")
def test_body_respects_zero_growing_and_shrinking_windows(transport: Transport) -> None:
    arrived: list[int] = []

    def talk(sock: socket.socket, _: int) -> None:
        frames = http2.frames_from(sock)

        def take(grant: bytes, size: int) -> None:
            """Grant a window; the answer to PING follows all that the client could write."""
            sock.sendall(grant + raw(PING, 0, 0, bytes(8)))
            got = 0
            for kind, flags, _, payload in frames:
                got += len(payload) if kind == DATA else 0
                if kind == PING and flags & ACK:
                    break
            arrived.append(got)

        sock.sendall(window_of(0))
        while next(frames)[0] != HEADERS:
            pass
        take(b"", 0)
        take(window_of(10), 10)
        take(raw(WINDOW_UPDATE, 0, 1, number(20_000)), 20_000)
        take(window_of(0) + raw(WINDOW_UPDATE, 0, 1, number(5)), 0)  # ten too many: now five
        take(raw(WINDOW_UPDATE, 0, 1, number(6)), 1)
        take(raw(WINDOW_UPDATE, 0, 1, number(100_000)), 65_535 - 20_011)
        take(raw(WINDOW_UPDATE, 0, 0, number(100_000)), 0)
        sock.sendall(raw(HEADERS, LAST, 1, OK))
        tcp.stall(sock)

    with Http2Server(first=talk) as server:
        assert statuses(transport.perform([ask(server, b"y" * 100_000)])) == [200]
    assert arrived == [0, 10, 20_000, 0, 1, 65_535 - 20_011, 100_000 - 65_535]


# Answers


def test_long_responses_arrive_completely_and_concurrently(transport: Transport) -> None:
    def answer(connection: Http2Connection, stream: Stream) -> None:
        """Answer all once all have arrived, one frame each in turn."""
        if len(server.seen) == 5:
            send_in_turn(connection, [seen.id for seen in server.seen])

    with Http2Server(answer) as server:
        results = transport.perform([ask(server)] * 5)
        assert bodies(results) == [b"z" * 200_000] * 5
        assert server.connections == 1


def send_in_turn(connection: Http2Connection, streams: list[int]) -> None:
    left = dict.fromkeys(streams, 200_000)
    for id_ in streams:
        connection.h2.send_headers(id_, [(":status", "200"), ("content-length", "200000")])
    while left:
        for id_ in list(left):
            size = min(left[id_], 16_384, connection.h2.local_flow_control_window(id_))
            connection.h2.send_data(id_, b"z" * size, end_stream=size == left[id_])
            left[id_] -= size
            if not left[id_]:
                del left[id_]
        connection.flush()
        if not all(connection.h2.local_flow_control_window(id_) for id_ in left):
            connection.h2.receive_data(connection.socket.recv(65536))


def test_too_long_response_affects_no_other(transport: Transport) -> None:
    def answer(connection: Http2Connection, stream: Stream) -> None:
        connection.respond(stream, 200, b"z" * (16_000 if stream.body == b"long" else 1000))

    with Http2Server(answer) as server:
        asked = [ask(server, body, max_response=1000) for body in (b"x", b"long", b"x")]
        results = transport.perform(asked)
        assert results[1] == Failure(UNKNOWN, "the answer is too long", 200)
        assert statuses(results) == [200, UNKNOWN, 200]
        for _ in range(10):  # what is dropped must be counted, too, or the window comes to an end
            assert statuses(transport.perform(asked)) == [200, UNKNOWN, 200]
        assert server.connections == 1


def test_answer_has_the_headers_of_the_last_one_and_no_trailers(transport: Transport) -> None:
    def answer(connection: Http2Connection, stream: Stream) -> None:
        h2 = connection.h2
        h2.send_headers(stream.id, [(":status", "103"), ("x-early", "1")])
        h2.send_headers(stream.id, [(":status", "429"), ("Retry-After", "7")])
        h2.send_data(stream.id, b"no", pad_length=9)
        h2.send_data(stream.id, b"", pad_length=0)
        h2.send_headers(stream.id, [("x-late", "1")], end_stream=True)

    with Http2Server(answer) as server:
        (result,) = transport.perform([ask(server)])
    assert isinstance(result, Reply)
    assert (result.status, result.body, dict(result.headers)) == (429, b"no", {"retry-after": "7"})
    assert 0 < result.elapsed < 5


def test_headers_of_an_answer_may_be_continued(transport: Transport) -> None:
    def answer(connection: Http2Connection, stream: Stream) -> None:
        fields = [(f"x-{place}", "y" * 5000) for place in range(10)]
        connection.h2.send_headers(stream.id, [(":status", "200"), *fields], end_stream=True)

    with Http2Server(answer) as server:
        (result,) = transport.perform([ask(server)])
    assert isinstance(result, Reply)
    assert (len(result.headers), result.headers["x-9"]) == (10, "y" * 5000)


@pytest.mark.parametrize(
    "written",
    [
        lambda id_: raw(HEADERS, LAST | PRIORITY, id_, b"\0\0\0\0\1" + OK),
        lambda id_: raw(HEADERS, LAST | PRIORITY | PADDED, id_, b"\2\0\0\0\0\1" + OK + b"\0\0"),
        lambda id_: b"".join(
            [raw(HEADERS, END_STREAM, id_), raw(9, 0, id_), raw(9, END_HEADERS, id_, OK)]
        ),
        lambda id_: (
            raw(HEADERS, END_HEADERS, id_, OK) + raw(DATA, END_STREAM | PADDED, id_, b"\3\0\0\0")
        ),
        lambda id_: (
            raw(0xEE, 0xFF, id_, b"unknown")
            + raw(SETTINGS, 0, 0, b"\x12\x34\0\0\0\1")
            + raw(HEADERS, LAST, id_, OK)
        ),
        lambda id_: raw(HEADERS, LAST, id_, OK) + raw(3, 0, id_, bytes(4)),
        lambda id_: raw(HEADERS, LAST, id_, OK) + raw(WINDOW_UPDATE, 0, id_, number(9)),
    ],
    ids=["priority", "padded", "in parts", "padded data", "unknown", "reset after", "late window"],
)
def test_response_in_any_valid_encoding_is_read(transport: Transport, written: object) -> None:
    def answer(connection: Http2Connection, stream: Stream) -> None:
        connection.socket.sendall(written(stream.id))  # type: ignore[operator]

    with Http2Server(answer) as server:
        assert statuses(transport.perform([ask(server)] * 3)) == [200] * 3
        assert server.connections == 1


def early(connection: Http2Connection, stream: Stream) -> None:
    connection.respond(stream, 413, b"too much")
    connection.flush()


def early_and_reset(connection: Http2Connection, stream: Stream) -> None:
    early(connection, stream)
    connection.h2.reset_stream(stream.id, ErrorCodes.NO_ERROR)
    connection.flush()


@pytest.mark.parametrize("begun", [early, early_and_reset])
def test_response_before_the_end_of_the_body_counts(
    transport: Transport, begun: http2.Answer
) -> None:
    def talk(connection: Http2Connection, stream: Stream) -> None:
        if stream.headers[":path"] == "/long":
            begun(connection, stream)

    with Http2Server(begun=talk, initial_window_size=1000) as server:
        results = transport.perform([ask(server, b"y" * 100_000, "long"), ask(server)])
        assert (statuses(results), bodies(results)) == ([413, 200], [b"too much", b"x"])
        assert statuses(transport.perform([ask(server)])) == [200]
        assert server.connections == 1


def test_response_before_the_end_of_the_body_and_a_close_counts(transport: Transport) -> None:
    def talk(sock: socket.socket, _: int) -> None:
        frames = http2.frames_from(sock)
        sock.sendall(raw(SETTINGS, 0, 0, b"\0\4" + number(2**31 - 1)))
        sock.sendall(raw(WINDOW_UPDATE, 0, 0, number(2**30)))
        while next(frames)[0] != HEADERS:
            pass
        answer = raw(HEADERS, END_HEADERS, 1, b"\x08\x03413") + raw(DATA, END_STREAM, 1, b"much")
        sock.sendall(answer)
        data_until(frames, 100_000)

    with Http2Server(first=talk) as server:
        results = transport.perform([ask(server, b"y" * 20_000_000)])
    assert (statuses(results), bodies(results)) == ([413], [b"much"])
