"""What every provider must make of the answers that any server may give.

ANSWERS has a row for each provider of REGISTRY: one that is registered without is a failure.
"""

import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import NamedTuple

import pytest

from messaging.providers import REGISTRY
from rme.core.outcomes import Accepted, Misconfigured, Outcome, Rejected, Retryable, Unknown
from rme.core.provider import Provider
from rme.transport import Transport
from rme.transport.smpp.pdu import CommandId, Pdu
from tests.fakes import tcp
from tests.fakes.http1 import Http1Server
from tests.fakes.http2 import Http2Connection, Http2Server, Stream
from tests.fakes.smpp import SmppServer
from tests.fakes.smtp import SmtpServer
from tests.fakes.tls import ca_pem, server_context
from tests.messaging.providers.test_contract import HARNESSES, WITHOUT_NETWORK, dispatches, make


class Answer(NamedTuple):
    """An answer over HTTP, and what comes nearest of a mail server and of an SMSC (its status)."""

    status: int
    body: bytes
    mail: str
    smsc: int = 0
    headers: tuple[tuple[str, str], ...] = ()


ELSEWHERE = (("location", "/elsewhere"),)
REPLIES: dict[str, Answer] = {
    "too many": Answer(429, b"{}", "451 4.7.1 slow down", 0x58),
    "a fault of its own": Answer(500, b"oops", "500 5.5.1 oops", 0x08),
    "cannot for now": Answer(503, b"", "421 4.3.2 shutting down", 0x14),
    "a gateway's page": Answer(502, b"<html>Bad Gateway</html>", "451 4.3.0 no backend", 0x64),
    "nothing": Answer(200, b"", "250 "),
    "a page of somebody else": Answer(200, b"<html>Log in</html>", "250 -"),
    "redirect": Answer(307, b"", "354 go on", 0x80, ELSEWHERE),
    "of no known class": Answer(299, b"{}", "299 what", 0xFF),
}
L, U, T, C, R = Retryable, Unknown, Accepted, Misconfigured, Rejected
ANSWERS: dict[str, tuple[type[Outcome], ...]] = {
    # in the order of REPLIES
    "smtp": (L, R, L, L, T, T, U, T),
    "anymail": (L, U, L, U, U, U, U, U),  # as Postmark
    "ses": (L, U, L, U, U, U, U, U),
    "twilio": (L, U, L, U, U, U, U, U),
    "vonage": (L, U, L, U, U, U, U, U),
    "kannel": (L, U, L, U, U, U, U, U),
    "smpp": (L, L, L, L, T, T, L, U),
    "http_sms": (L, U, L, U, T, T, U, U),
    "apns": (L, L, L, U, T, T, U, U),
    "fcm": (L, L, L, U, T, T, U, U),
    "webpush": (L, L, L, L, U, U, L, U),
    "salesforce": (L, U, L, U, U, U, U, U),
}
# Apple, Google and web push services say that what met a 500 of theirs was not taken.

RETRY_AFTER: dict[str, float | None] = {
    "smtp": None,
    "anymail": None,
    "ses": None,
    "twilio": None,
    "vonage": None,
    "kannel": None,
    "smpp": None,
    "http_sms": None,
    "apns": 60.0,
    "fcm": 60.0,
    "webpush": 10.0,
    "salesforce": 10.0,
}
"""For how many seconds each waits by itself after a 429 that says nothing readable."""

WISHES: dict[str, tuple[tuple[str, ...], float | None]] = {
    "none": ((), None),
    "seconds": (("120",), 120.0),
    "no time at all": (("0",), 0.0),
    "spaces around": (("  7\t",), 7.0),
    "two": (("7", "120"), 120.0),
    "huge": (("9" * 40,), 1e40),
    "endless": (("1" * 5000,), 1.1111111111111112e63),
    "negative": (("-5",), None),
    "fraction": (("1.5",), None),
    "power": (("1e3",), None),
    "infinite": (("inf",), None),
    "not a number": (("nan",), None),
    "other digits": (("\u0661\u0662",), None),
    "words": (("later, please",), None),
    "empty": (("",), None),
    "past date": (("Thu, 01 Jan 1970 00:00:00 GMT",), None),
    "no such date": (("Thu, 99 Jan 2999 00:00:00 GMT",), None),
    "date beyond the calendar": (("Thu, 01 Jan 99999 00:00:00 GMT",), None),
}


@contextmanager
def answering(protocol: str, answer: Answer) -> Iterator[tcp.TcpServer]:
    """Answer every request alike; no other path may be requested."""
    with _server(protocol, answer) as server:
        yield server
    if isinstance(server, Http1Server):
        assert not [seen.path for seen in server.seen if seen.path.endswith("elsewhere")]
    if isinstance(server, Http2Server):
        assert not [s for s in server.seen if s.headers[":path"].endswith("elsewhere")]


def _server(protocol: str, answer: Answer) -> AbstractContextManager[tcp.TcpServer]:
    if protocol == "smtp":
        return SmtpServer({"END": answer.mail}, tls=server_context())
    if protocol == "smpp":

        def say(connection: socket.socket, request: Pdu) -> None:
            connection.sendall(request.answer(answer.smsc, answer.body + b"\0").encode())

        return SmppServer({CommandId.SUBMIT_SM: say}, server_context())
    if protocol == "http2":

        def respond(connection: Http2Connection, stream: Stream) -> None:
            lines = [(":status", str(answer.status)), *answer.headers]
            connection.h2.send_headers(stream.id, lines, end_stream=not answer.body)
            if answer.body:
                connection.h2.send_data(stream.id, answer.body, end_stream=True)

        return Http2Server(respond)

    def write(connection: socket.socket, seen: object) -> None:
        head = f"HTTP/1.1 {answer.status} Said\r\nContent-Length: {len(answer.body)}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in answer.headers)
        connection.sendall(head.encode() + b"\r\n" + answer.body)

    return Http1Server(write, tls=server_context())


def ask(transport: Transport, kind: str, answer: Answer) -> list[Outcome]:
    """Send a window of two by an account whose provider answers so."""
    harness = HARNESSES[kind]
    with answering(harness.protocol, answer) as server:
        provider = make(kind, harness.settings(server.port, ca_pem(), 5.0))
        return provider.send(dispatches(provider, server.port), transport)


def test_every_provider_has_its_row() -> None:
    assert set(ANSWERS) == set(RETRY_AFTER) == set(REGISTRY) - WITHOUT_NETWORK
    assert {len(row) for row in ANSWERS.values()} == {len(REPLIES)}


@pytest.mark.promise("routes-4")
@pytest.mark.parametrize("name", REPLIES)
@pytest.mark.parametrize("kind", sorted(HARNESSES))
def test_answer_has_its_outcome(transport: Transport, kind: str, name: str) -> None:
    expected = ANSWERS[kind][list(REPLIES).index(name)]
    assert [type(outcome) for outcome in ask(transport, kind, REPLIES[name])] == [expected] * 2


OVER_HTTP = sorted(kind for kind, harness in HARNESSES.items() if "http" in harness.protocol)


@pytest.mark.promise("routes-4")
@pytest.mark.parametrize("wish", WISHES)
@pytest.mark.parametrize("kind", OVER_HTTP)
def test_retry_after_is_read_and_malformed_one_ignored(
    transport: Transport, kind: str, wish: str
) -> None:
    values, expected = WISHES[wish]
    headers = tuple(("retry-after", value) for value in values)
    outcomes = ask(transport, kind, Answer(429, b"{}", "", headers=headers))
    seconds = (
        RETRY_AFTER[kind] if expected is None else max(expected, 0.001 * bool(RETRY_AFTER[kind]))
    )
    assert [type(outcome) for outcome in outcomes] == [Retryable, Retryable]
    for outcome in outcomes:
        assert isinstance(outcome, Retryable)
        assert outcome.retry_after == (seconds if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize("kind", OVER_HTTP)
def test_a_retry_after_may_be_a_date(transport: Transport, kind: str) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=600), usegmt=True)
    outcomes = ask(transport, kind, Answer(429, b"{}", "", headers=(("retry-after", date),)))
    assert [type(outcome) for outcome in outcomes] == [Retryable, Retryable]
    for outcome in outcomes:
        assert isinstance(outcome, Retryable)
        assert outcome.retry_after is not None
        assert 590 < outcome.retry_after <= 600


@contextmanager
def _full() -> Iterator[int]:
    """Yield a port whose backlog is full: the kernel drops further connections."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]
        for each in waiting:
            each.close()


@pytest.mark.parametrize("kind", sorted(HARNESSES))
def test_failed_connection_is_retryable(transport: Transport, kind: str) -> None:
    with _full() as port:
        provider: Provider = make(kind, HARNESSES[kind].settings(port, ca_pem(), 0.4))
        outcomes = provider.send(dispatches(provider, port), transport)
    assert [type(outcome) for outcome in outcomes] == [Retryable] * 2
