"""A provider that takes messages and never says so gets a few copies, and then a person decides."""

from collections.abc import Iterator
from datetime import timedelta

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.delivery import manual_review, sweeper
from messaging.delivery.manual_review import Decision
from messaging.feedback import receipts
from messaging.models import Attempt, Category, Delivery, Event, Pause, ProviderAccount
from messaging.reports import configuration
from messaging.store.reports import backlogs
from rme.core.db import clock
from rme.core.outcomes import Accepted, Unknown
from rme.tenants.audit import Actor
from rme.transport import AddressPolicy, Transport
from tests import factories
from tests.fakes import tcp
from tests.fakes.smtp import SmtpServer
from tests.messaging.delivery.deliver_scene import Scripted, delivery
from tests.rest import message, work

pytestmark = pytest.mark.django_db
STEP = timedelta(seconds=30)


@pytest.fixture
def resetting(org, settings) -> Iterator[SmtpServer]:
    """Run a mail server that takes a mail whole and then resets the connection."""
    settings.OUTBOUND_OPEN_HOSTS = ["127.0.0.1"]
    with SmtpServer({"END": tcp.reset}) as server:
        credentials = {"host": "127.0.0.1", "port": server.port, "security": "NONE"}
        ProviderAccount.objects.create(
            organization=org, name="mail", kind="smtp", channel="EMAIL",
            credentials=orjson.dumps(credentials).decode(),
        )  # fmt: skip
        yield server


def pass_time(step: timedelta = STEP) -> None:
    """Let time pass: all that was stored was stored earlier."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE messaging_delivery SET due_at = due_at - %s", [step])
        cursor.execute("UPDATE messaging_attempt SET started_at = started_at - %s", [step])


def live(minutes: int, transport: Transport | None = None) -> list[int]:
    """Let the sweep and the workers go on for so long; return when each mail left, in minutes."""
    left = []
    for second in range(0, minutes * 60, int(STEP.total_seconds())):
        before = Attempt.objects.count()
        sweeper.resolve_unknown()
        work(transport)
        left += [second // 60] * (Attempt.objects.count() - before)
        pass_time()
    return left


@pytest.mark.promise("routes-27")
def test_server_resetting_after_the_mail_gets_four_copies(api, org, resetting):
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    # after 60 s, 60 + 300 s and 60 + 900 s; what never left may be tried between
    live(60, Transport(AddressPolicy(["127.0.0.1"])))
    assert len(resetting.mails) == 4
    assert Attempt.objects.filter(outcome="Unknown").count() == 4
    assert (delivery().status, delivery().due_at) == ("UNKNOWN", None)
    told = Event.objects.filter(message_id=message_id, detail__decision="RESEND")
    assert told.count() == 3


def test_copy_accepted_late_counts_as_a_resend(api, org, script):
    script("only", Unknown("no answer"))
    api.send(message(factories.contact(org)))
    assert live(3) == [0, 1]
    first = Attempt.objects.order_by("started_at").first()
    Attempt.objects.filter(pk=first.pk).update(outcome="Accepted")  # after it was sent again
    live(60)
    assert Attempt.objects.count() == 4
    assert Event.objects.filter(detail__decision="RESEND").count() == 3
    assert (delivery().status, delivery().due_at) == ("UNKNOWN", None)


def test_every_resend_is_in_the_events_and_the_trace(api, org, script):
    script("only", Unknown("no answer"))
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    live(60)
    texts = [f"resent: outcome unknown ({n} of 3)" for n in (1, 2, 3)]
    shown = api.call("GET", f"/messages/{message_id}?include=trace").json()
    assert [each["detail"] for each in shown["events"] if each["type"] == "deferred"] == [
        {"decision": "RESEND", "reason": text} for text in texts
    ]
    steps = [
        (step["channel"], step["result"], step["detail"])
        for step in shown["trace"][0]["steps"]
        if step["result"] == "RESEND"
    ]
    assert steps == [("EMAIL", "RESEND", text) for text in texts]


@pytest.mark.promise("routes-27")
def test_message_resent_without_success_is_held_for_a_person(api, org, script):
    script("only", Unknown("no answer"))
    api.send(message(factories.contact(org)))
    live(60)
    assert backlogs.count_held([org.pk]) == {org.pk: 1}
    found = {each.code for each in configuration.findings([org.pk])}
    assert "HELD_UNKNOWN" in found
    again = {"reason": "the log has none", "actor": Actor(name="grace")}
    assert manual_review.decide(org.pk, [delivery().pk], Decision.SEND_AGAIN, **again) == {
        delivery().pk
    }
    assert live(60) == [0]  # a person's one more try, and no resends after it
    assert backlogs.count_held([org.pk]) == {org.pk: 1}


@pytest.mark.promise("routes-27")
def test_replaceable_push_is_resent_three_times(api, org):
    Category.objects.create(organization=org, name="NEWS", regime="OPT_OUT", on_unknown="HOLD")
    ada = factories.contact(org)
    for number in (1, 2):  # two devices of one person are one resend
        factories.device(org, ada, f"simulator-unknown-{number}")
    content = {"title": "News", "body": "All of them"}
    api.send(message(ada, channel="PUSH", category="NEWS", template=None, content=content))
    assert live(60) == [0, 0, 1, 1, 7, 7, 23, 23]
    assert (delivery().status, delivery().due_at) == ("UNKNOWN", None)


def test_a_receipt_ends_the_wait_for_a_resend(api, org, script):
    script("only", Unknown("no answer"))
    api.send(message(factories.contact(org)))
    live(3)
    assert (delivery().status, len(Scripted.sent)) == ("UNKNOWN", 2)  # waiting for the second
    receipts.apply([receipts.Receipt(delivery().pk, "delivered")])
    assert live(60) == []
    assert delivery().status == "DELIVERED"


def test_delivery_killing_its_worker_each_time_is_held(api, org, script):
    """No attempt has an outcome then."""
    script("only", Accepted())
    api.send(message(factories.contact(org)))
    for times in range(1, 5):
        Delivery.objects.update(status="UNKNOWN", due_at=clock.now(), fence=times)
        row = delivery()
        Attempt.objects.create(
            organization_id=org.pk, message_id=row.message_id, delivery_id=row.pk, fence=times,
            channel="EMAIL", provider="only", started_at=clock.now() - timedelta(hours=1),
        )  # fmt: skip
        sweeper.resolve_unknown()
        assert delivery().status == ("ACCEPTED" if times < 4 else "UNKNOWN")
    assert delivery().due_at is None


def test_the_waits_are_a_setting(api, org, script, settings):
    settings.UNKNOWN_BACKOFF_SECONDS = (60.0,)
    script("only", Unknown("no answer"))
    api.send(message(factories.contact(org)))
    assert live(30) == [0, 2]
    assert delivery().due_at is None


@pytest.mark.parametrize("count", [1, 5])
def test_deciding_takes_the_same_statements_for_any_number(api, org, script, count):
    script("only", Unknown("no answer"))
    api.bulk([message(each) for each in factories.contacts(org, count)])
    work()
    pass_time(timedelta(minutes=2))
    with CaptureQueriesContext(connection) as asked:
        sweeper.resolve_unknown()
    statements = [each["sql"] for each in asked if "SAVEPOINT" not in each["sql"]]
    # by index, what is due, how often each was sent, by index, the statuses, the events
    assert len(statements) == 6
    assert Event.objects.filter(type="deferred").count() == count


@pytest.mark.parametrize("by", ["the category", "a person"])
def test_expired_resend_fails_and_a_late_receipt_confirms_it(api, org, script, by):
    script("only", Unknown("no answer"))
    api.send(message(factories.contact(org)))
    work()
    pass_time(2 * STEP)
    if by == "a person":
        Delivery.objects.update(due_at=None)
        again = {"reason": "the log has none", "actor": Actor(name="grace")}
        manual_review.decide(org.pk, [delivery().pk], Decision.SEND_AGAIN, **again)
    else:
        sweeper.resolve_unknown()
    Pause.objects.create(organization=org, channel="EMAIL", reason="maintenance")
    work()
    assert (delivery().status, delivery().waiting) == ("ACCEPTED", "PAUSED")
    Delivery.objects.update(due_at=clock.now(), expires_at=clock.now())
    work()
    assert (delivery().status, delivery().reason) == ("FAILED", "PROVIDER_ERROR")
    assert Attempt.objects.count() == 1
    receipts.apply([receipts.Receipt(delivery().pk, "delivered")])
    assert delivery().status == "DELIVERED"
