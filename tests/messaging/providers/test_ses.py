"""Amazon SES: what goes over the wire, what its answers mean, and whom of SNS it believes."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest
from pydantic import ValidationError

from messaging.providers.base import Callback, Dispatch, Email, Report, UnknownCode
from messaging.providers.ses import Ses, SesSettings
from rme.core import ids
from rme.core.cache import TtlCache
from rme.core.outcomes import Accepted, Outcome, Retryable, Unknown
from rme.core.transport import Transport
from tests.fakes import http1, sns
from tests.fakes.http1 import Http1Server, Seen
from tests.fakes.providers import Call
from tests.fakes.sns import TOPIC, Sns
from tests.fakes.tls import ca_pem
from tests.messaging.providers.accounts import ATTEMPT, CONTENT, DEAD, LATER, SET_UP, kind_of

LETTER = Email(
    "to@x.test",
    "from@y.test",
    "Änn\r\nBcc: evil@x.test",
    "Hello\nX: y",
    "Hi \ud800",
    "<p>Hi</p>",
    headers={"List-Unsubscribe": "<https://rme.example/p/u/x>"},
)
NOBODY_KNOWS = (Unknown,)


def account(transport: Transport | None = None, **given: Any) -> Ses:
    settings = {
        "region": "eu-west-1",
        "access_key_id": "AKIDEXAMPLEEXAMPLE00",
        "secret_access_key": "very-secret",
        "configuration_set": "rme",
        "topic_arn": TOPIC,
        **given,
    }
    made = SesSettings.model_validate(settings)
    return Ses(made, lambda: transport) if transport else Ses(made)


def ask(
    transport: Transport, status: int, body: bytes = b"", headers: dict[str, str] | None = None
) -> tuple[Outcome, Seen]:
    with Http1Server(lambda c, _: http1.respond(c, status, body, headers)) as server:
        (outcome,) = account(base_url=server.url).send([Dispatch(str(ATTEMPT), LETTER)], transport)
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


def test_the_host_that_is_signed_is_the_host_that_is_called(transport: Transport) -> None:
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
        (400, "MailFromDomainNotVerifiedException", "x", SET_UP),
        (404, "NotFoundException", "Configuration set <rme> does not exist.", SET_UP),
        (403, "SignatureDoesNotMatch", "x", SET_UP),
        (403, "UnrecognizedClientException", "x", SET_UP),
        (400, "MessageRejected", "Email address is not verified: from@y.test", SET_UP),
        (400, "MessageRejected", "Address blacklisted or virus", CONTENT),
        (400, "BadRequestException", "Missing final '@domain' in address", DEAD),
        (400, "BadRequestException", "Domain contains illegal character", DEAD),
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
def test_an_acceptance_without_an_id_is_none(transport: Transport, body: bytes) -> None:
    assert isinstance(ask(transport, 200, body)[0], Unknown)


def test_retry_after_is_read(transport: Transport) -> None:
    outcome, _ = ask(transport, 429, b"{}", {"Retry-After": "7"})
    assert isinstance(outcome, Retryable)
    assert outcome.retry_after == 7.0


@pytest.mark.parametrize(
    ("given", "ses", "topics"),
    [
        (
            {},
            "https://email.eu-west-1.amazonaws.com",
            "https://sns.eu-west-1.amazonaws.com",
        ),
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
def test_settings_that_cannot_work_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        account(**given)


# --- reports --------------------------------------------------------------------------------------


@pytest.fixture
def topics() -> Iterator[Sns]:
    TtlCache.clear_all()
    with Sns() as server:
        yield server


def heard(topics: Sns, transport: Transport, **given: Any) -> Ses:
    return account(transport, sns_url=topics.origin, ca_pem=ca_pem(), **given)


def arrived(call: Call, later: timedelta = timedelta()) -> Callback:
    moment = datetime.now(UTC) + later
    return Callback("https://rme.example/hooks/one", "POST", "", call.headers, call.body, moment)


def event(kind: str = "Delivery", attempt: UUID | None = None, **more: Any) -> dict[str, Any]:
    named = str(attempt or ids.new_id())
    return {"eventType": kind, "mail": {"messageId": "1", "tags": {"rme_attempt": [named]}}, **more}


@pytest.mark.parametrize("version", ["1", "2"])
def test_what_sns_signed_is_authentic(topics: Sns, transport: Transport, version: str) -> None:
    own = heard(topics, transport)
    for _ in range(3):
        call = sns.signed(topics.notification(event(), SignatureVersion=version))
        assert own.authentic(arrived(call))
    assert [seen.path for seen in topics.seen] == [sns.CERTIFICATE]  # fetched once


@pytest.mark.parametrize(
    "after",
    [
        {"Message": "{}"},
        {"MessageId": "x"},
        {"Timestamp": "2026-01-01T00:00:00Z"},
        {"TopicArn": "arn:aws:sns:eu-west-1:123456789012:other"},
        {"Type": "UnsubscribeConfirmation"},
        {"Subject": "x"},
        {"SignatureVersion": "3"},
        {"SignatureVersion": "1"},
        {"Signature": ""},
        {"Signature": "AAAA"},
        {"Signature": 7},
        {"SigningCertURL": None},
        {"SigningCertURL": "https://evil.example" + sns.CERTIFICATE},
        {"SigningCertURL": "{}.evil.example" + sns.CERTIFICATE},
        {"SigningCertURL": "{}@evil.example" + sns.CERTIFICATE},
        {"SigningCertURL": "{}/other.pem"},
        {"SigningCertURL": "{}/../x" + sns.CERTIFICATE},
        {"SigningCertURL": "{}" + sns.CERTIFICATE + "?x"},
    ],
    ids=str,
)
def test_a_changed_message_is_not_authentic(
    topics: Sns, transport: Transport, after: dict[str, Any]
) -> None:
    filled = {
        name: value.replace("{}", topics.origin)
        if name == "SigningCertURL" and isinstance(value, str)
        else value
        for name, value in after.items()
    }
    call = sns.signed(topics.notification(event()), **filled)
    assert not heard(topics, transport).authentic(arrived(call))
    assert {seen.path for seen in topics.seen} <= {sns.CERTIFICATE}


def test_another_key_signs_nothing(topics: Sns, transport: Transport) -> None:
    call = sns.signed(topics.notification(event()), key=1)
    assert not heard(topics, transport).authentic(arrived(call))


def test_another_topic_is_not_heard_whoever_signed(topics: Sns, transport: Transport) -> None:
    other = "arn:aws:sns:eu-west-1:999999999999:theirs"
    call = sns.signed(topics.notification(event(), TopicArn=other))
    assert not heard(topics, transport).authentic(arrived(call))
    own = sns.signed(topics.notification(event()))
    assert not heard(topics, transport, topic_arn="").authentic(arrived(own))
    assert topics.seen == []  # nothing is fetched for a stranger


def test_a_message_of_long_ago_is_a_replay(topics: Sns, transport: Transport) -> None:
    own, call = heard(topics, transport), sns.signed(topics.notification(event()))
    assert own.authentic(arrived(call, timedelta(minutes=110)))
    assert not own.authentic(arrived(call, timedelta(minutes=130)))
    assert not own.authentic(arrived(call, -timedelta(minutes=10)))


@pytest.mark.parametrize("body", [b"", b"junk", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END"])
def test_a_certificate_that_is_none_vouches_for_nothing(
    topics: Sns, transport: Transport, body: bytes
) -> None:
    topics.body = body
    call = sns.signed(topics.notification(event()))
    assert not heard(topics, transport).authentic(arrived(call))


def test_a_subscription_to_our_topic_is_confirmed(topics: Sns, transport: Transport) -> None:
    own, callback = heard(topics, transport), arrived(sns.signed(topics.confirmation()))
    assert own.authentic(callback)
    own.confirm(callback)
    assert topics.seen[-1].path == (
        f"/?Action=ConfirmSubscription&TopicArn={TOPIC}&Token=2336412f37"
    )
    assert own.read(callback) == []


@pytest.mark.parametrize(
    "url",
    ["https://evil.example/?Action=ConfirmSubscription&Token=1", "{}/?Action=Unsubscribe&x=1", ""],
)
def test_no_other_address_is_fetched(topics: Sns, transport: Transport, url: str) -> None:
    message = topics.confirmation()
    message["SubscribeURL"] = url.replace("{}", topics.origin)
    heard(topics, transport).confirm(arrived(sns.signed(message)))
    assert topics.seen == []


BOUNCE = {"bouncedRecipients": [{"emailAddress": "to@x.test", "diagnosticCode": "550 to@x.test"}]}


@pytest.mark.parametrize(
    ("kind", "more", "expected"),
    [
        ("Send", {}, ("sent", None, False)),
        ("Delivery", {}, ("delivered", None, False)),
        (
            "DeliveryDelay",
            {"deliveryDelay": {"delayType": "MailboxFull"}},
            ("deferred", "MailboxFull", False),
        ),
        (
            "Bounce",
            {"bounce": {"bounceType": "Permanent", "bounceSubType": "General", **BOUNCE}},
            ("bounced", "Permanent General 550 …", False),
        ),
        (
            "Bounce",
            {"bounce": {"bounceType": "Transient", "bounceSubType": "MailboxFull"}},
            ("failed", "Transient MailboxFull", True),
        ),
        (
            "Complaint",
            {"complaint": {"complaintFeedbackType": "abuse"}},
            ("complained", "abuse", False),
        ),
        ("Reject", {"reject": {"reason": "Bad content"}}, ("failed", "Bad content", False)),
        ("Rendering Failure", {"failure": {"errorMessage": "x"}}, ("failed", "x", False)),
        ("Open", {"open": {"userAgent": "Mozilla/5.0 (X11) Firefox"}}, ("open", None, False)),
        ("Click", {"click": {"link": "https://x"}}, ("click", None, False)),
    ],
)
def test_what_ses_reports(
    kind: str, more: dict[str, Any], expected: tuple[str, str | None, bool], topics: Sns
) -> None:
    attempt = ids.new_id()
    call = sns.signed(topics.notification(event(kind, attempt, **more)))
    word, reason, soft = expected
    assert account().read(arrived(call)) == [Report(attempt, word, reason, soft=soft)]


def test_a_machine_that_opened_is_told(topics: Sns) -> None:
    opened = {"userAgent": "x (via ggpht.com GoogleImageProxy)"}
    call = sns.signed(topics.notification(event("Open", open=opened)))
    (said,) = account().read(arrived(call))
    assert isinstance(said, Report)
    assert said.machine is True


def test_an_unknown_event_is_told_as_one(topics: Sns) -> None:
    call = sns.signed(topics.notification(event("Abduction")))
    assert account().read(arrived(call)) == [UnknownCode("Abduction")]


@pytest.mark.parametrize(
    "message",
    [
        "Successfully validated SNS topic for Amazon SES event publishing.",
        "",
        "[]",
        "7",
        '{"eventType": {}}',
        '{"eventType": "Bounce", "bounce": 7, "mail": []}',
        '{"eventType": "Delivery", "mail": {"tags": {"rme_attempt": "x"}}}',
        '{"eventType": "Delivery", "mail": {"tags": {"rme_attempt": [7]}}}',
        "\ud800",
    ],
)
def test_what_is_not_ours_is_no_report(topics: Sns, message: str) -> None:
    said = {**topics.notification("x"), "Message": message.encode(errors="replace").decode()}
    assert account().read(arrived(sns.signed(said))) == []
