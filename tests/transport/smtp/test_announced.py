"""Mails whose commands leave with the message before them, and servers that change their mind."""

import gc
import socket
from collections import Counter
from collections.abc import Callable

import pytest

from rme.transport import NOT_STARTED, AddressPolicy, Reply, Request, Stage, Transport
from rme.transport.messages import Failure, Result
from tests.fakes import tcp
from tests.transport.mails import UNKNOWN, mail, summary

TAKEN = (Reply, 250, Stage.END)
BODIES = [f"mail {number}\r\n".encode() for number in range(8)]
ROUNDS = 50
"""Only a server that answers quickly gets mails announced: one of so many rounds is."""


class Server(tcp.TcpServer):
    """Takes mails; the first time that one was announced, it ends the message before by `act`."""

    def __init__(self, act: Callable[["Server", socket.socket], bool]) -> None:
        """`act` answers the message, and returns whether the connection goes on."""
        super().__init__(self._converse)
        self.act: Callable[[Server, socket.socket], bool] | None = act
        self.arrived: Counter[bytes] = Counter()
        self.refuses_next = False

    def _converse(self, connection: socket.socket, number: int) -> None:
        connection.sendall(b"220 mail.test\r\n")
        unread = b""
        while part := connection.recv(65536):
            unread += part
            while b"\r\n" in unread:
                line, _, unread = unread.partition(b"\r\n")
                if line != b"DATA" or self.refuses_next:
                    self._answer(connection, line)
                    continue
                connection.sendall(b"354 go on\r\n")
                while b"\r\n.\r\n" not in unread:
                    unread += connection.recv(65536)
                message, _, unread = unread.partition(b".\r\n")
                self.arrived[message] += 1
                act, is_announced = self.act, unread.startswith(b"MAIL")
                if act and is_announced:
                    self.act = None
                    if not act(self, connection):
                        return
                else:
                    connection.sendall(b"250 taken\r\n")

    def _answer(self, connection: socket.socket, line: bytes) -> None:
        if line.startswith(b"EHLO"):
            connection.sendall(b"250-mail.test\r\n250 PIPELINING\r\n")
        elif self.refuses_next and line.startswith(b"RCPT"):
            connection.sendall(b"550 5.1.1 no\r\n")
        elif self.refuses_next and line == b"DATA":
            self.refuses_next = False
            connection.sendall(b"503 5.5.1 no recipient\r\n")
        else:
            connection.sendall(b"250 ok\r\n")


def takes(server: Server, connection: socket.socket) -> bool:
    connection.sendall(b"250 taken\r\n")
    return True


def refuses(server: Server, connection: socket.socket) -> bool:
    connection.sendall(b"554 5.7.1 spam\r\n")
    return True


def refuses_the_next(server: Server, connection: socket.socket) -> bool:
    server.refuses_next = True
    return takes(server, connection)


def closes_after_the_answer(server: Server, connection: socket.socket) -> bool:
    return not takes(server, connection)


def closes_with_421(server: Server, connection: socket.socket) -> bool:
    connection.sendall(b"250 taken\r\n421 4.7.0 enough mails\r\n")
    tcp.stall(connection)
    return False


def closes_without_an_answer(server: Server, connection: socket.socket) -> bool:
    return False


@pytest.mark.parametrize(
    ("act", "unusual", "arrives"),
    [
        (takes, [], 8),
        (refuses, [(Reply, 554, Stage.END)], 8),
        (refuses_the_next, [(Reply, 550, Stage.RCPT)], 7),
        (closes_after_the_answer, [], 8),
        (closes_with_421, [], 8),
        (closes_without_an_answer, [(UNKNOWN, 354, Stage.END)], 8),
    ],
)
def test_each_mail_arrives_once_despite_failed_announced_mails(
    act: Callable[[Server, socket.socket], bool],
    unusual: list[tuple[object, int, Stage]],
    arrives: int,
) -> None:
    transport = Transport(AddressPolicy(["localhost"]), per_host=1)
    with Server(act) as server:
        results: list[Result] = []
        for _ in range(ROUNDS):
            server.arrived.clear()
            results = transport.perform([mail(server, body) for body in BODIES])
            if server.act is None:
                break
            assert [summary(each) for each in results] == [TAKEN] * 8
    transport.close()
    assert server.act is None, "no mail was announced"
    assert [found for each in results if (found := summary(each)) != TAKEN] == unusual
    assert set(server.arrived.values()) == {1}
    assert len(server.arrived) == arrives


def test_announced_mail_ends_as_not_started_if_the_one_before_is_not_answered() -> None:
    def stalls(server: Server, connection: socket.socket) -> bool:
        tcp.stall(connection)
        return False

    transport = Transport(AddressPolicy(["localhost"]), per_host=1, start_timeout=0.5)
    known: list[tuple[int, Result]] = []
    with Server(stalls) as server:
        results: list[Result] = []
        for _ in range(ROUNDS):
            results = transport.perform(
                [mail(server, body, wait=1.5) for body in BODIES], known.extend
            )
            if server.act is None:
                break
    transport.close()
    assert server.act is None, "no mail was announced"
    (place,) = [at for at, each in enumerate(results) if summary(each)[0] is UNKNOWN]
    assert all(each == NOT_STARTED for each in results[place + 1 :])
    assert (place, results[place]) in known
    assert isinstance(results[place], Failure)


def test_mails_of_a_call_are_freed_without_the_cycle_collector() -> None:
    transport = Transport(AddressPolicy(["localhost"]), per_host=1)
    gc.collect()
    gc.disable()
    try:
        before = _requests()
        with Server(takes) as server:
            for _ in range(3):
                transport.perform([mail(server, body) for body in BODIES])
        assert _requests() - before <= 1  # the last of its connection
    finally:
        gc.enable()
        transport.close()


def _requests() -> int:
    return sum(type(each) is Request for each in gc.get_objects())
