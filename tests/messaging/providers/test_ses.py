"""Amazon SES: what goes over the wire, and what its answers mean."""

from collections.abc import Iterator

import orjson
import pytest
from pydantic import ValidationError

from rme.core.cache import TtlCache
from rme.core.outcomes import Accepted, Outcome, Retryable, Unknown
from rme.core.provider import Dispatch, Email
from rme.transport import Transport
from tests.fakes import http1
from tests.fakes.http1 import Http1Server, Seen
from tests.fakes.sns import Sns
from tests.messaging.providers.accounts import (
    ATTEMPT,
    CONTENT,
    ELSEWHERE,
    LATER,
    MESSAGE_LATER,
    SET_UP,
    kind_of,
)
from tests.messaging.providers.ses_scene import account

EMAIL = Email(
    "to@x.test",
    "from@y.test",
    "Änn\r\nBcc: evil@x.test",
    "Hello\nX: y",
    "Hi \ud800",
    "<p>Hi</p>",
    headers={"List-Unsubscribe": "<https://rme.example/p/u/x>"},
)
NOBODY_KNOWS = (Unknown,)


def ask(
    transport: Transport, status: int, body: bytes = b"", headers: dict[str, str] | None = None
) -> tuple[Outcome, Seen]:
    with Http1Server(lambda c, _: http1.respond(c, status, body, headers)) as server:
        (outcome,) = account(base_url=server.url).send([Dispatch(str(ATTEMPT), EMAIL)], transport)
        (seen,) = server.seen
    return outcome, seen


def test_the_request_word_for_word(transport: Transport) -> None:
    outcome, seen = ask(transport, 200, b'{"MessageId": "0102-1"}')
    assert outcome == Accepted("0102-1")
    assert (seen.method, seen.path) == ("POST", "/v2/email/outbound-emails")
    authorization = seen.header("Authorization") or ""
    assert authorization.startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLEEXAMPLE00/")
    assert "/eu-west-1/ses/aws4_request, SignedHeaders=content-type;host;x-amz-date, " in (
        authorization
    )
    text = {"Charset": "UTF-8"}
    assert orjson.loads(seen.body) == {
        "FromEmailAddress": "=?utf-8?b?w4RubiBCY2M6IGV2aWxAeC50ZXN0?= <from@y.test>",
        "Destination": {"ToAddresses": ["to@x.test"]},
        "Content": {
            "Simple": {
                "Subject": {"Data": "Hello X: y", **text},
                "Body": {"Text": {"Data": "Hi ?", **text}, "Html": {"Data": "<p>Hi</p>", **text}},
                "Headers": [{"Name": "List-Unsubscribe", "Value": "<https://rme.example/p/u/x>"}],
            }
        },
        "EmailTags": [{"Name": "rme_attempt", "Value": str(ATTEMPT)}],
        "ConfigurationSetName": "rme",
    }


def test_signed_host_equals_the_called_host(transport: Transport) -> None:
    _, seen = ask(transport, 200)
    assert (seen.header("Host") or "").startswith("127.0.0.1:")


@pytest.mark.parametrize(
    ("status", "kind", "text", "expected"),
    [
        (429, "TooManyRequestsException", "Maximum sending rate exceeded.", LATER),
        (400, "ThrottlingException", "Daily message quota exceeded.", LATER),
        (400, "LimitExceededException", "quota", LATER),
        (400, "AccountSuspendedException", "x", SET_UP),
        (400, "SendingPausedException", "x", SET_UP),
        (400, "MailFromDomainNotVerifiedException", "x", MESSAGE_LATER),
        (404, "NotFoundException", "Configuration set <rme> does not exist.", SET_UP),
        (403, "SignatureDoesNotMatch", "x", SET_UP),
        (403, "UnrecognizedClientException", "x", SET_UP),
        (400, "MessageRejected", "Email address is not verified: from@y.test", MESSAGE_LATER),
        (400, "MessageRejected", "Address blacklisted or virus", CONTENT),
        (400, "BadRequestException", "Missing final '@domain' in address", ELSEWHERE),
        (400, "BadRequestException", "Domain contains illegal character", ELSEWHERE),
        (
            403,
            "AccessDeniedException",
            "User is not authorized to perform: ses:SendEmail on resource:"
            " arn:aws:ses:eu-west-1:123456789012:identity/mail.example",
            MESSAGE_LATER,
        ),
        (400, "BadRequestException", "Message too long", CONTENT),
        (403, "", "", SET_UP),
        (429, "", "", LATER),
        (503, "", "", LATER),
        (500, "InternalFailure", "", NOBODY_KNOWS),
        (302, "", "", NOBODY_KNOWS),
    ],
)
@pytest.mark.parametrize("in_header", [True, False])
def test_errors(
    transport: Transport, status: int, kind: str, text: str, expected: object, in_header: bool
) -> None:
    body = {"message": text} | ({} if in_header else {"__type": kind})
    headers = {"x-amzn-ErrorType": f"{kind}:http://internal"} if in_header and kind else None
    outcome, _ = ask(transport, status, orjson.dumps(body), headers)
    assert kind_of(outcome) == expected
    assert "y.test" not in getattr(outcome, "reason", "")


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"MessageId": {}}', b"\xff"])
def test_acceptance_without_an_id_is_unknown(transport: Transport, body: bytes) -> None:
    assert isinstance(ask(transport, 200, body)[0], Unknown)


def test_retry_after_is_read(transport: Transport) -> None:
    outcome, _ = ask(transport, 429, b"{}", {"Retry-After": "7"})
    assert isinstance(outcome, Retryable)
    assert outcome.retry_after == 7.0


@pytest.mark.parametrize(
    ("given", "ses", "topics"),
    [
        ({}, "https://email.eu-west-1.amazonaws.com", "https://sns.eu-west-1.amazonaws.com"),
        (
            {"topic_arn": "arn:aws:sns:us-east-1:123456789012:t"},
            "https://email.eu-west-1.amazonaws.com",
            "https://sns.us-east-1.amazonaws.com",
        ),
        (
            {"region": "cn-north-1", "topic_arn": ""},
            "https://email.cn-north-1.amazonaws.com.cn",
            "https://sns.cn-north-1.amazonaws.com.cn",
        ),
        (
            {"base_url": "", "sns_url": ""},
            "https://email.eu-west-1.amazonaws.com",
            "https://sns.eu-west-1.amazonaws.com",
        ),
    ],
)
def test_addresses_follow_from_the_region(given: dict[str, str], ses: str, topics: str) -> None:
    settings = account(**given).settings
    assert (settings.ses, settings.sns) == (ses, topics)


@pytest.mark.parametrize(
    "given",
    [
        {"region": "evil.example/"},
        {"topic_arn": "arn:aws:sns:evil.example/:123456789012:t"},
        {"topic_arn": "arn:aws:sqs:eu-west-1:123456789012:t"},
        {"access_key_id": "a b"},
        {"configuration_set": "a b"},
        {"base_url": "ftp://x"},
    ],
    ids=str,
)
def test_unworkable_settings_are_rejected(given: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        account(**given)


@pytest.fixture
def topics() -> Iterator[Sns]:
    TtlCache.clear_all()
    with Sns() as server:
        yield server
