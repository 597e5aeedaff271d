"""SMTP: what comes back of a conversation that ends well, badly, or in the middle."""

import socket
import threading
import time

import pytest

from rme.core.transport import (
    AddressPolicy,
    Envelope,
    Failure,
    FailureKind,
    InvalidRequest,
    MailSecurity,
    Reply,
    Request,
    Stage,
    Transport,
)
from tests.fakes import smtp, tcp
from tests.fakes.smtp import Mail, SmtpServer
from tests.fakes.tls import ca_pem, server_context

MESSAGE = b"Subject: x\r\n\r\n.hello\r\n..\r\nbye\r\n"
NOT_SENT, UNKNOWN = FailureKind.NOT_SENT, FailureKind.UNKNOWN


def mail(
    server: tcp.TcpServer,
    body: bytes = MESSAGE,
    security: MailSecurity = MailSecurity.NONE,
    username: str = "",
    trust: str | None = None,
    wait: float = 5.0,
) -> Request:
    scheme = "smtps" if security is MailSecurity.TLS else "smtp"
    return Request(
        f"{scheme}://localhost:{server.port}/me.test",
        body,
        envelope=Envelope("a@x.test", ("b@y.test",), security, username, "secret"),
        connect_timeout=wait,
        timeout=wait,
        ca_pem=ca_pem() if trust is None else trust,
    )


def told(result: Reply | Failure) -> tuple[object, int, Stage | None]:
    first = result.kind if isinstance(result, Failure) else Reply
    return first, result.status, result.stage


def test_mail_arrives_as_it_was_given(transport: Transport) -> None:
    with SmtpServer() as server:
        (result,) = transport.perform([mail(server)])
    assert server.heard == [
        "EHLO me.test",
        f"MAIL FROM:<a@x.test> SIZE={len(MESSAGE)}",
        "RCPT TO:<b@y.test>",
        "DATA",
    ]
    assert server.mails == [Mail(0, "<a@x.test>", "<b@y.test>", MESSAGE, False, "")]
    assert isinstance(result, Reply)
    assert told(result) == (Reply, 250, Stage.END)
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


def test_message_of_which_a_part_was_never_written_is_not_sent(transport: Transport) -> None:
    def some(connection: socket.socket) -> None:
        connection.sendall(b"354 go on\r\n")
        connection.recv(1000)
        tcp.reset(connection)

    with SmtpServer({"DATA": some}) as server:
        request = mail(server, b"0123456789\r\n" * 2_000_000)
        (result,) = transport.perform([request])
    assert told(result) == (NOT_SENT, 354, Stage.END)


def test_reply_that_comes_slowly_comes(transport: Transport) -> None:
    def slowly(connection: socket.socket) -> None:
        tcp.drip(connection, b"250-2.0.0 taken\r\n250 2.0.0 as 1\r\n", 0.001)

    with SmtpServer({"END": slowly}) as server:
        (result,) = transport.perform([mail(server)])
    assert result.lines == ("250-2.0.0 taken", "250 2.0.0 as 1")


def test_null_sender_is_written_as_such(transport: Transport) -> None:
    with SmtpServer() as server:
        url = f"smtp://localhost:{server.port}/me.test"
        envelope = Envelope("", ("b@y.test",), MailSecurity.NONE)
        transport.perform([Request(url, MESSAGE, envelope=envelope)])
    assert [one.mail_from for one in server.mails] == ["<>"]


def test_connections_are_bounded_and_kept_between_calls() -> None:
    transport = Transport(AddressPolicy(["localhost"]), per_host=3)
    with SmtpServer() as server:
        for _ in range(4):
            results = transport.perform([mail(server)] * 25)
            assert [told(one) for one in results] == [(Reply, 250, Stage.END)] * 25
        assert (len(server.mails), server.connections <= 3) == (100, True)
    transport.close()


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
    assert told(result) == (Reply, int(reply[:3]), Stage(seen_as))
    assert result.lines == tuple(reply.split("\n"))


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
        (result,) = transport.perform([mail(server, wait=0.4 if what is tcp.stall else 5)])
    where = Stage.CONNECT if stage in ("GREETING", "EHLO") else Stage[stage]
    assert (told(result)[0], result.stage) == (kind, where)


@pytest.mark.parametrize("what", ["354 odd", "199 odd"])
@pytest.mark.parametrize(
    ("stage", "kind"), [("MAIL", NOT_SENT), ("RCPT", NOT_SENT), ("END", UNKNOWN)]
)
def test_reply_that_makes_no_sense_is_none(
    transport: Transport, stage: str, kind: FailureKind, what: str
) -> None:
    with SmtpServer({stage: what}) as server:
        (result,) = transport.perform([mail(server)])
    assert told(result)[0] is kind


def test_endless_reply_is_ended(transport: Transport) -> None:
    def endless(connection: object) -> None:
        connection.sendall(b"250-more\r\n" * 100_000)  # type: ignore[attr-defined]

    with SmtpServer({"RCPT": endless}) as server:
        (result,) = transport.perform([mail(server)])
    assert told(result)[0] is NOT_SENT


PIPELINING = "PIPELINING\n8BITMIME"


@pytest.mark.parametrize("offers", ["8BITMIME", PIPELINING])
@pytest.mark.parametrize("stage", ["MAIL", "RCPT", "DATA", "END"])
def test_connection_is_kept_after_a_refusal(transport: Transport, stage: str, offers: str) -> None:
    with SmtpServer({stage: "550 5.7.1 no"}, offers=offers) as server:
        assert told(transport.perform([mail(server)])[0]) == (Reply, 550, Stage[stage])
        server.script[stage] = smtp.USUAL[stage]
        for _ in range(2):
            assert told(transport.perform([mail(server)])[0]) == (Reply, 250, Stage.END)
        assert server.connections == 1
    assert server.heard.count("RSET") == (0 if stage == "END" else 1)
    assert [one.data for one in server.mails[-2:]] == [MESSAGE] * 2


def test_refusal_among_commands_in_a_row_never_sends_the_message(transport: Transport) -> None:
    with SmtpServer({"RCPT": "550 5.1.1 no"}, offers=PIPELINING, strict=False) as server:
        assert told(transport.perform([mail(server)])[0]) == (Reply, 550, Stage.RCPT)
        server.script["RCPT"] = smtp.USUAL["RCPT"]
        assert told(transport.perform([mail(server)])[0]) == (Reply, 250, Stage.END)
    assert [one.connection for one in server.mails] == [1]


def test_commands_go_in_a_row_where_the_server_takes_them_so(transport: Transport) -> None:
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
    assert told(result) == (Reply, 250, Stage.END)
    assert turns == [
        b"EHLO me.test\r\n",
        b"MAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\nDATA\r\n",
        b"x\r\n.\r\n",
    ]


def test_server_older_than_extensions_is_spoken_to_all_the_same(transport: Transport) -> None:
    with SmtpServer({"EHLO": "502 5.5.1 what?"}) as server:
        (result,) = transport.perform([mail(server)])
    assert told(result) == (Reply, 250, Stage.END)
    assert server.heard[:3] == ["EHLO me.test", "HELO me.test", "MAIL FROM:<a@x.test>"]


def test_server_slow_with_one_message_does_not_hold_up_the_others(transport: Transport) -> None:
    others = threading.Event()

    def slow(connection: socket.socket) -> None:
        connection.sendall(b"250 taken\r\n" if others.wait(5) else b"450 never\r\n")

    with SmtpServer({"END": slow}) as waiting, SmtpServer() as going:
        requests = [mail(waiting), *[mail(going) for _ in range(30)]]
        threading.Thread(target=lambda: _when_taken(going, 30, others)).start()
        results = transport.perform(requests)
    assert [told(one) for one in results] == [(Reply, 250, Stage.END)] * 31


def _when_taken(server: SmtpServer, count: int, then: threading.Event) -> None:
    while len(server.mails) < count and not server.closing.wait(0.01):
        pass
    then.set()


def test_late_reply_never_goes_to_the_next_mail() -> None:
    transport = Transport(AddressPolicy(["localhost"]), per_host=1)

    def late(connection: socket.socket) -> None:
        time.sleep(0.4)
        connection.sendall(b"550 5.1.1 no such user\r\n")
        tcp.stall(connection)

    with SmtpServer({"END": late}) as server:
        assert told(transport.perform([mail(server, wait=0.3)])[0])[0] is UNKNOWN
        server.script["END"] = smtp.USUAL["END"]
        time.sleep(0.2)
        assert told(transport.perform([mail(server)])[0]) == (Reply, 250, Stage.END)
        assert [one.connection for one in server.mails] == [0, 1]
    transport.close()


def test_connection_that_said_something_while_idle_is_not_used(transport: Transport) -> None:
    def talk(connection: socket.socket, number: int) -> None:
        connection.sendall(b"220 mail.test\r\n")
        for answer in (b"250 ok", b"250 ok", b"250 ok", b"354 go", b"250 ok\r\n421 idle for long"):
            connection.recv(9999)
            connection.sendall(answer + b"\r\n")
            time.sleep(0.02)

    with tcp.TcpServer(talk) as server:
        for _ in range(3):
            assert told(transport.perform([mail(server, b"x\r\n")])[0]) == (
                Reply,
                250,
                Stage.END,
            )
            time.sleep(0.1)
        assert server.connections == 3


def test_what_was_said_before_tls_does_not_count_inside(transport: Transport) -> None:
    def talk(connection: socket.socket, number: int) -> None:
        connection.sendall(b"220 mail.test\r\n")
        connection.recv(9999)
        connection.sendall(b"250-mail.test\r\n250 STARTTLS\r\n")
        connection.recv(9999)
        connection.sendall(b"220 go on\r\n250-mail.test\r\n250 AUTH PLAIN\r\n")
        tcp.stall(connection)

    with tcp.TcpServer(talk) as server:
        (result,) = transport.perform([mail(server, security=MailSecurity.STARTTLS)])
    assert told(result) == (NOT_SENT, 220, Stage.CONNECT)


@pytest.mark.parametrize("body", [b"a\n.\nMAIL FROM:<x>", b"a\r.\r\n", b"a\r\r\n", b"\n"])
def test_message_with_bare_line_ends_is_not_made(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        Request("smtp://x.test/", body, envelope=Envelope("a@x.test", ("b@x.test",)))


# TLS and log-in


@pytest.mark.parametrize("mechanisms", ["PLAIN", "LOGIN", "GSSAPI NTLM CRAM-MD5 LOGIN PLAIN"])
@pytest.mark.parametrize("security", [MailSecurity.STARTTLS, MailSecurity.TLS])
def test_log_in_goes_inside_tls(
    transport: Transport, mechanisms: str, security: MailSecurity
) -> None:
    context = server_context()
    implicit = security is MailSecurity.TLS
    with SmtpServer(
        starttls=context,
        tls=context if implicit else None,
        offers=f"AUTH {mechanisms}" if implicit else f"STARTTLS\nAUTH {mechanisms}",
    ) as server:
        (result,) = transport.perform([mail(server, security=security, username="me")])
    assert told(result) == (Reply, 250, Stage.END)
    assert [(one.encrypted, one.login) for one in server.mails] == [(True, "me:secret")]


def test_starttls_is_never_gone_without(transport: Transport) -> None:
    with SmtpServer() as server:
        (result,) = transport.perform([mail(server, security=MailSecurity.STARTTLS, username="me")])
    assert told(result) == (FailureKind.TLS, 250, Stage.CONNECT)
    assert [line for line in server.heard if not line.startswith(("EHLO", "QUIT"))] == []


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ({"STARTTLS": "454 4.7.0 later"}, (FailureKind.TLS, 454, Stage.CONNECT)),
        ({"STARTTLS": "502 5.5.1 no"}, (FailureKind.TLS, 502, Stage.CONNECT)),
        ({"STARTTLS": smtp.close}, (NOT_SENT, 250, Stage.CONNECT)),
        ({"STARTTLS": tcp.stall}, (NOT_SENT, 250, Stage.CONNECT)),
        ({"AUTH": "535 5.7.8 wrong"}, (FailureKind.LOGIN, 535, Stage.LOGIN)),
        ({"AUTH": "454 4.7.0 later"}, (FailureKind.LOGIN, 454, Stage.LOGIN)),
        ({"AUTH": smtp.close}, (NOT_SENT, 250, Stage.LOGIN)),
        ({"AUTH": tcp.stall}, (NOT_SENT, 250, Stage.LOGIN)),
        ({"MAIL": "530 5.7.0 log in first"}, (Reply, 530, Stage.MAIL)),
    ],
)
def test_refused_security_or_log_in_is_told_apart(
    transport: Transport, script: dict[str, smtp.Step], expected: tuple[object, int, Stage]
) -> None:
    wait = 0.4 if tcp.stall in script.values() else 5
    with SmtpServer(script, starttls=server_context(), offers="STARTTLS\nAUTH PLAIN") as server:
        request = mail(server, security=MailSecurity.STARTTLS, username="me", wait=wait)
        (result,) = transport.perform([request])
    assert told(result) == expected
    assert server.mails == []


def test_certificate_is_checked_in_both_ways_of_tls(transport: Transport) -> None:
    context = server_context()
    with SmtpServer(tls=context) as one, SmtpServer(starttls=context, offers="STARTTLS") as other:
        results = transport.perform(
            [
                mail(one, security=MailSecurity.TLS, trust=""),
                mail(other, security=MailSecurity.STARTTLS, trust=""),
            ]
        )
    assert [told(result)[0] for result in results] == [FailureKind.TLS] * 2
    assert one.mails + other.mails == []


# What cannot be written


@pytest.mark.parametrize(
    "address",
    [
        "a@x.test>\r\nRCPT TO:<c@z.test",
        "a@x.test\nX",
        "a@x.test> SIZE=1",
        "a@x.test NOTIFY=NEVER",
        "<a@x.test",
        "<a@x.test> b",
        "a@x.test\0",
        "ä@x.test",
        "a<b@x.test",
    ],
)
def test_envelope_cannot_be_made_to_say_more(address: str) -> None:
    with pytest.raises(InvalidRequest):
        Envelope(address, ("b@y.test",))
    with pytest.raises(InvalidRequest):
        Envelope("b@y.test", (address,))


@pytest.mark.parametrize("recipients", [(), ("",), ("a@x.test", "")])
def test_envelope_needs_recipients(recipients: tuple[str, ...]) -> None:
    with pytest.raises(InvalidRequest):
        Envelope("a@x.test", recipients)


@pytest.mark.parametrize(
    ("scheme", "security"), [("smtp", MailSecurity.TLS), ("smtps", MailSecurity.STARTTLS)]
)
def test_scheme_and_security_must_agree(scheme: str, security: MailSecurity) -> None:
    with pytest.raises(InvalidRequest):
        Request(f"{scheme}://x.test/", envelope=Envelope("a@x.test", ("b@x.test",), security))


def test_repr_of_an_envelope_says_nothing_secret() -> None:
    envelope = Envelope("a@x.test", ("b@x.test",), username="me", password="secret")
    assert repr(envelope) == "Envelope(1 recipients, STARTTLS)"
