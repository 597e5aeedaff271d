"""Amazon SES: what SNS brings, and who signed it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from messaging.providers.ses import Ses
from rme.core import ids
from rme.core.cache import TtlCache
from rme.core.outcomes import OptOut
from rme.core.provider import CallbackRequest, DeliveryReceipt, UnknownCode
from rme.transport import Transport
from tests.fakes import sns
from tests.fakes.providers import Call
from tests.fakes.sns import TOPIC, Sns
from tests.fakes.tls import ca_pem
from tests.messaging.providers.ses_scene import account


@pytest.fixture
def topics() -> Iterator[Sns]:
    TtlCache.clear_all()
    with Sns() as server:
        yield server


def ses_of(topics: Sns, **given: Any) -> Ses:
    return account(sns_url=topics.origin, ca_pem=ca_pem(), **given)


def arrived(call: Call, later: timedelta = timedelta()) -> CallbackRequest:
    moment = datetime.now(UTC) + later
    return CallbackRequest(
        "https://rme.example/hooks/one", "POST", "", call.headers, call.body, moment
    )


def event(kind: str = "Delivery", attempt: UUID | None = None, **more: Any) -> dict[str, Any]:
    named = str(attempt or ids.new_id())
    return {"eventType": kind, "mail": {"messageId": "1", "tags": {"rme_attempt": [named]}}, **more}


@pytest.mark.parametrize("version", ["1", "2"])
def test_notification_signed_by_sns_is_authentic(
    topics: Sns, transport: Transport, version: str
) -> None:
    own = ses_of(topics)
    for _ in range(3):
        call = sns.signed(topics.notification(event(), SignatureVersion=version))
        assert own.is_authentic(arrived(call), transport)
    assert [seen.path for seen in topics.seen] == [sns.CERTIFICATE]  # fetched once


@pytest.mark.promise("webhooks-2")
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
    assert not ses_of(topics).is_authentic(arrived(call), transport)
    assert {seen.path for seen in topics.seen} <= {sns.CERTIFICATE}


def test_signature_by_another_key_is_not_authentic(topics: Sns, transport: Transport) -> None:
    call = sns.signed(topics.notification(event()), key=1)
    assert not ses_of(topics).is_authentic(arrived(call), transport)


def test_another_topic_is_not_authentic_even_if_signed(topics: Sns, transport: Transport) -> None:
    other = "arn:aws:sns:eu-west-1:999999999999:theirs"
    call = sns.signed(topics.notification(event(), TopicArn=other))
    assert not ses_of(topics).is_authentic(arrived(call), transport)
    own = sns.signed(topics.notification(event()))
    assert not ses_of(topics, topic_arn="").is_authentic(arrived(own), transport)
    assert topics.seen == []  # nothing is fetched for a stranger


def test_old_message_is_rejected_as_a_replay(topics: Sns, transport: Transport) -> None:
    own, call = ses_of(topics), sns.signed(topics.notification(event()))
    assert own.is_authentic(arrived(call, timedelta(minutes=110)), transport)
    assert not own.is_authentic(arrived(call, timedelta(minutes=130)), transport)
    assert not own.is_authentic(arrived(call, -timedelta(minutes=10)), transport)


@pytest.mark.parametrize("body", [b"", b"junk", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END"])
def test_malformed_certificate_makes_no_call_authentic(
    topics: Sns, transport: Transport, body: bytes
) -> None:
    topics.body = body
    call = sns.signed(topics.notification(event()))
    assert not ses_of(topics).is_authentic(arrived(call), transport)


def test_a_subscription_to_our_topic_is_confirmed(topics: Sns, transport: Transport) -> None:
    own, callback = ses_of(topics), arrived(sns.signed(topics.confirmation()))
    assert own.is_authentic(callback, transport)
    own.confirm(callback, transport)
    assert topics.seen[-1].path == (
        f"/?Action=ConfirmSubscription&TopicArn={TOPIC}&Token=2336412f37"
    )
    assert own.read_callback(callback) == []


@pytest.mark.parametrize(
    "url",
    ["https://evil.example/?Action=ConfirmSubscription&Token=1", "{}/?Action=Unsubscribe&x=1", ""],
)
def test_no_other_address_is_fetched(topics: Sns, transport: Transport, url: str) -> None:
    message = topics.confirmation()
    message["SubscribeURL"] = url.replace("{}", topics.origin)
    ses_of(topics).confirm(arrived(sns.signed(message)), transport)
    assert topics.seen == []


def bounce(kind: str, subtype: str, reply: str) -> dict[str, Any]:
    recipients = [{"emailAddress": "to@x.test", "diagnosticCode": reply}]
    found = {"bounceType": kind, "bounceSubType": subtype, "bouncedRecipients": recipients}
    return {"bounce": found}


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
        ("Complaint", {"complaint": {}}, ("complained", None, False)),
        (
            "Bounce",
            {"bounce": {"bounceType": "Permanent", "bounceSubType": "OnAccountSuppressionList"}},
            ("bounced", "Permanent OnAccountSuppressionList", False),
        ),
        (
            "Bounce",
            {"bounce": {"bounceType": "Transient", "bounceSubType": "General"}},
            ("failed", "Transient General", True),
        ),
        (
            "Bounce",
            {"bounce": {"bounceType": "Transient", "bounceSubType": "ContentRejected"}},
            ("failed", "Transient ContentRejected", False),
        ),
        *(
            (
                "Bounce",
                bounce("Permanent", "General", reply),
                ("failed", f"Permanent General {reply}", soft),
            )
            for reply, soft in (
                ("smtp; 550 5.7.1 Blocked - see https://www.spamhaus.org/", False),
                ("smtp; 550 5.7.1 no", False),
                ("smtp; 550 5.1.0 Sender denied", False),
                ("smtp; 550 5.4.1 Recipient address rejected: Access denied", True),
                ("smtp; 552 5.2.2 mailbox full", True),
            )
        ),
        (
            "Bounce",
            bounce("Permanent", "General", "smtp; 550 5.1.1 user unknown"),
            ("bounced", "Permanent General smtp; 550 5.1.1 user unknown", False),
        ),
        ("Reject", {"reject": {"reason": "Bad content"}}, ("failed", "Bad content", False)),
        ("Rendering Failure", {"failure": {"errorMessage": "x"}}, ("failed", "x", False)),
        ("Open", {"open": {"userAgent": "Mozilla/5.0 (X11) Firefox"}}, ("open", None, False)),
        ("Click", {"click": {"link": "https://x"}}, ("click", None, False)),
    ],
)
def test_ses_report_is_read(
    kind: str, more: dict[str, Any], expected: tuple[str, str | None, bool], topics: Sns
) -> None:
    attempt = ids.new_id()
    call = sns.signed(topics.notification(event(kind, attempt, **more)))
    word, reason, soft = expected
    assert account().read_callback(arrived(call)) == [
        DeliveryReceipt(attempt, word, reason, soft=soft)
    ]


@pytest.mark.parametrize(
    ("kind", "more", "opt_out"),
    [
        (
            "Bounce",
            {"bounce": {"bounceType": "Permanent", "bounceSubType": "UnsubscribedRecipient"}},
            OptOut.UNSUBSCRIBED,
        ),
        (
            "Complaint",
            {"complaint": {"complaintSubType": "OnAccountSuppressionList"}},
            OptOut.COMPLAINT,
        ),
    ],
)
def test_mail_not_sent_by_ses_reports_the_opt_out(
    kind: str, more: dict[str, Any], opt_out: OptOut, topics: Sns
) -> None:
    attempt = ids.new_id()
    call = sns.signed(topics.notification(event(kind, attempt, **more)))
    (receipt,) = account().read_callback(arrived(call))
    assert isinstance(receipt, DeliveryReceipt)
    assert (receipt.type, receipt.soft, receipt.opt_out) == ("failed", False, opt_out)


@pytest.mark.parametrize("feedback", ["not-spam", "auth-failure"])
def test_feedback_other_than_a_complaint_is_ignored(feedback: str, topics: Sns) -> None:
    complaint = {"complaintFeedbackType": feedback}
    call = sns.signed(topics.notification(event("Complaint", complaint=complaint)))
    assert account().read_callback(arrived(call)) == []


def test_id_returned_by_ses_may_be_in_capitals(topics: Sns) -> None:
    attempt = ids.new_id()
    named = event()
    named["mail"]["tags"]["rme_attempt"] = [str(attempt).upper()]
    call = sns.signed(topics.notification(named))
    assert account().read_callback(arrived(call)) == [DeliveryReceipt(attempt, "delivered")]


def test_an_open_by_a_machine_is_recognized(topics: Sns) -> None:
    opened = {"userAgent": "x (via ggpht.com GoogleImageProxy)"}
    call = sns.signed(topics.notification(event("Open", open=opened)))
    (receipt,) = account().read_callback(arrived(call))
    assert isinstance(receipt, DeliveryReceipt)
    assert receipt.machine is True


def test_an_unknown_event_is_an_unknown_code(topics: Sns) -> None:
    call = sns.signed(topics.notification(event("Abduction")))
    assert account().read_callback(arrived(call)) == [UnknownCode("Abduction")]


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
def test_report_of_a_foreign_message_is_ignored(topics: Sns, message: str) -> None:
    notification = {
        **topics.notification("x"),
        "Message": message.encode(errors="replace").decode(),
    }
    assert account().read_callback(arrived(sns.signed(notification))) == []
