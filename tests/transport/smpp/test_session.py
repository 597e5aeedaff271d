"""A reused session: binding, windows, answers, and requests of the SMSC."""

import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from rme.transport import AddressPolicy, Failure, FailureKind, smpp
from rme.transport.smpp import session
from rme.transport.smpp.pdu import RESPONSE, CommandId, Pdu
from tests.fakes.smpp import SmppServer, accept
from tests.fakes.smsc import wait_for
from tests.fakes.tcp import TIME_OUT
from tests.transport.smpp.session_scene import BODY, POLICY, client, never, statuses, submit

SUBMIT = CommandId.SUBMIT_SM


@pytest.fixture(autouse=True)
def _no_sessions() -> Iterator[None]:
    yield
    smpp.close_all(2)


def test_session_is_bound_once_and_reused() -> None:
    with SmppServer() as server:
        assert statuses([*submit(server.port, 3), *submit(server.port)]) == [0] * 4
        assert (server.connections, len(server.of(CommandId.BIND_TRANSMITTER))) == (1, 1)
        sequences = [each.sequence for each in server.seen]
        assert sequences == sorted(set(sequences))


def test_answers_are_matched_by_number_in_any_order() -> None:
    waiting: list[Pdu] = []

    def backwards(connection: socket.socket, request: Pdu) -> None:
        waiting.append(request)
        if len(waiting) == 10:
            for each in reversed(waiting):
                accept(connection, each)

    with SmppServer({SUBMIT: backwards}) as server:
        answers = submit(server.port, 10)
    assert [a.body for a in answers if isinstance(a, Pdu)] == [
        f"id{each.sequence}\0".encode() for each in waiting
    ]


def test_window_is_never_exceeded() -> None:
    under_way: list[Pdu] = []
    most = 0

    def slowly(connection: socket.socket, request: Pdu) -> None:
        nonlocal most
        under_way.append(request)
        most = max(most, len(under_way))

        def answer() -> None:
            together = under_way.copy()
            under_way.clear()
            for each in together:
                accept(connection, each)

        if len(under_way) == 4:
            threading.Timer(0.05, answer).start()  # a fifth would arrive before

    with SmppServer({SUBMIT: slowly}) as server:
        assert statuses(submit(server.port, 40, window=4)) == [0] * 40
    assert most == 4


def test_several_threads_share_a_session() -> None:
    found: list[object] = []
    with SmppServer() as server:
        port = server.port
        threads = [
            threading.Thread(target=lambda: found.extend(statuses(submit(port, 50))))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert (found, server.connections) == ([0] * 200, 1)


def test_no_answer_in_time_is_unknown_and_the_session_continues() -> None:
    with SmppServer({SUBMIT: never}) as server:
        late = [Failure(FailureKind.UNKNOWN, "time-out")]
        assert submit(server.port, timeout=TIME_OUT) == late
        server.steps = {}
        assert statuses(submit(server.port, timeout=TIME_OUT)) == [0]
        assert server.connections == 1


def test_request_without_room_in_the_window_is_not_sent() -> None:
    with SmppServer({SUBMIT: never}) as server:
        answers = submit(server.port, 3, window=1, timeout=TIME_OUT)
    assert statuses(answers) == ["UNKNOWN", "NOT_SENT", "NOT_SENT"]
    assert len(server.of(SUBMIT)) == 1


def test_late_answer_is_dropped() -> None:
    late: list[Pdu] = []
    with SmppServer({SUBMIT: lambda c, request: late.append(request)}) as server:
        assert statuses(submit(server.port, timeout=TIME_OUT)) == ["UNKNOWN"]
        server.steps = {}
        server.send_bytes(late[0].answer(0, b"late\0").encode())
        (answer,) = submit(server.port, timeout=TIME_OUT)
        assert isinstance(answer, Pdu)
        assert answer.body != b"late\0"


def test_generic_nack_is_an_answer() -> None:
    def nack(connection: socket.socket, request: Pdu) -> None:
        connection.sendall(Pdu(CommandId.GENERIC_NACK, request.sequence, 3).encode())

    with SmppServer({SUBMIT: nack}) as server:
        assert statuses(submit(server.port)) == [3]


def test_silent_bind_is_not_sent() -> None:
    with SmppServer(otherwise=never) as server:
        assert submit(server.port, timeout=0.2) == [Failure(FailureKind.NOT_SENT, "time-out")]


@pytest.mark.parametrize(
    ("policy", "tls", "reason"),
    [
        (AddressPolicy(), False, "a log-in would go in clear"),
        (AddressPolicy(), True, "the address is not public"),
        (AddressPolicy(["127.0.0.1:1"]), True, "the address is not public"),
    ],
)
def test_address_is_checked(policy: AddressPolicy, tls: bool, reason: str) -> None:
    with SmppServer() as server:
        answers = client(server.port, tls=tls).submit([BODY], policy)
        assert (answers, server.connections) == ([Failure(FailureKind.REFUSED_ADDRESS, reason)], 0)


def test_unbind_of_the_other_side_is_answered() -> None:
    with SmppServer() as server:
        submit(server.port)
        server.send(Pdu(CommandId.UNBIND, 77))
        wait_for(lambda: Pdu(CommandId.UNBIND | RESPONSE, 77) in server.seen)
        wait_for(lambda: not server._open)
        wait_for(lambda: statuses(submit(server.port)) == [0])
        assert server.connections == 2


def test_requests_of_the_other_side_are_answered() -> None:
    with SmppServer() as server:
        submit(server.port)
        server.send(Pdu(CommandId.ENQUIRE_LINK, 5))
        server.send(Pdu(0x103, 6))  # data_sm
        wait_for(lambda: len(server.seen) >= 4)
        assert server.seen[2:] == [
            Pdu(CommandId.ENQUIRE_LINK | RESPONSE, 5),
            Pdu(CommandId.GENERIC_NACK, 6, 3),
        ]


def test_client_binds_as_transceiver_only_to_listen() -> None:
    received: list[bytes] = []
    with SmppServer() as server:
        submit(server.port)
        client(server.port).listen(lambda bodies: not received.extend(bodies), POLICY)
        wait_for(lambda: len(server.of(CommandId.BIND_TRANSCEIVER)) == 1)
        assert len(server.of(CommandId.UNBIND)) == 1
        assert statuses(submit(server.port)) == [0]
        server.send(Pdu(CommandId.DELIVER_SM, 9, body=b"text"))
        answer = Pdu(CommandId.DELIVER_SM | RESPONSE, 9, 0, b"\0")
        wait_for(lambda: answer in server.seen)
    assert received == [b"text"]


def test_unstored_delivery_is_requested_again() -> None:
    with SmppServer() as server:
        client(server.port).listen(lambda bodies: False, POLICY)
        wait_for(lambda: server.connections == 1)
        wait_for(lambda: len(server.seen) == 1)
        server.send(Pdu(CommandId.DELIVER_SM, 9, body=b"text"))
        answer = Pdu(CommandId.DELIVER_SM | RESPONSE, 9, session.TRY_AGAIN, b"\0")
        wait_for(lambda: answer in server.seen)


def test_deliveries_arriving_together_are_handled_together() -> None:
    received: list[int] = []
    with SmppServer() as server:
        client(server.port).listen(lambda bodies: not received.append(len(bodies)), POLICY)
        wait_for(lambda: len(server.seen) == 1)
        wire = b"".join(Pdu(CommandId.DELIVER_SM, n, body=b"x").encode() for n in range(1, 501))
        server.send_bytes(wire)
        wait_for(lambda: len(server.of(CommandId.DELIVER_SM | RESPONSE)) == 500)
    assert sum(received) == 500
    assert len(received) < 50


def test_close_waits_for_requests_in_flight_and_unbinds() -> None:
    def slowly(connection: socket.socket, request: Pdu) -> None:
        time.sleep(0.2)
        accept(connection, request)

    found: list[object] = []
    with SmppServer({SUBMIT: slowly}) as server:
        port = server.port
        asking = threading.Thread(target=lambda: found.extend(statuses(submit(port))))
        asking.start()
        wait_for(lambda: len(server.of(SUBMIT)) == 1)
        smpp.close_all(20)
        asking.join(30)
        assert (found, [each.command for each in server.seen][-1]) == ([0], CommandId.UNBIND)


def test_forked_child_does_not_touch_the_session_of_its_parent() -> None:
    with SmppServer() as server:
        submit(server.port)
        child = os.fork()
        if not child:
            try:
                taken = statuses(submit(server.port)) == [0]
                smpp.close_all(2)
                os._exit(0 if taken else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert statuses(submit(server.port)) == [0]
        assert server.connections == 2


def test_password_is_in_no_repr() -> None:
    assert "secret" not in repr(smpp.Login("127.0.0.1", 1, "esme", "secret"))


def test_session_being_bound_when_all_are_closed_is_unbound() -> None:
    """A worker that is stopped at that moment must not leave a session behind."""

    def slowly(connection: socket.socket, request: Pdu) -> None:
        time.sleep(0.5)
        accept(connection, request)

    with SmppServer({CommandId.BIND_TRANSCEIVER: slowly}) as server:
        client(server.port).listen(lambda bodies: True, POLICY)
        wait_for(lambda: len(server.of(CommandId.BIND_TRANSCEIVER)) == 1)
        smpp.close_all(20)
        assert len(server.of(CommandId.UNBIND)) == 1


def test_closed_client_opens_no_session() -> None:
    with SmppServer() as server:
        own = client(server.port)
        smpp.close_all(1)
        (answer,) = own.submit([BODY], POLICY)
        assert answer == Failure(FailureKind.NOT_SENT, "the connection was closed")
        assert server.seen == []
