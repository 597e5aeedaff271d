"""Checks of accounts, that log in and send nothing, over the real transport."""

from collections.abc import Iterator
from typing import Any

import pytest

from messaging import providers
from rme.core.outcomes import Accepted, Misconfigured, Outcome, Retryable
from rme.core.provider import Provider
from rme.transport import AddressPolicy, Transport
from rme.transport.smpp import close_all
from rme.transport.smpp.pdu import CommandId
from tests.fakes import http1, smpp, smtp, tcp
from tests.fakes.http1 import Http1Server
from tests.fakes.smpp import SmppServer
from tests.fakes.smtp import SmtpServer
from tests.fakes.tls import ca_pem, server_context
from tests.messaging.providers.accounts import email_dispatch
from tests.messaging.providers.test_contract import HARNESSES

UNCHECKED = {"kannel", "http_sms"}
"""Only a message tells whether these accept an account."""


@pytest.fixture
def transport() -> Iterator[Transport]:
    own = Transport(AddressPolicy(["localhost", "127.0.0.1"]))
    yield own
    own.close()
    close_all(1)


def made(kind: str, **settings: Any) -> Provider:
    provider = providers.REGISTRY[kind]
    return provider(provider.Settings.model_validate(settings))


HTTP: dict[str, tuple[dict[str, str], str, str]] = {
    # by kind: settings, the path that is read, and the header that proves who asks
    "twilio": (
        {"account_sid": "AC" + "0" * 32, "auth_token": "t"},
        f"/2010-04-01/Accounts/AC{'0' * 32}/Messages.json?PageSize=1",
        "authorization",
    ),
    "vonage": (
        {"api_key": "k", "api_secret": "s"}, "/v2/applications?page_size=1", "authorization"
    ),
    "ses": (
        {"region": "eu-west-1", "access_key_id": "A" * 20, "secret_access_key": "s"},
        "/v2/email/account",
        "authorization",
    ),
    "anymail": (
        {"service": "postmark", "api_key": "k"}, "/server", "x-postmark-server-token"
    ),
}  # fmt: skip
ANSWERS: list[tuple[int, Outcome]] = [
    (200, Accepted()),
    (401, Misconfigured("refused: 401")),
    (404, Misconfigured("refused: 404")),
    (429, Retryable("refused: 429")),
    (503, Retryable("refused: 503")),
]


@pytest.mark.parametrize("kind", HTTP)
@pytest.mark.parametrize(("status", "outcome"), ANSWERS)
def test_a_page_of_the_services_api_is_read_with_the_log_in(transport, kind, status, outcome):
    settings, path, header = HTTP[kind]
    with Http1Server(lambda c, _: http1.respond(c, status, b"{}")) as server:
        provider = made(kind, base_url=server.url.rstrip("/"), **settings)
        assert provider.check(transport) == outcome
    (seen,) = server.seen
    assert (seen.method, seen.path, seen.body) == ("GET", path, b"")
    assert header in {name.lower() for name, _ in seen.headers}


def test_send_only_key_of_ses_cannot_be_checked(transport):
    denied = {"x-amzn-errortype": "AccessDeniedException"}
    with Http1Server(lambda c, _: http1.respond(c, 403, b"{}", denied)) as server:
        provider = made("ses", base_url=server.url.rstrip("/"), **HTTP["ses"][0])
        assert provider.check(transport) is None


@pytest.mark.parametrize(
    ("service", "path"),
    [("brevo", "/account"), ("mailersend", "/api-quota"), ("sendgrid", "/scopes"),
     ("resend", None), ("sparkpost", None)],
)  # fmt: skip
def test_email_services_are_checked_by_a_readable_path(transport, service, path):
    with Http1Server(lambda c, _: http1.respond(c, 200, b"{}")) as server:
        provider = made("anymail", base_url=server.url, service=service, api_key="k")
        assert provider.check(transport) == (Accepted() if path else None)
    assert [seen.path for seen in server.seen] == ([path] if path else [])


def mail(server: SmtpServer) -> Provider:
    given = {"username": "u", "password": "p", "security": "TLS", "ca_pem": ca_pem()}
    return made("smtp", host="localhost", port=server.port, timeout=5, **given)


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        ({}, Accepted()),
        ({"AUTH": "535 5.7.8 wrong"}, Misconfigured("535 5.7.8 wrong")),
        ({"AUTH": "454 4.7.0 later"}, Retryable("454 4.7.0 later")),
        ({"GREETING": "554 no service"}, Retryable("554 no service")),
        ({"NOOP": smtp.close}, Retryable("the connection was lost")),
    ],
)
def test_a_mail_server_is_logged_in_to_and_gets_no_mail(transport, script, outcome):
    with SmtpServer(script, tls=server_context(), offers="AUTH PLAIN") as server:
        assert mail(server).check(transport) == outcome
    assert (server.mails, [each for each in server.commands if "MAIL" in each]) == ([], [])
    assert ("NOOP" in server.commands) == ("AUTH" not in script and "GREETING" not in script)


def test_connection_of_a_check_is_reused_by_the_next_mail(transport):
    with SmtpServer(tls=server_context(), offers="AUTH PLAIN") as server:
        provider = mail(server)
        assert provider.check(transport) == provider.check(transport) == Accepted()
        (sent,) = provider.send([email_dispatch()], transport)
        assert provider.check(transport) == Accepted()
    assert isinstance(sent, Accepted)
    assert [each.connection for each in server.mails] == [0]
    assert [each for each in server.commands if each.startswith("AUTH")] == server.commands[1:2]


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(0, Accepted()), (0x0E, Misconfigured("ESME_RINVPASWD")), (0x05, Retryable("ESME_RALYBND"))],
)
def test_an_smsc_is_bound_to_and_gets_no_message(transport, status, outcome):
    steps = {CommandId.BIND_TRANSMITTER: smpp.refuse(status)}
    with SmppServer(steps) as server:
        settings = {"host": "localhost", "port": server.port, "system_id": "esme", "timeout": 5}
        assert made("smpp", **settings).check(transport) == outcome
        close_all(1)
    assert server.of(CommandId.SUBMIT_SM) == []


def test_check_of_a_silent_or_missing_service_is_retryable(transport):
    """Nothing was sent, so a check is never Unknown, and never raises."""
    for stalls in (True, False):
        for kind, harness in HARNESSES.items():
            with tcp.TcpServer(lambda connection, _: tcp.stall(connection)) as server:
                port = server.port if stalls else tcp.free_port()
                outcome = made(kind, **harness.settings(port, ca_pem(), 0.3)).check(transport)
            expected = type(None) if kind in UNCHECKED else Retryable
            if kind == "webpush":  # each browser has a service of its own, which is not asked
                expected = Accepted
            assert (kind, type(outcome)) == (kind, expected)
            close_all()
