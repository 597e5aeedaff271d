"""Email services: what goes over the wire, and whom it goes to."""

from typing import Any
from uuid import UUID

import orjson
import pytest
from pydantic import ValidationError

from messaging.providers.anymail import AnymailSettings
from messaging.providers.anymail.services import ServiceName
from rme.core.outcomes import Accepted, Misconfigured, Unknown
from rme.core.provider import Dispatch, Email
from rme.transport import Transport
from tests.fakes import http1, mail_services
from tests.fakes.http1 import Http1Server, Seen
from tests.messaging.providers.accounts import ATTEMPT
from tests.messaging.providers.anymail.scene import EMAIL, NAMES, UNSUBSCRIBE, account, ask


@pytest.mark.parametrize("service", NAMES)
def test_accepted_message_has_the_id_of_the_service(
    transport: Transport, service: ServiceName
) -> None:
    status, body, headers, named = mail_services.TAKEN[service]
    outcome, seen = ask(transport, service, status, body, headers)
    assert isinstance(outcome, Accepted)
    if named:
        assert outcome == Accepted(named)
    (request,) = seen
    assert request.method == "POST"
    text = request.body.decode()
    assert str(ATTEMPT) in text
    assert "evil@x.test" not in "".join(value for _, value in request.headers)


def test_every_service_has_its_answer() -> None:
    assert sorted(mail_services.TAKEN) == NAMES


@pytest.mark.parametrize("service", sorted(set(NAMES) - {"mailgun"}))
def test_a_payload_holds_the_whole_email(transport: Transport, service: ServiceName) -> None:
    _, (seen,) = ask(transport, service, 200)
    text = orjson.dumps(orjson.loads(seen.body)).decode()  # without \u escapes
    for part in ("Hello X: y", "Hi ? text", "<p>Hi html</p>", *UNSUBSCRIBE.values()):
        assert part in text
    assert seen.header("Content-Type") == "application/json"


def test_mailguns_form_holds_the_whole_email(transport: Transport) -> None:
    from urllib.parse import parse_qs

    _, (seen,) = ask(transport, "mailgun", 200)
    form = {name: value for name, (value,) in parse_qs(seen.body.decode()).items()}
    assert seen.path == "/v1/y.test/messages"
    assert seen.header("Authorization") == "Basic YXBpOmtleS1vZi10aGUtYWNjb3VudA=="
    assert form == {
        "from": '"Ann \\"Ü\\", Co Bcc: evil@x.test" <from@y.test>',
        "to": '"To, Me" <to@x.test>',
        "subject": "Hello X: y",
        "text": "Hi ? text",
        "html": "<p>Hi html</p>",
        "h:List-Unsubscribe": UNSUBSCRIBE["List-Unsubscribe"],
        "h:List-Unsubscribe-Post": UNSUBSCRIBE["List-Unsubscribe-Post"],
        "v:rme_attempt": str(ATTEMPT),
    }


def test_postmarks_payload_word_for_word(transport: Transport) -> None:
    _, (seen,) = ask(transport, "postmark", 200)
    assert seen.path == "/v1/email"
    assert seen.header("X-Postmark-Server-Token") == "key-of-the-account"
    assert orjson.loads(seen.body) == {
        "From": '"Ann \\"Ü\\", Co Bcc: evil@x.test" <from@y.test>',
        "To": '"To, Me" <to@x.test>',
        "Subject": "Hello X: y",
        "TextBody": "Hi ? text",
        "HtmlBody": "<p>Hi html</p>",
        "Headers": [{"Name": name, "Value": value} for name, value in UNSUBSCRIBE.items()],
        "Metadata": {"rme_attempt": str(ATTEMPT)},
    }


def test_resend_takes_an_attempt_once(transport: Transport) -> None:
    _, (seen,) = ask(transport, "resend", 200)
    assert seen.header("Idempotency-Key") == str(ATTEMPT)


def test_unwritable_message_fails_alone(transport: Transport) -> None:
    with Http1Server(
        lambda c, _: http1.respond(c, 200, mail_services.TAKEN["postmark"][1])
    ) as server:
        own = account("postmark", base_url=server.url)
        emails = [
            EMAIL,
            Email("no address", "from@y.test", "", "s", "t"),
            Email("to@x.test\r\nX: y", "from@y.test", "", "s", "t"),
            EMAIL,
        ]
        outcomes = own.send(
            [Dispatch(str(UUID(int=n)), email) for n, email in enumerate(emails, start=1)],
            transport,
        )
        assert len(server.seen) == 2
    unwritable = "the provider cannot write this message"
    assert [getattr(o, "reason", "") for o in outcomes] == ["", unwritable, unwritable, ""]


def test_messages_of_a_window_are_sent_in_parallel(transport: Transport) -> None:
    import threading

    together = threading.Barrier(5, timeout=5)

    def answer(connection: Any, seen: Seen) -> None:
        together.wait()  # nobody is answered before all are here
        http1.respond(connection, 200, mail_services.TAKEN["postmark"][1])

    with Http1Server(answer) as server:
        own = account("postmark", base_url=server.url)
        outcomes = own.send([Dispatch(str(UUID(int=n)), EMAIL) for n in range(1, 6)], transport)
    assert outcomes == [Accepted("b7bc2f4a")] * 5


def test_a_redirect_is_not_followed(transport: Transport) -> None:
    with Http1Server() as other:
        outcome, _ = ask(transport, "postmark", 307, b"", {"Location": f"{other.url}x"})
    assert (outcome, other.seen) == (Unknown("unexpected answer: 307"), [])


def test_custom_base_url_uses_the_checked_transport() -> None:
    transport = Transport()
    own = account("postmark", base_url="https://169.254.169.254/latest")
    (outcome,) = own.send([Dispatch(str(ATTEMPT), EMAIL)], transport)
    transport.close()
    assert isinstance(outcome, Misconfigured)


@pytest.mark.parametrize("service", NAMES)
def test_default_address_is_that_of_the_service(service: ServiceName) -> None:
    request = account(service).request(Dispatch(str(ATTEMPT), EMAIL))
    hosts = {
        "brevo": "api.brevo.com",
        "mailersend": "api.mailersend.com",
        "mailgun": "api.mailgun.net",
        "mailjet": "api.mailjet.com",
        "mailtrap": "send.api.mailtrap.io",
        "mandrill": "mandrillapp.com",
        "postal": "postal.example",
        "postmark": "api.postmarkapp.com",
        "resend": "api.resend.com",
        "scaleway": "api.scaleway.com",
        "sendgrid": "api.sendgrid.com",
        "sparkpost": "api.sparkpost.com",
        "unisender_go": "go1.example",
    }
    assert request.url.startswith(f"https://{hosts[service]}/")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"service": "mailjet", "api_key": "k"}, "mailjet needs secret_key"),
        ({"service": "postal", "api_key": "k"}, "postal needs base_url"),
        ({"service": "scaleway", "api_key": "k"}, "scaleway needs project_id"),
        ({"service": "unisender_go", "api_key": "k"}, "unisender_go needs base_url"),
        ({"service": "postmark", "api_key": ""}, "postmark needs api_key"),
        ({"service": "postmark", "api_key": "k\nX: y"}, "a character that isn't allowed"),
        ({"service": "brevo", "api_key": "k", "subaccount": "7"}, "brevo has no subaccount"),
        ({"service": "brevo", "api_key": "k", "callback_secret": "short:one"}, "user:password"),
        ({"service": "resend", "api_key": "k", "callback_secret": "x"}, "like whsec_"),
        ({"service": "sendgrid", "api_key": "k", "callback_secret": "x"}, "isn't a signing key"),
        (
            {
                "service": "postal",
                "api_key": "k",
                "base_url": "https://p.example",
                "callback_secret": "x",
            },
            "isn't a signing key",
        ),
        ({"service": "mailgun", "api_key": "k", "callback_secret": "ü"}, "isn't a signing key"),
        (
            {"service": "scaleway", "api_key": "k", "project_id": "p", "callback_secret": "x"},
            "has no callback_secret",
        ),
        (
            {
                "service": "scaleway",
                "api_key": "k",
                "project_id": "p",
                "base_url": "https://x.example/{region.x}",
            },
            "should match pattern",
        ),
        ({"service": "pigeon", "api_key": "k"}, "Input should be"),
    ],
)
def test_unworkable_settings_are_rejected(given: dict[str, str], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        AnymailSettings.model_validate(given)


def test_settings_show_no_secret() -> None:
    own = account("mailjet", callback_secret="rme:a-very-secret-password")
    shown = f"{own.settings!r} {own.settings}"
    assert not any(secret in shown for secret in ("key-of-the-account", "second", "very-secret"))
