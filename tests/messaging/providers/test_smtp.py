from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from pydantic import ValidationError

from messaging.providers.smtp import Smtp
from rme.core.outcomes import Accepted, Misconfigured
from rme.core.provider import Dispatch, Email
from rme.transport import AddressPolicy, MailSecurity, Transport
from tests.fakes import smtp, tcp
from tests.fakes.smtp import SmtpServer
from tests.fakes.tls import ca_pem, server_context
from tests.messaging.providers.accounts import (
    ATTEMPT,
    CONTENT,
    LATER,
    SET_UP,
    email_dispatch,
    kind_of,
    provider,
)

# With a mail server that is not ours


class Inbox:
    """What aiosmtpd took."""

    def __init__(self) -> None:
        self.mails: list[Envelope] = []

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        self.mails.append(envelope)
        return "250 2.0.0 taken"

    def log_in(self, *given: Any) -> AuthResult:
        return AuthResult(success=given[-1] == LoginPassword(b"me", b"secret"), handled=False)


@contextmanager
def mail_server(security: MailSecurity, inbox: Inbox) -> Iterator[int]:
    port = tcp.free_port()
    context = server_context()
    controller = Controller(
        inbox,
        hostname="127.0.0.1",
        port=port,
        ssl_context=context if security is MailSecurity.TLS else None,
        tls_context=context if security is MailSecurity.STARTTLS else None,
        require_starttls=security is MailSecurity.STARTTLS,
        authenticator=inbox.log_in,
        auth_required=True,
        auth_require_tls=security is MailSecurity.STARTTLS,
    )
    controller.start()
    try:
        yield port
    finally:
        controller.stop()


ALL_OF_IT_IS_TLS = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")


@ALL_OF_IT_IS_TLS
@pytest.mark.parametrize("security", [MailSecurity.STARTTLS, MailSecurity.TLS])
def test_mail_is_taken_by_a_server_with_log_in(
    transport: Transport, security: MailSecurity
) -> None:
    inbox = Inbox()
    with mail_server(security, inbox) as port:
        account = provider(
            port, security=security, username="me", password="secret", ca_pem=ca_pem()
        )
        outcomes = account.send([email_dispatch(1), email_dispatch(2)], transport)
    assert outcomes == [Accepted("1@y.test"), Accepted("2@y.test")]
    assert [(one.mail_from, one.rcpt_tos) for one in inbox.mails] == [
        ("from@y.test", ["to@x.test"])
    ] * 2
    assert all(isinstance(m.content, bytes) and m.content.endswith(b"Hi\r\n") for m in inbox.mails)


@ALL_OF_IT_IS_TLS
def test_wrong_password_is_a_fault_of_the_account(transport: Transport) -> None:
    inbox = Inbox()
    with mail_server(MailSecurity.TLS, inbox) as port:
        account = provider(
            port, security="TLS", username="me", password="wrong", ca_pem=ca_pem(), timeout=5
        )
        assert [kind_of(one) for one in account.send([email_dispatch()], transport)] == [SET_UP]
    assert inbox.mails == []


# By the letter of RFC 5321


def test_account_says_its_name_and_where_bounces_go(transport: Transport) -> None:
    with SmtpServer() as server:
        account = provider(server.port, helo="out.y.test", bounce_address="bounces@y.test")
        assert account.send([email_dispatch()], transport) == [Accepted("1@y.test")]
    assert server.commands[0] == "EHLO out.y.test"
    assert [(mail.mail_from, mail.recipient) for mail in server.mails] == [
        ("<bounces@y.test>", "<to@x.test>")
    ]
    assert b"\r\nMessage-ID: <1@y.test>\r\n" in server.mails[0].data


def test_mail_without_a_usable_message_id_is_given_one(transport: Transport) -> None:
    with SmtpServer() as server:
        content = Email("to@x.test", "from@y.test", "", "S", "T", message_id="a b\r\nX: y")
        outcomes = provider(server.port).send([Dispatch(str(ATTEMPT), content)], transport)
    assert outcomes == [Accepted(f"{ATTEMPT}@y.test")]
    assert b"\r\nMessage-ID: <%b@y.test>\r\n" % str(ATTEMPT).encode() in server.mails[0].data


def test_hundred_mails_go_over_few_connections() -> None:
    transport = Transport(AddressPolicy(["localhost"]), per_host=5)
    with SmtpServer() as server:
        account = provider(server.port)
        for start in range(0, 100, 50):
            window = [email_dispatch(number) for number in range(start, start + 50)]
            outcomes = account.send(window, transport)
            assert outcomes == [Accepted(f"{n}@y.test") for n in range(start, start + 50)]
        assert (len(server.mails), server.connections <= 5) == (100, True)
    transport.close()


@pytest.mark.parametrize(
    "to", ["to@x.test\r\nBcc: a@b.test", "to@x.test> SIZE=1", "<to@x.test>", "a b@x.test", "x", ""]
)
def test_unwritable_address_fails_alone(transport: Transport, to: str) -> None:
    with SmtpServer() as server:
        outcomes = provider(server.port).send(
            [email_dispatch(1), email_dispatch(2, to), email_dispatch(3)], transport
        )
    assert [kind_of(one) for one in outcomes] == [(Accepted,), CONTENT, (Accepted,)]
    assert len(server.mails) == 2


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ({"STARTTLS": "454 4.7.0 later"}, LATER),
        ({"STARTTLS": "502 5.5.1 no"}, SET_UP),
        ({"STARTTLS": smtp.close}, LATER),
        ({"AUTH": "535 5.7.8 wrong"}, SET_UP),
        ({"AUTH": "534 5.7.9 too weak"}, SET_UP),
        ({"AUTH": "454 4.7.0 later"}, LATER),
        ({"AUTH": smtp.close}, LATER),
        ({"AUTH": tcp.stall}, LATER),
    ],
)
def test_failed_starttls_or_log_in_is_retryable_or_misconfigured(
    transport: Transport, script: dict[str, smtp.Step], expected: tuple[object, ...]
) -> None:
    with SmtpServer(script, starttls=server_context(), offers="STARTTLS\nAUTH PLAIN") as server:
        account = provider(
            server.port,
            security="STARTTLS",
            username="me",
            password="x",
            ca_pem=ca_pem(),
            timeout=0.4 if tcp.stall in script.values() else 5,
        )
        assert [kind_of(one) for one in account.send([email_dispatch()], transport)] == [expected]


def test_server_without_starttls_gets_no_mail(transport: Transport) -> None:
    with SmtpServer() as server:
        account = provider(server.port, security="STARTTLS")
        assert [kind_of(one) for one in account.send([email_dispatch()], transport)] == [SET_UP]
    assert server.mails == []


def test_private_address_is_a_fault_of_the_account() -> None:
    transport = Transport()
    outcomes = provider(25, host="10.0.0.1").send([email_dispatch()], transport)
    transport.close()
    assert outcomes == [Misconfigured("the address is not public")]


@pytest.mark.parametrize(
    "given",
    [
        {"host": ""},
        {"host": "x.test/path"},
        {"host": "user@x.test"},
        {"host": "x.test\r\nX:"},
        {"port": 0},
        {"port": 65536},
        {"security": "SOMETIMES"},
        {"helo": "a b"},
        {"helo": "a\r\nb"},
        {"bounce_address": "x"},
        {"bounce_address": "a@b.test> X"},
        {"security": "NONE", "username": "me"},
        {"timeout": 0},
        {"timeout": 26},
        {"unknown": "x"},
    ],
)
def test_invalid_settings_are_rejected(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Smtp.Settings.model_validate({"host": "mail.test", **given})


def test_settings_have_sensible_defaults_and_no_secret_in_sight() -> None:
    settings = Smtp.Settings.model_validate({"host": "mail.test", "password": "secret"})
    assert (settings.port, settings.security) == (587, MailSecurity.STARTTLS)  # type: ignore[attr-defined]
    assert "secret" not in repr(settings)
