"""SMTP: what comes back of a conversation that ends well, badly, or in the middle."""

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
    server: SmtpServer,
    body: bytes = MESSAGE,
    security: MailSecurity = MailSecurity.NONE,
    username: str = "",
    trust: str | None = None,
) -> Request:
    scheme = "smtps" if security is MailSecurity.TLS else "smtp"
    return Request(
        f"{scheme}://localhost:{server.port}/me.test",
        body,
        envelope=Envelope("a@x.test", ("b@y.test",), security, username, "secret"),
        connect_timeout=0.3,
        timeout=0.3,
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
        b"0123456789\r\n" * 20_000,
    ],
)
def test_dots_are_stuffed(transport: Transport, body: bytes) -> None:
    with SmtpServer() as server:
        transport.perform([mail(server, body)])
    assert [one.data for one in server.mails] == [body]


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
        (result,) = transport.perform([mail(server)])
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


def test_connection_is_used_again_after_a_mail_was_taken_but_not_after_a_refusal() -> None:
    transport = Transport(AddressPolicy(["localhost"]), per_host=1)
    with SmtpServer({"RCPT": "550 5.1.1 no"}) as server:
        assert told(transport.perform([mail(server)])[0]) == (Reply, 550, Stage.RCPT)
        server.script["RCPT"] = "250 ok"
        for _ in range(3):
            assert told(transport.perform([mail(server)])[0]) == (Reply, 250, Stage.END)
        assert [one.connection for one in server.mails] == [1, 1, 1]
    transport.close()


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
        ({"AUTH": smtp.close}, (NOT_SENT, 334, Stage.CONNECT)),
        ({"AUTH": tcp.stall}, (NOT_SENT, 334, Stage.CONNECT)),
        ({"MAIL": "530 5.7.0 log in first"}, (Reply, 530, Stage.MAIL)),
    ],
)
def test_refused_security_or_log_in_is_told_apart(
    transport: Transport, script: dict[str, smtp.Step], expected: tuple[object, int, Stage]
) -> None:
    with SmtpServer(script, starttls=server_context(), offers="STARTTLS\nAUTH PLAIN") as server:
        (result,) = transport.perform([mail(server, security=MailSecurity.STARTTLS, username="me")])
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
