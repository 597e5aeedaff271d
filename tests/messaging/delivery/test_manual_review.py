"""What is held with an unknown outcome, and a person's decision of it."""

import datetime as dt
import io
import threading

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from messaging.delivery import manual_review
from messaging.delivery.manual_review import Decision
from messaging.domain.attention import Finding
from messaging.feedback import receipts
from messaging.models import Attempt, Delivery, Event
from messaging.policy import organization_policy
from messaging.reports import configuration
from messaging.store.reports import backlogs
from rme.core.cache import TtlCache
from rme.core.db import clock
from rme.core.provider import DeliveryReceipt
from rme.crm.models import Contact
from rme.tenants.audit import Actor
from rme.tenants.models import User
from tests import audited, factories
from tests.messaging.delivery.manual_review_scene import hold
from tests.rest import Api, events, work

pytestmark = pytest.mark.django_db

LONG_AGO = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
def user(db):
    return User.objects.create_user("grace")


def decide(rows, decision, user, reason="the provider's log has none of them"):
    return manual_review.decide(
        rows[0].organization_id,
        [row.pk for row in rows],
        decision,
        reason=reason,
        actor=Actor(user.pk, user.username),
    )


def logged():
    return [(line.entry.actor_name, line.entry.object_id, line.lines) for line in audited.entries()]


@pytest.mark.promise("routes-3")
def test_held_message_is_sent_again_even_after_its_expiry(api, user):
    (row,) = hold(api)
    Delivery.objects.filter(pk=row.pk).update(expires_at=LONG_AGO)
    before = clock.now()
    assert decide([row], Decision.SEND_AGAIN, user) == {row.pk}
    row.refresh_from_db()
    assert (row.status, row.reason, row.detail) == ("ACCEPTED", None, None)
    assert before <= row.due_at <= clock.now()
    assert row.expires_at == row.due_at + dt.timedelta(hours=4)
    Contact.objects.update(email="ada@simulator.rme.test")
    work()
    row.refresh_from_db()
    assert row.status == "DELIVERED"
    assert Attempt.objects.filter(delivery_id=row.pk).count() == 2
    assert events(row.message_id) == ["accepted", "accepted", "sent", "delivered"]
    assert logged() == [
        (
            "grace",
            str(row.pk),
            ["decision: held → SEND_AGAIN", "reason: the provider's log has none of them"],
        )
    ]


@pytest.mark.promise("routes-3")
def test_message_given_up_fails(api, user):
    (row,) = hold(api)
    assert decide([row], Decision.GIVE_UP, user, "nobody missed it") == {row.pk}
    work()
    shown = api.get(row.message_id)
    assert (shown["status"], shown["error"]) == (
        "FAILED",
        {"code": "PROVIDER_ERROR", "message": "no answer came, and it was given up"},
    )
    last = shown["events"][-1]
    assert last | {"at": None, "contactId": None} == {
        "type": "failed",
        "at": None,
        "contactId": None,
        "channel": "EMAIL",
        "provider": "simulator",
        "detail": {"decision": "GIVE_UP", "reason": "nobody missed it"},
    }
    row.refresh_from_db()
    assert row.due_at is None
    assert logged() == [
        ("grace", str(row.pk), ["decision: held → GIVE_UP", "reason: nobody missed it"])
    ]


def test_the_trace_shows_the_decision(api, user):
    (row,) = hold(api)
    decide([row], Decision.GIVE_UP, user, "nobody missed it")
    answer = api.call("GET", f"/messages/{row.message_id}?include=trace").json()
    steps = [{**step, "at": None} for step in answer["trace"][0]["steps"]]
    assert [step for step in steps if step.get("result") in ("GIVE_UP", "CHOSEN")] == [
        {"at": None, "step": "DECISION", "channel": "EMAIL", "result": "CHOSEN"},
        {
            "at": None,
            "step": "DECISION",
            "channel": "EMAIL",
            "result": "GIVE_UP",
            "detail": "nobody missed it",
        },
    ]


@pytest.mark.parametrize("decision", Decision)
def test_only_held_messages_are_decided_and_only_once(api, user, decision):
    held_row, decided, waiting = hold(api, 3)
    decide([decided], Decision.GIVE_UP, user)
    Delivery.objects.filter(pk=waiting.pk).update(due_at=clock.now())  # a receipt may still come
    before = Event.objects.count()
    assert decide([held_row, decided, waiting], decision, user) == {held_row.pk}
    assert decide([held_row, decided, waiting], decision, user) == set()
    assert Event.objects.count() == before + 1
    assert len(audited.entries()) == 2


def test_messages_of_another_organization_cannot_be_decided(api, user):
    rows = hold(api)
    other = factories.organization("other")
    keys, grace = [row.pk for row in rows], Actor(user.pk)
    decided = manual_review.decide(other.pk, keys, Decision.GIVE_UP, reason="x", actor=grace)
    assert decided == set()
    assert backlogs.count_held([other.pk, api.org.pk]) == {"other": 0, "acme": 1}


@pytest.mark.parametrize("decision", Decision)
def test_deciding_more_needs_no_more_statements(api, user, decision):
    decide(hold(api), decision, user)  # what is read once for good has been read
    found = []
    for count in (1, 500):
        rows = hold(api, count)
        TtlCache.clear_all()
        organization_policy.of("acme")
        clock.now()
        with CaptureQueriesContext(connection) as captured:
            assert len(decide(rows, decision, user)) == count
        found.append(len(captured))
    # the rows, by index, their statuses, endpoints, events, the log; and a savepoint around
    assert found == [7, 7]
    assert len(audited.entries()) == 502


def test_health_counts_held_messages(api, user):
    rows = hold(api, 2)
    found = [each for each in configuration.findings(["acme"]) if each.code == "HELD_UNKNOWN"]
    text = "2 messages have an unknown outcome. Review them."
    assert found == [Finding("acme", configuration.WARNING, "HELD_UNKNOWN", text)]
    decide(rows, Decision.GIVE_UP, user)
    codes = [each.code for each in configuration.findings(["acme"])]
    assert "HELD_UNKNOWN" not in codes


def test_held_are_counted_through_their_index(api):
    hold(api)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {backlogs.COUNT_HELD}", {"organizations": ["acme"]})
        plan = " ".join(line for (line,) in cursor.fetchall())
    assert "Seq Scan" not in plan
    assert plan.count("Index Only Scan") + plan.count("Index Scan") >= 1


@pytest.mark.promise("routes-3")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("decision", Decision)
def test_a_receipt_and_a_decision_never_both_win(api, user, decision):
    """A confirmation comes at the moment of the decision: one finds what the other did."""
    rows = hold(api, 60)
    attempts = dict(Attempt.objects.values_list("delivery_id", "pk"))
    start, done = threading.Barrier(2), threading.Barrier(2)
    early: set = set()

    def report() -> None:
        for index, row in enumerate(rows):
            said = {row.pk: [(None, DeliveryReceipt(attempts[row.pk], "delivered"))]}
            start.wait(20)
            threading.Event().wait(0.0005 * (index % 3))
            with transaction.atomic():
                early.update(receipts.apply_provider_receipts(said).early)
            done.wait(20)
        connections.close_all()

    thread = threading.Thread(target=report)
    thread.start()
    decided = set()
    for index, row in enumerate(rows):
        start.wait(20)
        threading.Event().wait(0.0005 * ((index + 1) % 3))
        decided |= decide([row], decision, user)
        done.wait(20)
    thread.join()

    status = dict(Delivery.objects.values_list("pk", "status"))
    told = {line.entry.object_id for line in audited.entries()}
    assert told == {str(key) for key in decided}
    kind = {Decision.SEND_AGAIN: "accepted", Decision.GIVE_UP: "failed"}[decision]
    written = Event.objects.filter(type=kind, detail__isnull=False)
    assert set(written.values_list("delivery_id", flat=True)) == decided
    assert 0 < len(decided) < len(rows)  # and both do happen
    # A late confirmation wins: it ends the wait to be sent again, too.
    assert early == set()
    assert status == {row.pk: "DELIVERED" for row in rows}
    work()
    assert Attempt.objects.count() == len(attempts)


def command(decision, **options):
    said = io.StringIO()
    call_command("decide_held", decision, stdout=said, **{"organization": "acme", **options})
    return said.getvalue()


def test_the_command_decides_many(api, user):
    rows = hold(api, 3)
    other = hold(Api(factories.organization("other")))
    chosen = str(rows[0].message_id)
    said = command("--give-up", reason="none arrived", message=[chosen])
    assert said == "GIVE_UP: 1\n"
    assert command("--send-again", reason="lost", user="grace") == "SEND_AGAIN: 2\n"
    assert command("--send-again", reason="lost") == "SEND_AGAIN: 0\n"
    assert [status for _, status in sorted(Delivery.objects.filter(
        organization_id="acme").values_list("pk", "status"))] == [
        "FAILED", "ACCEPTED", "ACCEPTED"]  # fmt: skip
    other[0].refresh_from_db()
    assert other[0].status == "UNKNOWN"
    again = ["decision: held → SEND_AGAIN", "reason: lost"]
    assert sorted(logged()) == sorted([
        ("command-line", str(rows[0].pk), ["decision: held → GIVE_UP", "reason: none arrived"]),
        ("grace", str(rows[1].pk), again),
        ("grace", str(rows[2].pk), again),
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"organization": "nobody"}, "There is no organization nobody."),
        ({"reason": "  "}, "The reason must not be empty."),
        ({"user": "nobody"}, "This user doesn't exist."),
    ],
)
def test_command_reports_invalid_options(org, options, told):
    with pytest.raises(CommandError, match=told):
        command("--give-up", **{"reason": "x", **options})


def test_a_decision_is_needed(org):
    with pytest.raises(CommandError, match="--send-again --give-up"):
        call_command("decide_held", "--organization", "acme", "--reason", "x")
