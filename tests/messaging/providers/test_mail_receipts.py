"""What email services report, from the webhook to the message, consent and suppressions."""

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.feedback import callbacks
from messaging.models import Callback, ConsentEntry, Delivery, Event, ProviderAccount, Suppression
from messaging.providers.ses import Ses
from rme.core.cache import TtlCache
from tests import factories
from tests.fakes import sns
from tests.fakes.mail_events import MAKERS, SAYS, WORDS
from tests.fakes.mail_services import REPORTING
from tests.fakes.sns import TOPIC, Sns
from tests.fakes.tls import ca_pem
from tests.messaging.consent.test_soft_bounces import earlier
from tests.messaging.feedback.mail_scene import MailScene
from tests.messaging.feedback.sms_scene import attempt, post, settle, state
from tests.rest import events
from tests.stopwatch import Stopwatch

pytestmark = pytest.mark.django_db


def suppressed():
    return list(Suppression.objects.values_list("channel", "address", "reason", "source"))


@pytest.mark.parametrize("service", REPORTING)
def test_a_report_moves_its_delivery(org, api, service):
    word = SAYS.get(service, WORDS)[0]
    expected = {"delivered": "DELIVERED", "hard": "FAILED"}[word]
    with MailScene(org, service) as scene:
        message_id = scene.send(api)
        assert state() == "SENT"
        assert [scene.report(word) for _ in range(3)] == [200] * 3
        settle()
    assert state() == expected
    last = Event.objects.filter(message_id=message_id).order_by("id").last()
    assert (last.provider, last.channel) == (service, "EMAIL")


@pytest.mark.promise("webhooks-3")
def test_report_on_an_attempt_of_another_account_is_dropped(org, api, mail_scene):
    mail_scene.send(api)
    foreign = attempt()
    other = factories.organization("other")
    with MailScene(other) as theirs:
        assert theirs.report("hard", foreign) == 200  # well signed, by another
        settle()
    assert (state(), suppressed()) == ("SENT", [])


def test_a_hard_bounce_suppresses_the_address(api, mail_scene):
    message_id = mail_scene.send(api)
    mail_scene.report("hard")
    settle()
    assert (state(), suppressed()) == (
        "FAILED",
        [("EMAIL", "ada@x.example", "HARD_BOUNCE", "PROVIDER")],
    )
    assert events(message_id)[-1] == "bounced"


def test_a_complaint_suppresses_the_address(api, mail_scene):
    mail_scene.send(api)
    mail_scene.report("complained")
    settle()
    assert suppressed() == [("EMAIL", "ada@x.example", "COMPLAINT", "PROVIDER")]


def test_a_delay_is_an_event_without_a_transition(api, mail_scene):
    message_id = mail_scene.send(api)
    mail_scene.report("deferred")
    settle()
    assert (state(), events(message_id)[-1]) == ("SENT", "deferred")


@pytest.mark.promise("consent-2")
def test_an_opt_out_by_the_service_is_written_into_the_ledger_once(org, api, mail_scene):
    person = mail_scene.person()
    message_id = mail_scene.send(api, person)
    for number in range(3):
        event = MAKERS["postmark"](str(attempt()), "unsubscribed")
        mail_scene.call_signed({**event, "Number": number})
        settle()
    (entry,) = ConsentEntry.objects.all()
    assert (entry.organization_id, entry.contact_id, entry.channel, entry.category) == (
        org.pk,
        str(person.pk),
        "EMAIL",
        "TRANSACTIONAL",
    )
    assert (entry.status, entry.source, entry.recorded_by) == (
        "OPTED_OUT",
        "ONE_CLICK",
        "recipient",
    )
    assert entry.evidence == {"provider": "postmark", "delivery": str(Delivery.objects.get().pk)}
    assert events(message_id).count("unsubscribed") == 1
    refused = api.send(
        {
            "channel": "EMAIL",
            "category": "TRANSACTIONAL",
            "to": [{"contactId": str(person.pk)}],
            "content": {"subject": "s", "text": "t"},
        }
    )
    assert refused.json()["error"]["code"] == "NO_CONSENT"


def test_opens_reported_by_a_service_tell_machines_from_people(api, mail_scene):
    message_id = mail_scene.send(api)
    for agent in ("x (via ggpht.com GoogleImageProxy)", "Mozilla/5.0 (X11) Firefox/140"):
        event = MAKERS["postmark"](str(attempt()), "open")
        mail_scene.call_signed({**event, "UserAgent": agent})
        settle()
    rows = Event.objects.filter(message_id=message_id, type="open").order_by("id")
    assert list(rows.values_list("detail", flat=True)) == [{"machine": True}, None]


def test_the_number_of_statements_does_not_grow_with_the_reports(org, api, mail_scene):
    counts = []
    for people in (1, 4):
        for number in range(people):
            mail_scene.send(api, mail_scene.person(email=f"p{people}{number}@x.example"))
            for word in ("delivered", "open", "hard", "soft", "unsubscribed"):
                mail_scene.report(word)
        with CaptureQueriesContext(connection) as queries:
            assert settle() == people * 5
        counts.append(len(queries))
    assert counts[0] == counts[1]


@pytest.mark.promise("webhooks-5")
def test_a_soft_bounce_is_marked_and_counted(org, api, mail_scene):
    person = mail_scene.person()
    for days in (8, 6, 4, 2):
        earlier(org, person, days, channel="EMAIL", address="ada@x.example")
    message_id = mail_scene.send(api, person)
    mail_scene.report("soft")
    settle()
    (failed,) = Event.objects.filter(message_id=message_id, type="failed")
    assert failed.detail["soft"] is True
    assert Delivery.objects.get(message_id=message_id).status == "FAILED"
    assert suppressed() == [("EMAIL", "ada@x.example", "INVALID_ADDRESS", "PROVIDER")]


# --- Amazon SES -----------------------------------------------------------------------------------


@pytest.fixture
def topics(settings):
    settings.OUTBOUND_OPEN_HOSTS = ["localhost"]
    TtlCache.clear_all()
    with Sns() as server:
        yield server


def ses(org, topics, **given):
    settings = {
        "region": "eu-west-1",
        "access_key_id": "AKIDEXAMPLEEXAMPLE00",
        "secret_access_key": "very-secret",
        "topic_arn": TOPIC,
        "sns_url": topics.origin,
        "ca_pem": ca_pem(),
        **given,
    }
    return ProviderAccount.objects.create(
        organization=org,
        name="ses",
        kind=Ses.kind,
        channel="EMAIL",
        credentials=orjson.dumps(settings).decode(),
    )


def test_a_subscription_is_confirmed_by_the_webhook(org, topics, opened_transport):
    account = ses(org, topics)
    assert post(account.public_id, sns.signed(topics.confirmation())) == 200
    assert [seen.path.partition("?")[0] for seen in topics.seen] == [sns.CERTIFICATE, "/"]


def test_subscription_to_a_foreign_topic_is_rejected(org, topics, opened_transport):
    account = ses(org, topics)
    theirs = "arn:aws:sns:eu-west-1:999999999999:theirs"
    assert post(account.public_id, sns.signed(topics.confirmation(TopicArn=theirs))) == 403
    assert topics.seen == []
    assert not Callback.objects.exists()


def test_a_forged_confirmation_is_refused(org, topics, opened_transport):
    account = ses(org, topics)
    assert post(account.public_id, sns.signed(topics.confirmation(), key=1)) == 403
    assert [seen.path for seen in topics.seen] == [sns.CERTIFICATE]


@pytest.fixture
def opened_transport(topics):
    """Let this thread's transport call this machine."""
    from rme.transport import per_thread

    per_thread._local.__dict__.clear()
    yield
    per_thread._local.__dict__.clear()


def test_a_call_of_many_events_is_taken(api, mail_scene):
    mail_scene.send(api)
    events_ = [MAKERS["postmark"](str(attempt()), "delivered")] * 2
    assert mail_scene.call_signed({"Details": "x" * 500_000, **events_[0]}) == 200
    with Stopwatch() as watch:
        assert callbacks.apply_due()[0] == 1
    assert watch.seconds < 2
