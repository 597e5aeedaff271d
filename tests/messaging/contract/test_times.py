"""The contract's rules for times, zones, cancelling, and the order of events."""

import datetime as dt

import pytest

from messaging.models import Delivery, Event, Message
from rme.core import ids
from rme.core.cache import TtlCache
from rme.core.db import clock
from tests import factories
from tests.rest import error, events, message, work

pytestmark = pytest.mark.django_db


# --- schedules ------------------------------------------------------------------------------------


def at_local(minutes, zone=dt.UTC):
    """Write a LOCAL schedule of so many minutes from now, in a zone."""
    moment = (clock.now() + dt.timedelta(minutes=minutes)).astimezone(zone)
    return {"mode": "LOCAL", "time": f"{moment:%H:%M}", "date": f"{moment:%Y-%m-%d}"}


@pytest.mark.promise("schedule-8")
def test_passed_local_time_is_rejected_alone_and_expires_among_several(api, org):
    late, ahead = factories.contact(org, zone="UTC"), factories.contact(org, zone="Etc/GMT+5")
    schedule = at_local(-60)
    why = "this time has passed there"
    refused = error("INVALID_PAYLOAD", f"schedule.time: {why}", ("schedule.time", why))
    alone = api.send(message(late, schedule=schedule))
    assert (alone.status_code, alone.json()) == (400, refused)
    assert not Message.objects.exists()
    answer = api.send(message(late, ahead, schedule=schedule)).json()
    first, second = answer["recipients"]
    assert first == {
        "contactId": str(late.pk),
        "status": "EXPIRED",
        "resolvedChannel": None,
        "provider": None,
        "scheduledFor": None,
        "error": refused["error"] | {"messageId": answer["messageId"]},
    }
    assert second["status"] == "SCHEDULED"
    assert sorted(events(answer["messageId"])) == ["accepted", "expired", "scheduled"]


@pytest.mark.promise("schedule-9")
def test_local_time_passed_just_now_is_sent_at_once(api, org):
    answer = api.send(message(factories.contact(org, zone="UTC"), schedule=at_local(-10)))
    assert (answer.status_code, answer.json()["status"]) == (202, "ACCEPTED")


@pytest.mark.promise("schedule-4")
def test_org_uses_the_organizations_zone_for_all_recipients(api, org):
    type(org).objects.filter(pk=org.pk).update(zone="Asia/Kolkata")
    TtlCache.clear_all()
    person = factories.contact(org, zone="America/New_York")
    day = (clock.now() + dt.timedelta(days=3)).date().isoformat()
    schedule = {"mode": "ORG", "time": "09:30", "date": day}
    answer = api.send(message(person, schedule=schedule)).json()
    assert answer["scheduledFor"] == f"{day}T04:00:00Z"


@pytest.mark.promise("schedule-2")
def test_contact_without_a_zone_uses_the_organizations(api, org):
    type(org).objects.filter(pk=org.pk).update(zone="Asia/Kolkata")
    TtlCache.clear_all()
    day = (clock.now() + dt.timedelta(days=3)).date().isoformat()
    schedule = {"mode": "LOCAL", "time": "09:30", "date": day}
    answer = api.send(message(factories.contact(org, zone=""), schedule=schedule)).json()
    assert answer["scheduledFor"] == f"{day}T04:00:00Z"


# --- cancelling -----------------------------------------------------------------------------------


@pytest.mark.promise("bulk-10")
def test_cancelling_ends_only_recipients_still_scheduled(api, org):
    gone = factories.contact(org, zone="UTC")
    waits = factories.contact(org, zone="Etc/GMT+5", email="grace@simulator.rme.test")
    message_id = api.send(message(gone, waits, schedule=at_local(-5))).json()["messageId"]
    work()
    answer = api.call("DELETE", f"/messages/{message_id}")
    body = answer.json()
    statuses = [each["status"] for each in body["recipients"]]
    assert (answer.status_code, body["messageId"], body["status"], statuses) == (
        200,
        message_id,
        "DELIVERED",
        ["DELIVERED", "CANCELLED"],
    )
    again = api.call("DELETE", f"/messages/{message_id}")
    assert (again.status_code, again.content) == (200, answer.content)


@pytest.mark.promise("bulk-7")
def test_cancelled_message_answers_the_send_result(api, org):
    schedule = {"mode": "AT", "at": (clock.now() + dt.timedelta(hours=1)).isoformat()}
    sent = api.send(message(factories.contact(org), schedule=schedule)).json()
    answer = api.call("DELETE", f"/messages/{sent['messageId']}")
    assert (answer.status_code, answer.json()) == (200, sent | {"status": "CANCELLED"})


def test_cancelled_message_to_several_answers_the_send_result(api, org):
    schedule = {"mode": "AT", "at": (clock.now() + dt.timedelta(hours=1)).isoformat()}
    people = factories.contacts(org, 2)
    body = message(*people, schedule=schedule)
    body["to"].append({"contactId": "01a1fb37-a4a4-7470-9fc2-6927566e64b5"})
    sent = api.send(body).json()
    for one in sent["recipients"][:2]:
        one["status"] = "CANCELLED"
    sent["recipients"][2]["error"]["details"] = []  # which field it was is not kept
    answer = api.call("DELETE", f"/messages/{sent['messageId']}").json()
    for shown in (sent, answer):  # what is left of the message as a whole
        for name in ("status", "resolvedChannel", "provider", "scheduledFor"):
            shown.pop(name)
        shown["recipients"][2].pop("resolvedChannel")
    assert answer == sent


def test_events_of_a_worker_with_a_slow_clock_are_shown(api, org):
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    delivery = Delivery.objects.get()
    early = ids.at_least(clock.now() - dt.timedelta(minutes=5))
    Event.objects.create(
        id=early,
        organization_id=org.pk,
        message_id=delivery.message_id,
        delivery_id=delivery.pk,
        type="deferred",
        at=clock.now(),
    )
    shown = api.call("GET", f"/messages/{message_id}?include=trace").json()
    assert [event["type"] for event in shown["events"]] == ["accepted", "deferred"]
    assert [step["step"] for step in shown["trace"][0]["steps"]] == ["DECISION", "WAIT"]
