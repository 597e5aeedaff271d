"""Erasing a person: completely, repeatedly, and no other person."""

import json
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.consent import erasure, ledger
from messaging.delivery import claims
from messaging.models import (
    PARTITIONED,
    Attempt,
    BulkAction,
    ConsentEntry,
    Delivery,
    MessageContent,
    PrivacyRequest,
    Suppression,
    WebhookDelivery,
)
from push.models import Device
from rme.core.db import clock
from tests import audited, factories
from tests.messaging.consent.erasure_scene import SECRET, fill, personal, run
from tests.messaging.webhooks.webhook_scene import endpoint
from tests.rest import all_events, message, work

pytestmark = pytest.mark.django_db
NOTHING = dict.fromkeys(
    [
        "cases",
        "registrations",
        "contacts",
        "devices",
        "suppressions",
        "consent",
        "stopped",
        "contents",
        "metadata",
        "variables",
        "attempts",
        "events",
        "webhook_deliveries",
        "changes",
        "deliveries",
        "actions",
        "requests",
        "audit",
    ],
    0,
)


def stored():
    """Return the content of all tables as text."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition "
            "AND relnamespace = current_schema()::regnamespace"
        )
        texts = []
        for (table,) in cursor.fetchall():
            cursor.execute(f"SELECT coalesce(json_agg(t)::text, '') FROM \"{table}\" t")
            texts.append(cursor.fetchone()[0])
    return "\n".join(texts)


@pytest.mark.promise("embedded-6")
def test_erasure_removes_all_data_of_one_person_only(api, org, ada, bob):
    alone, both = fill(api, org, ada, bob)
    assert SECRET in stored()
    erased = erasure.erase(org.pk, str(ada.pk))
    assert erased == erasure.Erased(
        {
            **NOTHING,
            "cases": 1,
            "registrations": 1,
            "contacts": 1,
            "devices": 1,
            "suppressions": 1,
            "consent": 1,
            "contents": 1,
            "metadata": 1,
            "variables": 1,
            "attempts": 1,
            "events": 1,
            "deliveries": 2,
            "audit": 2,
        },
        under_way=0,
    )
    assert SECRET.lower() not in stored().lower()
    assert [row["status"] for row in api.get(both)["recipients"]] == ["DELIVERED", "DELIVERED"]
    assert api.get(alone)["metadata"] == {}
    bobs = Delivery.objects.get(contact_id=str(bob.pk))
    assert bobs.address == "bob@simulator.rme.test"
    assert MessageContent.objects.get(pk=both).body["recipients"] == {
        str(bobs.pk): {"nick": "Bobby"}
    }
    assert Device.objects.get().contact_id == str(bob.pk)
    assert Suppression.objects.get().address == "+12125550100"  # protects whoever has it
    assert ConsentEntry.objects.filter(contact_id=str(bob.pk)).get().evidence == {
        "text": "by phone"
    }
    assert ledger.verify(org.pk).broken is None
    assert Attempt.objects.filter(provider_id=None).count() == 0
    *found, erasing = audited.entries()
    assert [(line.entry.kind, line.is_erased, line.is_altered) for line in found] == [
        ("crm.contact", True, False),
        ("crm.case", True, False),
        ("crm.contact", False, False),
    ]
    assert (erasing.entry.action, erasing.entry.actor_name, erasing.entry.object_id) == (
        "ERASED", "command-line", str(ada.pk),
    )  # fmt: skip
    assert "contacts: 1, devices: 1" in erasing.values.text


def test_bulk_actions_naming_the_person_are_anonymized(org, ada, bob):
    for each, mail in ((ada, "ada@people.example"), (bob, "bob@people.example")):
        BulkAction.objects.create(
            organization=org, kind="CANCEL", scope=f"Person: {mail}", reason="moved away",
            contact_id=str(each.pk), targets=[], total=0, started_by="root", user_id=1,
        )  # fmt: skip
    assert erasure.erase(org.pk, str(ada.pk)).counts["actions"] == 1
    assert list(BulkAction.objects.order_by("pk").values_list("scope", "reason")) == [
        ("(erased)", "(erased)"),
        ("Person: bob@people.example", "moved away"),
    ]


def test_erasing_again_finds_nothing(api, org, ada, bob):
    fill(api, org, ada, bob)
    erasure.erase(org.pk, str(ada.pk))
    before = stored()
    assert erasure.erase(org.pk, str(ada.pk)) == erasure.Erased(NOTHING, under_way=0)
    assert stored() == before


def test_unsent_messages_are_stopped(api, org, ada):
    later = {"mode": "AT", "at": (clock.now() + timedelta(days=30)).isoformat()}
    planned = api.send(message(ada, schedule=later)).json()["messageId"]
    ready = api.send(message(ada)).json()["messageId"]
    doubt = api.send(message(ada)).json()["messageId"]
    Delivery.objects.filter(message_id=doubt).update(status="UNKNOWN")
    assert erasure.erase(org.pk, str(ada.pk)).counts == {
        **NOTHING,
        "contacts": 1,
        "stopped": 3,
        "contents": 3,
        "deliveries": 3,
    }
    assert work() == 0
    assert [api.get(key)["status"] for key in (planned, ready, doubt)] == [
        "CANCELLED",
        "BLOCKED",
        "FAILED",
    ]
    assert [api.get(key)["events"][-1]["type"] for key in (planned, ready, doubt)] == [
        "cancelled",
        "blocked",
        "failed",
    ]


def test_sent_message_awaiting_confirmation_does_not_fall_back(api, org, ada):
    api.send(message(ada))
    work()
    Delivery.objects.update(status="SENT", due_at=clock.now(), channels=["SMS"])
    erasure.erase(org.pk, str(ada.pk))
    assert list(Delivery.objects.values_list("status", "due_at")) == [("SENT", None)]


def test_message_claimed_by_a_worker_is_erased_by_a_later_run(api, org, ada):
    message_id = api.send(message(ada, **personal())).json()["messageId"]
    claims.claim(org.pk, "EMAIL", 0)
    erased = erasure.erase(org.pk, str(ada.pk))
    assert (erased.under_way, erased.counts) == (1, {**NOTHING, "contacts": 1})
    assert MessageContent.objects.get(pk=message_id).body["variables"] == {"note": SECRET}
    Delivery.objects.update(status="SENT", due_at=None)
    erased = erasure.erase(org.pk, str(ada.pk))
    assert (erased.under_way, erased.counts) == (0, {**NOTHING, "contents": 1, "deliveries": 1})


def test_another_organization_cannot_erase_or_export_the_person(api, org, ada, bob):
    fill(api, org, ada, bob)
    factories.organization("other")
    before = stored()
    assert erasure.erase("other", str(ada.pk)) == erasure.Erased(NOTHING, under_way=0)
    assert stored() == before
    with pytest.raises(CommandError, match="Nothing is stored"):
        call_command("export_contact", str(ada.pk), organization="other")


def test_webhook_deliveries_are_erased_and_not_added(api, org, ada, bob):
    for owner in (org, factories.organization("other")):
        endpoint(owner, "https://hooks.example.com/")
    for person in (ada, bob):
        api.send(message(person))
    attempts = [{"at": None, "status": 500, "ms": 1, "error": None, "answer": SECRET}]
    (own,) = WebhookDelivery.objects.filter(event_id__in=_events_of(ada))
    WebhookDelivery.objects.filter(pk=own.pk).update(attempts=attempts)
    (exported,) = json.loads(run("export_contact", str(ada.pk), organization=org.pk))["messages"]
    assert [(row["type"], row["attempts"]) for row in exported["webhook_deliveries"]] == [
        ("message.accepted", attempts)
    ]
    counts = erasure.erase(org.pk, str(ada.pk)).counts
    assert (counts["webhook_deliveries"], counts["stopped"]) == (
        2,
        1,
    )  # no event of the stop is sent either
    (left,) = WebhookDelivery.objects.all()
    assert left.event_id in _events_of(bob)


def _events_of(person):
    deliveries = set(
        Delivery.objects.filter(contact_id=str(person.pk)).values_list("id", flat=True)
    )
    return [each.pk for each in all_events() if each.delivery_id in deliveries]


@pytest.mark.parametrize("count", [1, 20])
def test_statements_do_not_grow_with_the_messages(api, org, ada, count):
    api.bulk([message(ada) for _ in range(count)])
    erasure.erase(org.pk, "nobody")  # from then on the content types are known
    with CaptureQueriesContext(connection) as captured:
        assert erasure.erase(org.pk, str(ada.pk)).counts["stopped"] == count
    # one of them for the statuses to be set by index, two for the archive, one for the gate lock,
    # four for the TEST layer
    assert len(captured) == 50


def test_the_command_counts_and_erases_only_with_yes(api, org, ada, bob):
    fill(api, org, ada, bob)
    before = stored()
    counted = run("erase_contact", str(ada.pk), organization=org.pk)
    assert stored() == before
    assert counted.endswith("Nothing was erased yet. To erase it for good, add --yes.\n")
    erased = run("erase_contact", str(ada.pk), organization=org.pk, yes=True)
    assert counted.startswith(erased)
    assert erased.splitlines()[2].split() == ["contacts", "1"]
    assert list(PrivacyRequest.objects.values_list("kind", "state", "recorded_by", "result")) == [
        ("ERASURE", "DONE", "command-line", audited.entries()[-1].values.text)
    ]
    again = run("erase_contact", str(ada.pk), organization=org.pk, yes=True)
    assert {line.split()[1] for line in again.splitlines()} == {"0"}


def test_the_command_names_an_unknown_organization(db):
    with pytest.raises(CommandError, match="There is no organization"):
        call_command("erase_contact", "x", organization="nobody")


def test_a_contact_of_another_platform_is_erased_here(api, org):
    """Its id is no UUID of ours, and only what we stored can go."""
    Suppression.objects.create(
        organization=org, channel="ALL", contact_id="003Ab000001", reason="MANUAL"
    )
    assert erasure.erase(org.pk, "003Ab000001").counts == {**NOTHING, "suppressions": 1}


def test_every_partitioned_table_is_thought_of():
    """Whoever adds a table of messages has to say here what an erasure does to it."""
    assert [model.__name__ for model in PARTITIONED] == [
        "Message",
        "MessageContent",
        "Delivery",
        "Attempt",
        "Event",
    ]
