"""SMTP connections that are reused, and several at once."""

import socket
import threading
import time

import pytest

from rme.transport import AddressPolicy, Reply, Stage, Transport
from tests.fakes import smtp, tcp
from tests.fakes.smtp import SmtpServer
from tests.stopwatch import Stopwatch
from tests.transport.mails import MESSAGE, UNKNOWN, mail, summary


def test_connections_are_limited_and_reused_between_calls() -> None:
    transport = Transport(AddressPolicy(["localhost"]), per_host=3)
    with SmtpServer() as server:
        for _ in range(4):
            results = transport.perform([mail(server)] * 25)
            assert [summary(one) for one in results] == [(Reply, 250, Stage.END)] * 25
        assert (len(server.mails), server.connections <= 3) == (100, True)
    transport.close()


PIPELINING = "PIPELINING\n8BITMIME"


@pytest.mark.parametrize("offers", ["8BITMIME", PIPELINING])
@pytest.mark.parametrize("stage", ["MAIL", "RCPT", "DATA", "END"])
def test_connection_is_reused_after_a_refusal(
    transport: Transport, stage: str, offers: str
) -> None:
    with SmtpServer({stage: "550 5.7.1 no"}, offers=offers) as server:
        assert summary(transport.perform([mail(server)])[0]) == (Reply, 550, Stage[stage])
        server.script[stage] = smtp.USUAL[stage]
        for _ in range(2):
            assert summary(transport.perform([mail(server)])[0]) == (Reply, 250, Stage.END)
        assert server.connections == 1
    assert server.commands.count("RSET") == (0 if stage == "END" else 1)
    assert [one.data for one in server.mails[-2:]] == [MESSAGE] * 2


def test_refusal_of_a_pipelined_command_never_sends_the_message(transport: Transport) -> None:
    with SmtpServer({"RCPT": "550 5.1.1 no"}, offers=PIPELINING, strict=False) as server:
        assert summary(transport.perform([mail(server)])[0]) == (Reply, 550, Stage.RCPT)
        server.script["RCPT"] = smtp.USUAL["RCPT"]
        assert summary(transport.perform([mail(server)])[0]) == (Reply, 250, Stage.END)
    assert [one.connection for one in server.mails] == [1]


def test_commands_are_pipelined_if_the_server_allows(transport: Transport) -> None:
    turns: list[bytes] = []

    def talk(connection: socket.socket, number: int) -> None:
        connection.sendall(b"220 mail.test\r\n")
        for answer in (
            b"250-mail.test\r\n250 PIPELINING\r\n",
            b"250 ok\r\n250 ok\r\n354 go on\r\n",
            b"250 taken\r\n",
        ):
            turns.append(connection.recv(9999))
            connection.sendall(answer)
        connection.recv(1)

    with tcp.TcpServer(talk) as server:
        (result,) = transport.perform([mail(server, b"x\r\n")])
    assert summary(result) == (Reply, 250, Stage.END)
    assert turns == [
        b"EHLO me.test\r\n",
        b"MAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\nDATA\r\n",
        b"x\r\n.\r\n",
    ]


def test_server_without_extensions_gets_helo(transport: Transport) -> None:
    with SmtpServer({"EHLO": "502 5.5.1 what?"}) as server:
        (result,) = transport.perform([mail(server)])
    assert summary(result) == (Reply, 250, Stage.END)
    assert server.commands[:3] == ["EHLO me.test", "HELO me.test", "MAIL FROM:<a@x.test>"]


def test_slow_reply_to_one_message_does_not_delay_others(transport: Transport) -> None:
    others = threading.Event()

    def slow(connection: socket.socket) -> None:
        connection.sendall(b"250 taken\r\n" if others.wait(30) else b"450 never\r\n")

    with SmtpServer({"END": slow}) as waiting, SmtpServer() as going:
        requests = [mail(waiting), *[mail(going) for _ in range(30)]]
        threading.Thread(target=lambda: _when_taken(going, 30, others)).start()
        results = transport.perform(requests)
    assert [summary(one) for one in results] == [(Reply, 250, Stage.END)] * 31


def _when_taken(server: SmtpServer, count: int, then: threading.Event) -> None:
    while len(server.mails) < count and not server.closing.wait(0.01):
        pass
    then.set()


def test_late_reply_never_goes_to_the_next_mail() -> None:
    transport = Transport(AddressPolicy(["localhost"]), per_host=1)

    given_up, replied = threading.Event(), threading.Event()

    def late(connection: socket.socket) -> None:
        given_up.wait(20)
        try:
            connection.sendall(b"550 5.1.1 no such user\r\n")
        finally:
            replied.set()
        tcp.stall(connection)

    with SmtpServer({"END": late}) as server:
        assert summary(transport.perform([mail(server, wait=tcp.TIME_OUT)])[0])[0] is UNKNOWN
        server.script["END"] = smtp.USUAL["END"]
        given_up.set()
        assert replied.wait(30)
        assert summary(transport.perform([mail(server)])[0]) == (Reply, 250, Stage.END)
        assert [one.connection for one in server.mails] == [0, 1]
    transport.close()


def test_idle_connection_with_unexpected_bytes_is_not_reused(transport: Transport) -> None:
    answered = threading.Semaphore(0)

    def talk(connection: socket.socket, number: int) -> None:
        connection.sendall(b"220 mail.test\r\n")
        for answer in (b"250 ok", b"250 ok", b"250 ok", b"354 go", b"250 ok"):
            connection.recv(9999)
            connection.sendall(answer + b"\r\n")
        time.sleep(0.05)
        connection.sendall(b"421 4.4.2 idle for long\r\n")
        answered.release()
        tcp.stall(connection)

    with tcp.TcpServer(talk) as server:
        for _ in range(3):
            (result,) = transport.perform([mail(server, b"x\r\n")])
            assert summary(result) == (Reply, 250, Stage.END)
            assert answered.acquire(timeout=30)
        assert server.connections == 3


def test_next_address_is_tried_when_one_does_not_answer() -> None:
    with SmtpServer() as server, socket.socket() as deaf:
        deaf.bind(("127.0.0.2", server.port))
        deaf.listen(0)
        waiting = [socket.socket() for _ in range(3)]  # more than its backlog
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(("127.0.0.2", server.port))
        where = f"localhost:{server.port}:127.0.0.2,127.0.0.1"
        transport = Transport(AddressPolicy(["localhost"]), resolve=[where])
        began = time.monotonic()
        with Stopwatch() as watch:
            (result,) = transport.perform([mail(server)])
        took = time.monotonic() - began
        transport.close()
        for one in waiting:
            one.close()
    assert summary(result) == (Reply, 250, Stage.END)
    assert took > 0.9
    assert watch.seconds < 4
