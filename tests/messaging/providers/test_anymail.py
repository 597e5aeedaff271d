"""Email services: what goes over the wire, and what their answers mean."""

from typing import Any
from uuid import UUID

import orjson
import pytest
from pydantic import ValidationError

from messaging.providers.anymail import Anymail, AnymailSettings
from messaging.providers.anymail.services import SERVICES, ServiceName
from messaging.providers.base import Dispatch, Email
from rme.core.outcomes import Accepted, Misconfigured, Outcome, Rejected, Retryable, Unknown
from rme.core.transport import Transport
from tests.fakes import http1, mail_services
from tests.fakes.http1 import Http1Server, Seen
from tests.messaging.providers.accounts import (
    ATTEMPT,
    CONTENT,
    DEAD,
    LATER,
    RECIPIENT,
    SET_UP,
    kind_of,
)

NAMES = sorted(SERVICES)
NOBODY_KNOWS = (Unknown,)
UNSUBSCRIBE = {
    "List-Unsubscribe": "<https://rme.example/p/u/x>",
    "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
}
LETTER = Email(
    "to@x.test",
    "from@y.test",
    'Ann "Ü", Co\r\nBcc: evil@x.test',
    "Hello\nX: y",
    "Hi \ud800 text",
    "<p>Hi html</p>",
    to_name="To, Me",
    headers=UNSUBSCRIBE,
)


def account(service: ServiceName, **given: str) -> Anymail:
    return Anymail(AnymailSettings.model_validate({**mail_services.settings(service), **given}))


def ask(
    transport: Transport,
    service: ServiceName,
    status: int,
    body: bytes = b"",
    headers: dict[str, str] | None = None,
    letter: Email = LETTER,
) -> tuple[Outcome, list[Seen]]:
    """Send one email to a server that gives this answer."""
    with Http1Server(lambda c, _: http1.respond(c, status, body, headers)) as server:
        own = account(service, base_url=f"{server.url}v1")
        (outcome,) = own.send([Dispatch(str(ATTEMPT), letter)], transport)
    return outcome, server.seen


@pytest.mark.parametrize("service", NAMES)
def test_what_a_service_takes_is_accepted_by_its_id(
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
    said = orjson.dumps(orjson.loads(seen.body)).decode()  # without \u escapes
    for part in ("Hello X: y", "Hi ? text", "<p>Hi html</p>", *UNSUBSCRIBE.values()):
        assert part in said
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


@pytest.mark.parametrize(
    ("service", "status", "body", "expected"),
    [
        ("brevo", 400, b'{"code":"invalid_parameter","message":"email is not valid in to"}', DEAD),
        ("brevo", 400, b'{"code":"invalid_parameter","message":"sender is not valid"}', SET_UP),
        ("brevo", 400, b'{"code":"not_enough_credits","message":"no credits"}', SET_UP),
        ("brevo", 400, b'{"code":"missing_parameter","message":"htmlContent"}', CONTENT),
        ("mailersend", 422, b'{"message":"x","errors":{"to.0.email":["must be valid"]}}', DEAD),
        ("mailersend", 422, b'{"errors":{"from.email":["verified. #MS42207"]}}', SET_UP),
        ("mailersend", 422, b'{"errors":{"subject":["is required"]}}', CONTENT),
        (
            "mailersend",
            202,
            b'{"message":"m","warnings":[{"type":"ALL_SUPPRESSED","recipients":'
            b'[{"email":"to@x.test","name":"","reasons":["hard_bounced"]}]}]}',
            RECIPIENT,
        ),
        ("mailgun", 400, b'{"message":"to parameter is not a valid address. check"}', DEAD),
        ("mailgun", 400, b'{"message":"from parameter is not a valid address"}', SET_UP),
        ("mailgun", 400, b'{"message":"Sandbox subdomains are for test purposes"}', SET_UP),
        ("mailgun", 404, b'{"message":"Domain not found: y.test"}', SET_UP),
        ("mailgun", 200, b"Mailgun Magnificent API", NOBODY_KNOWS),
        (
            "mailjet",
            400,
            b'{"Messages":[{"Status":"error","Errors":[{"ErrorCode":"mj-0013",'
            b'"ErrorRelatedTo":["To[0].Email"],"ErrorMessage":"\\"x\\" is invalid"}]}]}',
            DEAD,
        ),
        (
            "mailjet",
            403,
            b'{"Messages":[{"Errors":[{"ErrorCode":"send-0008","ErrorRelatedTo":["From"]}]}]}',
            SET_UP,
        ),
        ("mailjet", 400, b'{"Messages":[{"Errors":[{"ErrorCode":"send-0003"}]}]}', CONTENT),
        ("mailtrap", 400, b'{"success":false,"errors":["\'to\' address is invalid"]}', DEAD),
        ("mailtrap", 400, b'{"errors":["\'subject\' is required"]}', CONTENT),
        ("mailtrap", 401, b'{"errors":["Unauthorized"]}', SET_UP),
        ("mandrill", 500, b'{"status":"error","code":-1,"name":"Invalid_Key"}', SET_UP),
        ("mandrill", 500, b'{"status":"error","code":-2,"name":"ValidationError"}', CONTENT),
        ("mandrill", 500, b'{"status":"error","name":"GeneralError"}', NOBODY_KNOWS),
        ("mandrill", 200, b'[{"email":"to@x.test","status":"invalid"}]', DEAD),
        (
            "mandrill",
            200,
            b'[{"email":"to@x.test","status":"rejected","reject_reason":"hard-bounce"}]',
            RECIPIENT,
        ),
        ("postal", 200, b'{"status":"error","data":{"code":"InvalidServerAPIKey"}}', SET_UP),
        ("postal", 200, b'{"status":"error","data":{"code":"UnauthenticatedFromAddress"}}', SET_UP),
        ("postal", 200, b'{"status":"parameter-error","data":{}}', CONTENT),
        ("postmark", 422, b'{"ErrorCode":406,"Message":"Found inactive addresses"}', RECIPIENT),
        ("postmark", 422, b'{"ErrorCode":300,"Message":"Invalid \'To\' address"}', DEAD),
        ("postmark", 422, b'{"ErrorCode":300,"Message":"Invalid \'From\' address"}', SET_UP),
        ("postmark", 422, b'{"ErrorCode":300,"Message":"Provide either email"}', CONTENT),
        ("postmark", 422, b'{"ErrorCode":405,"Message":"out of credits"}', SET_UP),
        ("postmark", 422, b'{"ErrorCode":4059,"Message":"x"}', CONTENT),
        ("postmark", 401, b'{"ErrorCode":10,"Message":"token"}', SET_UP),
        ("postmark", 503, b'{"ErrorCode":100,"Message":"Maintenance"}', LATER),
        ("resend", 422, b'{"name":"validation_error","message":"Invalid `to` field."}', DEAD),
        ("resend", 422, b'{"name":"invalid_from_address","message":"x"}', SET_UP),
        ("resend", 403, b'{"name":"validation_error","message":"domain not verified"}', SET_UP),
        ("resend", 429, b'{"name":"daily_quota_exceeded"}', LATER),
        ("resend", 409, b'{"name":"concurrent_idempotent_requests"}', NOBODY_KNOWS),
        ("scaleway", 403, b'{"type":"permissions_denied"}', SET_UP),
        ("sendgrid", 400, b'{"errors":[{"field":"personalizations.0.to.0.email"}]}', DEAD),
        ("sendgrid", 400, b'{"errors":[{"field":"from.email","message":"x"}]}', SET_UP),
        ("sendgrid", 400, b'{"errors":[{"field":"subject"}]}', CONTENT),
        ("sendgrid", 413, b"", CONTENT),
        ("sparkpost", 400, b'{"errors":[{"message":"At least one","code":"5002"}]}', DEAD),
        ("sparkpost", 400, b'{"errors":[{"message":"Invalid domain","code":"7001"}]}', SET_UP),
        ("sparkpost", 422, b'{"errors":[{"message":"required field","code":"1400"}]}', CONTENT),
        ("sparkpost", 420, b'{"errors":[{"message":"Exceed Sending Limit"}]}', LATER),
        (
            "sparkpost",
            200,
            b'{"results":{"total_rejected_recipients":1,"total_accepted_recipients":0,"id":"1"}}',
            RECIPIENT,
        ),
        ("unisender_go", 400, b'{"status":"error","code":114,"message":"key"}', SET_UP),
        (
            "unisender_go",
            200,
            b'{"job_id":"1","emails":[],"failed_emails":{"to@x.test":"invalid"}}',
            DEAD,
        ),
    ],
)
def test_refusals(
    transport: Transport, service: ServiceName, status: int, body: bytes, expected: object
) -> None:
    assert (
        kind_of(ask(transport, service, status, body, {"Content-Type": "application/json"})[0])
        == expected
    )


@pytest.mark.parametrize("service", NAMES)
@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (401, b"", SET_UP),
        (402, b"", SET_UP),
        (403, b"{}", SET_UP),
        (404, b"<html>", SET_UP),
        (429, b"", LATER),
        (503, b"", LATER),
        (400, b"junk", CONTENT),
        (422, b"[[[[]]]]", CONTENT),
        (302, b"", NOBODY_KNOWS),
        (500, b"", NOBODY_KNOWS),
        (502, b"<html>", NOBODY_KNOWS),
    ],
)
def test_a_status_alone(
    transport: Transport, service: ServiceName, status: int, body: bytes, expected: object
) -> None:
    assert kind_of(ask(transport, service, status, body)[0]) == expected


@pytest.mark.parametrize("service", sorted(set(NAMES) - {"sendgrid"}))
@pytest.mark.parametrize(
    "body", [b"junk", b"[]", b"{}", b"null", b"7", b'{"id": []', b"\xff\xfe", b'{"Messages": 7}']
)
def test_an_acceptance_that_makes_no_sense_is_none(
    transport: Transport, service: ServiceName, body: bytes
) -> None:
    outcome, _ = ask(transport, service, 200, body, {"Content-Type": "application/json"})
    assert not isinstance(outcome, Accepted)
    assert isinstance(outcome, Unknown | Rejected)


@pytest.mark.parametrize("service", NAMES)
def test_retry_after_is_read(transport: Transport, service: ServiceName) -> None:
    outcome, _ = ask(transport, service, 429, b"{}", {"Retry-After": "7"})
    assert isinstance(outcome, Retryable)
    assert outcome.retry_after == 7.0


def test_a_reason_names_the_code_and_no_address(transport: Transport) -> None:
    body = b'{"ErrorCode":406,"Message":"inactive: to@x.test, other@x.test"}'
    outcome, _ = ask(transport, "postmark", 422, body)
    assert outcome == Rejected("refused: 422 406 inactive: … …")


def test_what_cannot_be_written_fails_alone(transport: Transport) -> None:
    with Http1Server(
        lambda c, _: http1.respond(c, 200, mail_services.TAKEN["postmark"][1])
    ) as server:
        own = account("postmark", base_url=server.url)
        letters = [
            LETTER,
            Email("no address", "from@y.test", "", "s", "t"),
            Email("to@x.test\r\nX: y", "from@y.test", "", "s", "t"),
            LETTER,
        ]
        outcomes = own.send(
            [Dispatch(str(UUID(int=n)), letter) for n, letter in enumerate(letters, start=1)],
            transport,
        )
        assert len(server.seen) == 2
    unwritable = "the provider cannot write this message"
    assert [getattr(o, "reason", "") for o in outcomes] == ["", unwritable, unwritable, ""]


def test_a_window_goes_side_by_side(transport: Transport) -> None:
    import threading

    together = threading.Barrier(5, timeout=5)

    def answer(connection: Any, seen: Seen) -> None:
        together.wait()  # nobody is answered before all are here
        http1.respond(connection, 200, mail_services.TAKEN["postmark"][1])

    with Http1Server(answer) as server:
        own = account("postmark", base_url=server.url)
        outcomes = own.send([Dispatch(str(UUID(int=n)), LETTER) for n in range(1, 6)], transport)
    assert outcomes == [Accepted("b7bc2f4a")] * 5


def test_a_redirect_is_not_followed(transport: Transport) -> None:
    with Http1Server() as other:
        outcome, _ = ask(transport, "postmark", 307, b"", {"Location": f"{other.url}x"})
    assert (outcome, other.seen) == (Unknown("unexpected answer: 307"), [])


def test_an_own_address_goes_through_the_checked_transport() -> None:
    transport = Transport()
    own = account("postmark", base_url="https://169.254.169.254/latest")
    (outcome,) = own.send([Dispatch(str(ATTEMPT), LETTER)], transport)
    transport.close()
    assert isinstance(outcome, Misconfigured)


@pytest.mark.parametrize("service", NAMES)
def test_the_usual_address_is_the_services_own(service: ServiceName) -> None:
    request = account(service).request(Dispatch(str(ATTEMPT), LETTER))
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
    ("given", "told"),
    [
        ({"service": "mailjet", "api_key": "k"}, "mailjet needs secret_key"),
        ({"service": "postal", "api_key": "k"}, "postal needs base_url"),
        ({"service": "scaleway", "api_key": "k"}, "scaleway needs project_id"),
        ({"service": "unisender_go", "api_key": "k"}, "unisender_go needs base_url"),
        ({"service": "postmark", "api_key": ""}, "postmark needs api_key"),
        ({"service": "postmark", "api_key": "k\nX: y"}, "a character that no key has"),
        ({"service": "brevo", "api_key": "k", "subaccount": "7"}, "brevo has no subaccount"),
        ({"service": "brevo", "api_key": "k", "callback_secret": "short:one"}, "user:password"),
        ({"service": "resend", "api_key": "k", "callback_secret": "x"}, "like whsec_"),
        ({"service": "sendgrid", "api_key": "k", "callback_secret": "x"}, "no key"),
        (
            {
                "service": "postal",
                "api_key": "k",
                "base_url": "https://p.example",
                "callback_secret": "x",
            },
            "no key",
        ),
        ({"service": "mailgun", "api_key": "k", "callback_secret": "ü"}, "no key"),
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
def test_settings_that_cannot_work_are_refused(given: dict[str, str], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        AnymailSettings.model_validate(given)


def test_settings_show_no_secret() -> None:
    own = account("mailjet", callback_secret="rme:a-very-secret-password")
    shown = f"{own.settings!r} {own.settings}"
    assert not any(secret in shown for secret in ("key-of-the-account", "second", "very-secret"))
