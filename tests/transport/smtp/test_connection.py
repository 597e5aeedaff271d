"""SMTP: results of sessions that succeed, are refused, or are lost."""

import socket

import pytest

from rme.transport import Envelope, FailureKind, MailSecurity, Reply, Request, Stage, Transport
from tests.fakes import smtp, tcp
from tests.fakes.smtp import Mail, SmtpServer
from tests.transport.mails import MESSAGE, NOT_SENT, UNKNOWN, mail, summary


def test_mail_arrives_as_it_was_given(transport: Transport) -> None:
    with SmtpServer() as server:
        (result,) = transport.perform([mail(server)])
    assert server.commands == [
        "EHLO me.test",
        f"MAIL FROM:<a@x.test> SIZE={len(MESSAGE)}",
        "RCPT TO:<b@y.test>",
        "DATA",
    ]
    assert server.mails == [Mail(0, "<a@x.test>", "<b@y.test>", MESSAGE, False, "")]
    assert isinstance(result, Reply)
    assert summary(result) == (Reply, 250, Stage.END)
    assert result.lines == ("250 2.0.0 queued as 4F2A",)


@pytest.mark.parametrize(
    "body",
    [
        b".\r\n",
        b".first\r\n",
        b"a\r\n.\r\nb\r\n",
        b"a\r\n..\r\n...\r\n",
        b"x" * 900 + b"\r\n.\r\n",
        b".\r\n" * 50_000,
        b"0123456789\r\n" * 400_000,
    ],
)
def test_dots_are_stuffed(transport: Transport, body: bytes) -> None:
    with SmtpServer() as server:
        transport.perform([mail(server, body)])
    assert [one.data for one in server.mails] == [body]


def test_incompletely_written_message_is_not_sent(transport: Transport) -> None:
    def some(connection: socket.socket) -> None:
        connection.sendall(b"354 go on\r\n")
        connection.recv(1000)
        tcp.reset(connection)

    with SmtpServer({"DATA": some}) as server:
        request = mail(server, b"0123456789\r\n" * 2_000_000)
        (result,) = transport.perform([request])
    assert summary(result) == (NOT_SENT, 354, Stage.END)


def test_slow_reply_is_read(transport: Transport) -> None:
    def slowly(connection: socket.socket) -> None:
        tcp.drip(connection, b"250-2.0.0 taken\r\n250 2.0.0 as 1\r\n", 0.001)

    with SmtpServer({"END": slowly}) as server:
        (result,) = transport.perform([mail(server)])
    assert result.lines == ("250-2.0.0 taken", "250 2.0.0 as 1")


def test_null_sender_is_written_as_empty_path(transport: Transport) -> None:
    with SmtpServer() as server:
        url = f"smtp://localhost:{server.port}/me.test"
        envelope = Envelope("", ("b@y.test",), MailSecurity.NONE)
        transport.perform([Request(url, MESSAGE, envelope=envelope)])
    assert [one.mail_from for one in server.mails] == ["<>"]


@pytest.mark.parametrize(
    ("stage", "seen_as"),
    [
        ("GREETING", Stage.CONNECT),
        *[(name, Stage[name]) for name in ("MAIL", "RCPT", "DATA", "END")],
    ],
)
@pytest.mark.parametrize("reply", ["421 4.3.2 going down", "550-5.1.1 no\n550 5.1.1 such"])
def test_refusal_is_an_answer_with_its_stage(
    transport: Transport, stage: str, seen_as: str, reply: str
) -> None:
    with SmtpServer({stage: reply}) as server:
        (result,) = transport.perform([mail(server)])
    assert summary(result) == (Reply, int(reply[:3]), Stage(seen_as))
    assert result.lines == tuple(reply.split("\n"))


@pytest.mark.promise("reliability-5")
@pytest.mark.parametrize(
    ("stage", "kind"),
    [
        ("GREETING", NOT_SENT),
        ("EHLO", NOT_SENT),
        ("MAIL", NOT_SENT),
        ("RCPT", NOT_SENT),
        ("DATA", NOT_SENT),
        ("END", UNKNOWN),
    ],
)
@pytest.mark.parametrize("what", [smtp.close, tcp.reset, tcp.stall, smtp.garbage])
def test_lost_connection_is_unknown_once_the_message_was_written(
    transport: Transport, stage: str, kind: FailureKind, what: smtp.Step
) -> None:
    with SmtpServer({stage: what}) as server:
        (result,) = transport.perform([mail(server, wait=tcp.TIME_OUT if what is tcp.stall else 5)])
    where = Stage.CONNECT if stage in ("GREETING", "EHLO") else Stage[stage]
    assert (summary(result)[0], result.stage) == (kind, where)


@pytest.mark.parametrize("what", ["354 odd", "199 odd"])
@pytest.mark.parametrize(
    ("stage", "kind"), [("MAIL", NOT_SENT), ("RCPT", NOT_SENT), ("END", UNKNOWN)]
)
def test_invalid_reply_is_a_failure(
    transport: Transport, stage: str, kind: FailureKind, what: str
) -> None:
    with SmtpServer({stage: what}) as server:
        (result,) = transport.perform([mail(server)])
    assert summary(result)[0] is kind


def test_endless_reply_is_ended(transport: Transport) -> None:
    def endless(connection: object) -> None:
        connection.sendall(b"250-more\r\n" * 100_000)  # type: ignore[attr-defined]

    with SmtpServer({"RCPT": endless}) as server:
        (result,) = transport.perform([mail(server)])
    assert summary(result)[0] is NOT_SENT
