"""Webhook events of consent, suppressions and devices: queued in the transaction of the change."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from messaging.consent import erasure, ledger, suppressions
from messaging.consent.suppressions import NewSuppression
from messaging.console.people import contact_merge
from messaging.feedback import tasks
from messaging.models import ConsentEntry, Suppression, WebhookDelivery
from messaging.models.endpoints import ChangeType
from messaging.webhooks import device_events, outbox, replays
from push import devices
from push.inputs import read_device
from push.models import Device, Feedback
from rme.core import ids
from rme.tenants import audit
from tests import factories
from tests.messaging.webhooks.webhook_scene import database_time, dispatch_all, endpoint, verified
from tests.rest import instant

pytestmark = pytest.mark.django_db
URL = "https://hooks.example.com/"
ALL_CHANGES = [str(each) for each in ChangeType]


@pytest.fixture
def row(org):
    """Return an endpoint that subscribes to all changes, and to no event of a message."""
    return endpoint(org, URL, *ALL_CHANGES)


def queued(row):
    """Return the types and payloads queued for an endpoint, in their order."""
    rows = WebhookDelivery.objects.filter(endpoint_id=row.pk).order_by("id")
    return list(rows.values_list("type", "data"))


def types(row):
    return [kind for kind, _ in queued(row)]


def yes(contact_id, status="OPTED_IN"):
    return {"contactId": contact_id, "channel": "EMAIL", "category": "MARKETING", "status": status}


def android(contact_id, number=1):
    return {"contactId": contact_id, "platform": "ANDROID", "token": f"token-{number}"}


@pytest.mark.promise("webhooks-11")
def test_a_decision_is_queued_as_the_api_shows_it(api, org, row):
    contact_id = str(factories.contact(org).pk)
    made = api.call("POST", "/consent", {**yes(contact_id), "evidence": {"form": "footer"}}).json()
    assert queued(row) == [("consent.changed", made)]
    assert str(WebhookDelivery.objects.get().event_id) == made["id"]


@pytest.mark.promise("webhooks-11")
def test_the_list_of_suppressions_can_be_mirrored(api, org, row):
    given = {"channel": "EMAIL", "address": "ada@example.com"}
    made = api.call("POST", "/suppressions", given).json()
    api.call("POST", "/suppressions", given)  # it is there: no change
    stronger = api.call("POST", "/suppressions", {**given, "reason": "HARD_BOUNCE"}).json()
    api.call("DELETE", f"/suppressions/{made['id']}")
    hidden = {"address", "note"}
    shown = [{k: v for k, v in each.items() if k not in hidden} for each in (made, stronger)]
    assert queued(row) == [
        ("suppression.created", shown[0]),
        ("suppression.changed", shown[1]),
        ("suppression.lifted", shown[1]),
    ]


def test_suppression_can_be_read_by_the_id_in_its_event(api, org, row):
    given = {"channel": "EMAIL", "address": "ada@example.com"}
    made = api.call("POST", "/suppressions", given).json()
    ((_, data),) = queued(row)
    assert api.call("GET", f"/suppressions/{data['id']}").json() == made
    api.call("DELETE", f"/suppressions/{data['id']}")
    assert api.call("GET", f"/suppressions/{data['id']}").status_code == 404


def test_a_device_is_queued_when_it_changes_and_not_at_each_start_of_the_app(api, org, row):
    ada, bob = (str(each.pk) for each in factories.contacts(org, 2))
    made = api.call("POST", "/devices", android(ada)).json()
    api.call("POST", "/devices", android(ada))
    api.call("POST", "/devices", android(bob))
    api.call("POST", f"/devices/{made['deviceId']}/replace", {"token": "other"})
    Feedback.objects.create(
        organization_id=org.pk, device_id=made["deviceId"], reason="GONE", at=database_time()
    )
    tasks.retire_devices()
    api.call("POST", "/devices", {**android(bob), "token": "other"})
    api.call("DELETE", f"/devices/{made['deviceId']}")
    shown = [
        (kind, data["change"], data["contactId"], data["active"], data["reason"])
        for kind, data in queued(row)
    ]
    assert shown == [
        ("device.registered", "REGISTERED", ada, True, None),
        ("device.registered", "MOVED", bob, True, None),
        ("device.registered", "REPLACED", bob, True, None),
        ("device.deactivated", "DEACTIVATED", bob, False, "GONE"),
        ("device.registered", "ACTIVATED", bob, True, None),
        ("device.deactivated", "REMOVED", bob, False, None),
    ]
    first = queued(row)[0][1]
    assert first == {
        **made,
        "userId": None,
        "app": None,
        "change": "REGISTERED",
        "reason": None,
    }


def test_device_already_holding_the_new_token_is_removed(api, org, row):
    contact_id = str(factories.contact(org).pk)
    old, new = (
        api.call("POST", "/devices", android(contact_id, number)).json()["deviceId"]
        for number in (1, 2)
    )
    api.call("POST", f"/devices/{old}/replace", {"token": "token-2"})
    assert [(kind, data["deviceId"]) for kind, data in queued(row)[2:]] == [
        ("device.deactivated", new),
        ("device.registered", old),
    ]


def test_deactivation_of_unseen_devices_is_queued(api, org, row):
    contact_id = str(factories.contact(org).pk)
    api.call("POST", "/devices", android(contact_id))
    Device.objects.update(last_seen_at=datetime.now(UTC) - timedelta(days=271))
    tasks.retire_unseen_devices()
    kind, data = queued(row)[1]
    assert (kind, data["reason"]) == ("device.deactivated", "STALE")


def test_merge_is_queued_for_the_remaining_contact(api, org, row):
    stays, goes = factories.contacts(org, 2)
    api.call("POST", "/devices", android(str(goes.pk)))
    api.call("POST", "/suppressions", {"channel": "EMAIL", "contactId": str(goes.pk)})
    api.call("POST", "/consent", yes(str(goes.pk), "OPTED_OUT"))
    before, merged_id = len(queued(row)), str(goes.pk)
    contact_merge.merge(stays, goes, actor=audit.COMMAND_LINE, reason="twice")
    merged = queued(row)[before:]
    assert {(kind, data["contactId"]) for kind, data in merged} == {
        ("consent.changed", str(stays.pk)),
        ("suppression.lifted", merged_id),
        ("suppression.created", str(stays.pk)),
        ("device.registered", str(stays.pk)),
    }


@pytest.mark.promise("webhooks-11")
def test_rolled_back_change_queues_nothing(org, row):
    entry = NewSuppression(org.pk, "EMAIL", "ada@example.com", "MANUAL", "API")
    with pytest.raises(RuntimeError), transaction.atomic():
        suppressions.suppress_alone([entry])
        assert types(row) == ["suppression.created"]
        raise RuntimeError
    assert queued(row) == []


def test_message_endpoints_and_foreign_endpoints_get_no_changes(api, org):
    messages = endpoint(org, URL, "message.*")
    theirs = endpoint(factories.organization("other"), URL, *ALL_CHANGES)
    api.call("POST", "/suppressions", {"channel": "EMAIL", "address": "ada@example.com"})
    assert (queued(messages), queued(theirs)) == ([], [])


@pytest.mark.parametrize("count", [1, 100])
def test_statements_do_not_grow_with_changes_or_endpoints(org, count):
    """The first number is without an endpoint, the second with three of them."""
    people = [str(each.pk) for each in factories.contacts(org, count)]
    decisions = [
        ledger.ConsentDecision(each, "EMAIL", "MARKETING", "OPTED_IN", "API", None)
        for each in people
    ]
    entries = [
        NewSuppression(org.pk, "EMAIL", "", "MANUAL", "API", contact_id=each) for each in people
    ]
    rows = Suppression.objects.filter(organization_id=org.pk)
    steps = {
        "decide": lambda: ledger.record(org.pk, decisions),
        "suppress": lambda: suppressions.suppress(entries),
        "lift": lambda: suppressions.remove(rows),
        "register": lambda: devices.register(
            org.pk,
            [read_device(android(each, each)) for each in people],
            device_events.write,
        ),
        "sweep": tasks.retire_unseen_devices,
    }
    statements = {}
    for number in (0, 3):
        Device.objects.all().delete()
        for _ in range(number):
            endpoint(org, URL, *ALL_CHANGES)
        for name, step in steps.items():
            if name == "sweep":
                Device.objects.update(last_seen_at=datetime.now(UTC) - timedelta(days=271))
            with CaptureQueriesContext(connection) as captured:
                step()
            own = [each for each in captured if "SAVEPOINT" not in each["sql"]]
            statements.setdefault(name, []).append(len(own))
    assert statements == {
        "decide": [3, 3],  # the deliveries are written by the statement of the entries
        "suppress": [2, 2],
        "lift": [3, 3],
        "register": [3, 3],
        "sweep": [2, 2],
    }
    assert WebhookDelivery.objects.count() == 3 * 5 * count


def test_endpoint_receives_a_change_with_the_time_it_happened(api, org, receiver, loopback):
    row = endpoint(org, receiver.url, "consent.changed")
    made = api.call("POST", "/consent", yes(str(factories.contact(org).pk))).json()
    dispatch_all()
    WebhookDelivery.objects.update(status="FAILED")
    replays.replay_failed(row)
    dispatch_all()
    first, again = (verified(seen, row.secret)[0] for seen in receiver.seen)
    assert first == again
    assert first["timestamp"] == instant(ids.moment(ConsentEntry.objects.get().pk))
    assert (first["type"], first["data"]) == ("consent.changed", made)


def test_replayed_period_includes_queued_changes(api, org, row):
    made = api.call("POST", "/suppressions", {"channel": "EMAIL", "address": "ada@example.com"})
    assert made.status_code == 201
    replays.queue_test(row)
    WebhookDelivery.objects.update(status="DELIVERED", due_at=None)
    now = datetime.now(UTC)
    with CaptureQueriesContext(connection) as captured:
        count = replays.replay(row, now - timedelta(hours=1), now + timedelta(hours=1))
    assert (count, len(captured)) == (1, 1)
    ((claim),) = outbox.claim(10)
    assert [each.event.type for each in claim.due] == ["suppression.created"]


def test_erasure_removes_queued_changes_of_the_person_and_adds_none(api, org, row):
    ada, bob = (str(each.pk) for each in factories.contacts(org, 2))
    for contact_id in (ada, bob):
        api.call("POST", "/consent", yes(contact_id))
        api.call("POST", "/devices", android(contact_id, contact_id))
        api.call("POST", "/suppressions", {"channel": "SMS", "contactId": contact_id})
    erased = erasure.erase(org.pk, ada)
    assert erased.counts["changes"] == 3
    assert {data["contactId"] for _, data in queued(row)} == {bob}
