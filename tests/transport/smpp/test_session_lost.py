"""A session that is lost, refused or silent: results of its requests, and the next bind."""

import socket
import threading
from collections.abc import Iterator

import pytest

from rme.transport import Failure, FailureKind, smpp
from rme.transport.smpp.pdu import Address, CommandId, Pdu, ShortMessage
from tests.fakes.smpp import SmppServer, accept, refuse
from tests.fakes.smsc import wait_for
from tests.fakes.tcp import TIME_OUT, free_port, reset
from tests.transport.smpp.session_scene import BODY, POLICY, client, never, statuses, submit

SUBMIT = CommandId.SUBMIT_SM


@pytest.fixture(autouse=True)
def _no_sessions() -> Iterator[None]:
    yield
    smpp.close_all(2)


@pytest.mark.promise("webhooks-17")
def test_written_requests_are_unknown_after_a_loss_and_the_next_binds_again() -> None:
    with SmppServer({SUBMIT: lambda c, r: False}) as server:
        assert statuses(submit(server.port, 3, window=2)) == ["UNKNOWN", "UNKNOWN", "NOT_SENT"]
        server.steps = {}
        assert statuses(submit(server.port, window=2)) == [0]
        assert server.connections == 2


def test_answers_before_a_loss_count() -> None:
    def once(connection: socket.socket, request: Pdu) -> bool:
        accept(connection, request)
        return False

    with SmppServer({SUBMIT: once}) as server:
        assert statuses(submit(server.port, 2)) == [0, "UNKNOWN"]


def test_reset_is_a_loss() -> None:
    with SmppServer({SUBMIT: lambda c, r: reset(c)}) as server:
        assert statuses(submit(server.port)) == ["UNKNOWN"]


def test_server_that_reads_nothing_has_received_nothing() -> None:
    """A request whose last byte was never written, for want of TCP window, was not sent."""
    body = ShortMessage(Address("1"), Address("2"), b"x" * 60_000, payload=True).encode()
    stop = threading.Event()

    def deaf(connection: socket.socket, request: Pdu) -> None:
        accept(connection, request)
        stop.wait(30)

    with SmppServer(otherwise=deaf) as server:
        answers = client(server.port, timeout=TIME_OUT, window=400).submit([body] * 400, POLICY)
        stop.set()
    kinds = statuses(answers)
    assert kinds == sorted(kinds, reverse=True)  # first the unknown ones, then those not sent
    assert set(kinds) == {"UNKNOWN", "NOT_SENT"}


@pytest.mark.parametrize("junk", [b"\0" * 16, b"\xff" * 16, b"HTTP/1.1 400 Bad Request\r\n"])
def test_invalid_answer_ends_the_session(junk: bytes) -> None:
    with SmppServer({SUBMIT: lambda c, r: c.sendall(junk)}) as server:
        assert statuses(submit(server.port)) == ["UNKNOWN"]
        assert statuses(submit(server.port)) == ["UNKNOWN"]
        assert server.connections == 2


@pytest.mark.parametrize("status", [0x0D, 0x0E, 0x58])
def test_refused_bind_has_its_status_and_a_backoff(status: int) -> None:
    with SmppServer({CommandId.BIND_TRANSMITTER: refuse(status)}) as server:
        expected = [Failure(FailureKind.LOGIN, "the bind was refused", status)]
        client(server.port)._failures = 5  # its backoff outlasts a pause of this machine
        assert (submit(server.port), submit(server.port)) == (expected, expected)
        assert server.connections == 1


def test_backoff_grows_with_each_failure() -> None:
    port = free_port()
    assert statuses(submit(port)) == ["NOT_SENT"]
    with SmppServer() as server:
        made = client(server.port)
        for _ in range(3):  # the backoff outlasts a pause of this machine
            made._record_failure(Failure(FailureKind.NOT_SENT, "no connection"))
        assert statuses(made.submit([BODY], POLICY)) == ["NOT_SENT"]
        wait_for(lambda: statuses(made.submit([BODY], POLICY)) == [0])


def test_enquire_link_detects_a_dead_connection() -> None:
    with SmppServer() as server:
        submit(server.port, enquire=0.1, timeout=TIME_OUT)
        wait_for(lambda: len(server.of(CommandId.ENQUIRE_LINK)) >= 3)
        assert server.connections == 1
        server.otherwise = never
        wait_for(lambda: len(server._open) == 0)
        server.otherwise = accept
        assert statuses(submit(server.port, enquire=0.1, timeout=TIME_OUT)) == [0]
        assert server.connections == 2


def test_listening_client_binds_again() -> None:
    with SmppServer() as server:

        def listen() -> bool:
            client(server.port).listen(lambda bodies: True, POLICY)
            return server.connections == 2

        listen()
        wait_for(lambda: len(server.seen) == 1)
        server.last.shutdown(socket.SHUT_RDWR)
        wait_for(listen)


def test_client_unbinds_when_it_stops_listening() -> None:
    with SmppServer() as server:
        client(server.port).listen(lambda bodies: True, POLICY, TIME_OUT)
        wait_for(lambda: len(server.seen) == 1)

        def has_left() -> bool:
            client(1)  # as the client of any other account is used
            return bool(server.of(CommandId.UNBIND))

        assert not has_left()
        wait_for(has_left)
