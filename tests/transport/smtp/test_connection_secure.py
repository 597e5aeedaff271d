"""SMTP: TLS and log-in, and envelopes that cannot be written."""

import socket

import pytest

from rme.transport import (
    Envelope,
    FailureKind,
    InvalidRequest,
    MailSecurity,
    Reply,
    Request,
    Stage,
    Transport,
)
from tests.fakes import smtp, tcp
from tests.fakes.smtp import SmtpServer
from tests.fakes.tls import server_context
from tests.transport.mails import NOT_SENT, mail, summary

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
    assert summary(result) == (Reply, 250, Stage.END)
    assert [(one.encrypted, one.login) for one in server.mails] == [(True, "me:secret")]


def test_mail_is_never_sent_without_starttls(transport: Transport) -> None:
    with SmtpServer() as server:
        (result,) = transport.perform([mail(server, security=MailSecurity.STARTTLS, username="me")])
    assert summary(result) == (FailureKind.TLS, 250, Stage.CONNECT)
    assert [line for line in server.commands if not line.startswith(("EHLO", "QUIT"))] == []


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
def test_refused_tls_and_refused_log_in_differ(
    transport: Transport, script: dict[str, smtp.Step], expected: tuple[object, int, Stage]
) -> None:
    wait = tcp.TIME_OUT if tcp.stall in script.values() else 5
    with SmtpServer(script, starttls=server_context(), offers="STARTTLS\nAUTH PLAIN") as server:
        request = mail(server, security=MailSecurity.STARTTLS, username="me", wait=wait)
        (result,) = transport.perform([request])
    assert summary(result) == expected
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
    assert [summary(result)[0] for result in results] == [FailureKind.TLS] * 2
    assert one.mails + other.mails == []


def test_replies_before_tls_do_not_count_inside(transport: Transport) -> None:
    received: list[bytes] = []

    def talk(connection: socket.socket, number: int) -> None:
        for replies in (
            b"220 mail.test\r\n",
            b"250-mail.test\r\n250 STARTTLS\r\n",
            b"220 go on\r\n250-mail.test\r\n250 AUTH PLAIN\r\n",
        ):
            connection.sendall(replies)
            received.append(connection.recv(9999))

    with tcp.TcpServer(talk) as server:
        (result,) = transport.perform([mail(server, security=MailSecurity.STARTTLS)])
        server.wait_until_closed()
    assert summary(result) == (NOT_SENT, 220, Stage.CONNECT)
    assert received == [b"EHLO me.test\r\n", b"STARTTLS\r\n", b""]


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
def test_address_cannot_add_commands_or_parameters(address: str) -> None:
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


def test_repr_of_an_envelope_has_no_secrets() -> None:
    envelope = Envelope("a@x.test", ("b@x.test",), username="me", password="secret")
    assert repr(envelope) == "Envelope(1 recipients, STARTTLS)"


@pytest.mark.parametrize("body", [b"a\n.\nMAIL FROM:<x>", b"a\r.\r\n", b"a\r\r\n", b"\n"])
def test_message_with_bare_line_ends_is_not_made(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        Request("smtp://x.test/", body, envelope=Envelope("a@x.test", ("b@x.test",)))
