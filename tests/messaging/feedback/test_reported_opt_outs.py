"""What providers know of bounces, complaints and opt-outs, from their signed calls to the lists."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import orjson
import pytest
from django.db import transaction

from messaging.consent import gate_lock
from messaging.delivery.accounts import CircuitState, circuits
from messaging.feedback import receipts
from messaging.feedback.receipts import AccountReceipt
from messaging.models import ConsentEntry, Delivery, Event, ProviderAccount, Suppression
from messaging.policy import organization_policy
from messaging.providers.ses import Ses
from rme.core.cache import TtlCache
from rme.core.db import clock
from rme.core.outcomes import OptOut
from rme.core.provider import DeliveryReceipt
from rme.transport import per_thread
from tests import factories
from tests.fakes import providers as fakes
from tests.fakes import sns
from tests.fakes.mail_events import MAKERS
from tests.fakes.sns import TOPIC, Sns
from tests.fakes.tls import ca_pem
from tests.messaging.consent.test_soft_bounces import earlier
from tests.messaging.feedback.mail_scene import MailScene
from tests.messaging.feedback.sms_scene import AccountScene, Scene, attempt, post, settle, state
from tests.rest import events, message, work

pytestmark = pytest.mark.django_db


def suppressed() -> list[tuple[str, str, str]]:
    return list(Suppression.objects.values_list("channel", "address", "reason"))


class SesScene(AccountScene):
    """One account of Amazon SES, and the topic by which it reports."""

    status, body = 200, b'{"MessageId": "m-1"}'

    def __init__(self, org: Any, topics: Sns) -> None:
        super().__init__(org)
        self.topics = topics

    def __enter__(self) -> "SesScene":
        self.server.__enter__()
        settings = {
            "region": "eu-west-1",
            "access_key_id": "AKIDEXAMPLEEXAMPLE00",
            "secret_access_key": "very-secret",
            "topic_arn": TOPIC,
            "base_url": self.server.url.rstrip("/"),
            "sns_url": self.topics.origin,
            "ca_pem": ca_pem(),
        }
        self.account = ProviderAccount.objects.create(
            organization=self.org,
            name="ses",
            kind=Ses.kind,
            channel="EMAIL",
            credentials=orjson.dumps(settings).decode(),
        )
        organization_policy.forget(self.org.pk)
        TtlCache.clear_all()
        return self

    def send(self, api: Any, person: Any = None) -> str:
        person = person or factories.contact(self.org, email="ada@x.example")
        answer = api.send(message(person))
        assert answer.status_code == 202, answer.content
        work(self.transport)
        return str(answer.json()["messageId"])

    def report(self, kind: str, **more: Any) -> None:
        """Let SES report on the last attempt, signed by SNS, and apply it."""
        mail = {"messageId": "m-1", "tags": {"rme_attempt": [str(attempt())]}}
        call = sns.signed(self.topics.notification({"eventType": kind, "mail": mail, **more}))
        assert post(self.account.public_id, call) == 200
        settle()


@pytest.fixture
def ses(org, settings) -> Iterator[SesScene]:
    settings.OUTBOUND_OPEN_HOSTS = ["localhost", "127.0.0.1"]
    per_thread._local.__dict__.clear()
    TtlCache.clear_all()
    with Sns() as topics, SesScene(org, topics) as scene:
        yield scene
    per_thread._local.__dict__.clear()


def bounce(kind: str, subtype: str, reply: str = "") -> dict[str, Any]:
    recipient = {"emailAddress": "ada@x.example", "diagnosticCode": reply}
    return {"bounceType": kind, "bounceSubType": subtype, "bouncedRecipients": [recipient]}


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("smtp; 550 5.1.1 user unknown", [("EMAIL", "ada@x.example", "HARD_BOUNCE")]),
        ("smtp; 550 5.7.1 Blocked - see https://www.spamhaus.org/", []),
        ("smtp; 550 5.7.1 no", []),
        ("smtp; 550 5.4.5 Daily user sending limit exceeded", []),
    ],
)
def test_permanent_bounce_suppresses_a_dead_mailbox_alone(api, ses, reply, expected):
    ses.send(api)
    ses.report("Bounce", bounce=bounce("Permanent", "General", reply))
    assert (state(), suppressed()) == ("FAILED", expected)


def test_not_spam_feedback_suppresses_nothing(api, ses):
    message_id = ses.send(api)
    ses.report("Delivery")
    ses.report("Complaint", complaint={"complaintFeedbackType": "not-spam"})
    assert (state(), suppressed()) == ("DELIVERED", [])
    assert events(message_id) == ["accepted", "sent", "delivered"]


def test_mail_not_sent_by_ses_is_failed(api, ses):
    message_id = ses.send(api)
    ses.report("Complaint", complaint={"complaintSubType": "OnAccountSuppressionList"})
    assert (state(), suppressed()) == ("FAILED", [("EMAIL", "ada@x.example", "COMPLAINT")])
    assert events(message_id) == ["accepted", "sent", "failed"]


def test_recipient_unsubscribed_at_the_provider_is_opted_out(api, ses):
    message_id = ses.send(api)
    ses.report("Bounce", bounce=bounce("Permanent", "UnsubscribedRecipient"))
    assert (state(), suppressed()) == ("FAILED", [])
    (entry,) = ConsentEntry.objects.all()
    assert (entry.channel, entry.category, entry.status) == ("EMAIL", "TRANSACTIONAL", "OPTED_OUT")
    assert events(message_id) == ["accepted", "sent", "failed", "unsubscribed"]


def test_automatic_reply_after_a_delivery_is_no_bounce(org, api, ses):
    person = factories.contact(org, email="ada@x.example")
    for days in (8, 6, 4, 2):
        earlier(org, person, days, channel="EMAIL", address="ada@x.example")
    message_id = ses.send(api, person)
    ses.report("Delivery")
    ses.report("Bounce", bounce=bounce("Transient", "General"))
    assert (state_of(message_id), suppressed()) == ("DELIVERED", [])
    assert events(message_id) == ["accepted", "sent", "delivered"]


def test_automatic_reply_reported_before_the_delivery_is_ignored(org, api, ses):
    person = factories.contact(org, email="ada@x.example")
    for days in (8, 6, 4, 2):
        earlier(org, person, days, status="DELIVERED", channel="EMAIL", address="ada@x.example")
    message_id = ses.send(api, person)
    ses.report("Bounce", bounce=bounce("Transient", "General"))
    ses.report("Delivery")
    assert (state_of(message_id), suppressed()) == ("DELIVERED", [])


def state_of(message_id: str) -> str:
    return Delivery.objects.get(message_id=message_id).status


def test_automatic_reply_by_another_service_is_no_bounce(org, api):
    with MailScene(org, "resend") as scene:
        message_id = scene.send(api)
        for word in ("delivered", "soft"):
            assert scene.report(word) == 200
            settle()
    assert (state(), events(message_id)) == ("DELIVERED", ["accepted", "sent", "delivered"])


def test_policy_bounce_of_sendgrid_suppresses_nothing(org, api):
    with MailScene(org, "sendgrid") as scene:
        scene.send(api)
        event = MAKERS["sendgrid"](str(attempt()), "hard")
        reason = "550 5.7.1 Blocked - see https://www.spamhaus.org/"
        assert scene.call_signed([{**event, "status": "5.7.1", "reason": reason}]) == 200
        settle()
    assert (state(), suppressed()) == ("FAILED", [])


# --- SMS ------------------------------------------------------------------------------------------


def refuse(scene: Scene, code: int) -> None:
    scene.status = 400
    scene.body = orjson.dumps({"code": code, "message": "no"})


def circuit(scene: AccountScene) -> CircuitState:
    return circuits.read([scene.account.pk])[scene.account.pk].state


def test_number_stopped_at_twilio_is_suppressed(org, api):
    person = factories.contact(org)
    with Scene(org, "twilio", priority=1) as first, Scene(org, "vonage", priority=2) as second:
        refuse(first, 21610)
        message_id = first.send(api, person)
        assert second.texts() == []
    assert (state(), suppressed()) == ("FAILED", [("SMS", person.mobile, "STOP")])
    assert events(message_id) == ["accepted", "unsubscribed", "failed"]
    refused = api.send(message(person, channel="SMS"))
    assert refused.json()["error"]["code"] == "SUPPRESSED"


@pytest.mark.parametrize(("kind", "code"), [("twilio", "21610"), ("vonage", "1240")])
def test_reported_stop_suppresses_the_number(org, api, settings, kind, code):
    settings.BASE_URL = "https://rme.example"
    person = factories.contact(org)
    with Scene(org, kind) as scene:
        message_id = scene.send(api, person)
        for _ in range(2):
            assert scene.call(fakes.report(kind, scene.url, attempt(), "failed", code)) == 200
            settle()
    assert (state(), suppressed()) == ("FAILED", [("SMS", person.mobile, "STOP")])
    assert events(message_id) == ["accepted", "sent", "failed", "unsubscribed"]


def test_stop_of_an_earlier_attempt_counts_before_the_next(org, api, settings):
    """The delivery waits to be sent again; what the provider knows must reach the gates first."""
    settings.BASE_URL = "https://rme.example"
    person = factories.contact(org)
    with Scene(org, "twilio") as scene:
        scene.send(api, person)
        Delivery.objects.update(status="ACCEPTED", due_at=clock.now())
        assert scene.call(fakes.report("twilio", scene.url, attempt(), "failed", "21610")) == 200
        settle()
        assert (state(), suppressed()) == ("ACCEPTED", [("SMS", person.mobile, "STOP")])
        work(scene.transport)
        assert (state(), len(scene.texts())) == ("BLOCKED", 1)
    assert Event.objects.filter(type="unsubscribed").count() == 1


def test_complaint_of_an_earlier_attempt_suppresses_and_is_no_unsubscribe(api, ses):
    """SES did not send the first attempt. The delivery waits to be sent again."""
    message_id = ses.send(api)
    Delivery.objects.update(status="ACCEPTED", due_at=clock.now())
    ses.report("Complaint", complaint={"complaintSubType": "OnAccountSuppressionList"})
    assert (state(), suppressed()) == ("ACCEPTED", [("EMAIL", "ada@x.example", "COMPLAINT")])
    assert "unsubscribed" not in events(message_id)
    assert not ConsentEntry.objects.exists()
    work(ses.transport)
    assert state() == "BLOCKED"
    assert events(message_id) == ["accepted", "sent", "blocked"]


@pytest.mark.parametrize("word", list(OptOut))
def test_opt_out_of_an_earlier_attempt_has_the_same_event_as_of_the_last(org, api, word):
    delivery = waiting_again(org, api)
    receipt = DeliveryReceipt(attempt(), "failed", opt_out=word)
    with transaction.atomic():
        gate_lock.take_exclusive([org.pk])
        receipts.apply_provider_receipts({uuid4(): [AccountReceipt(delivery.account_id, receipt)]})
    reasons = [reason for *_, reason in suppressed()]
    assert reasons == ([word.suppresses_as] if word.suppresses_as else [])
    stored = list(Event.objects.values_list("type", flat=True))
    assert stored.count("unsubscribed") == (word is not OptOut.COMPLAINT)
    assert "complained" not in stored
    assert ConsentEntry.objects.count() == (word is OptOut.UNSUBSCRIBED)


def waiting_again(org, api) -> Delivery:
    with Scene(org, "twilio") as scene:
        scene.send(api, factories.contact(org))
    Delivery.objects.update(status="ACCEPTED", due_at=clock.now())
    return Delivery.objects.get()


@pytest.mark.parametrize("code", [21408, 21608, 21612])
def test_region_not_served_by_one_account_uses_the_next(org, api, code):
    with Scene(org, "twilio", priority=1) as first, Scene(org, "vonage", priority=2) as second:
        refuse(first, code)
        message_id = first.send(api, factories.contact(org))
        assert (state(), len(second.texts())) == ("SENT", 1)
        assert events(message_id) == ["accepted", "failover", "sent"]
        assert circuit(first) is CircuitState.CLOSED


@pytest.mark.parametrize("code", [21408, 21608, 21612])
def test_region_served_by_no_account_fails_and_keeps_the_circuit_closed(org, api, code):
    with Scene(org, "twilio") as scene:
        refuse(scene, code)
        for person in factories.contacts(org, 25):
            api.send(message(person, channel="SMS"))
        work(scene.transport)
        assert set(Delivery.objects.values_list("status", flat=True)) == {"FAILED"}
        assert (circuit(scene), suppressed()) == (CircuitState.CLOSED, [])


@pytest.mark.parametrize("code", [21212, 21606, 21660])
def test_rejected_sender_of_a_request_fails_only_that_message(org, api, code):
    with Scene(org, "twilio") as scene:
        refuse(scene, code)
        for person in factories.contacts(org, 25):
            api.send(message(person, channel="SMS", **{"from": {"name": "Acme"}}))
        work(scene.transport)
        assert all("From=Acme" in each for each in scene.texts())
        assert set(Delivery.objects.values_list("status", flat=True)) == {"FAILED"}
        assert circuit(scene) is CircuitState.CLOSED
        scene.status, scene.body = 201, b'{"sid": "SM1"}'
        message_id = scene.send(api, factories.contact(org))
        assert state_of(message_id) == "SENT"


def test_rejected_own_sender_opens_the_circuit(org, api):
    with Scene(org, "twilio") as scene:
        refuse(scene, 21212)
        scene.send(api, factories.contact(org))
        assert (state(), circuit(scene)) == ("ACCEPTED", CircuitState.OPEN)
