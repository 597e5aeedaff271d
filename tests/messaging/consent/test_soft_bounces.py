"""Soft bounces: five in a row suppress a number for a while, and fewer do not."""

from datetime import UTC, datetime, timedelta

import pytest

from messaging.consent import soft_bounces
from messaging.models import Attempt, Callback, Delivery, Event, Suppression
from rme.core import ids
from tests import factories
from tests.fakes import providers as fakes
from tests.messaging.feedback.sms_scene import attempt, settle, state
from tests.rest import events
from tests.scrape import counted, labels

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def report(scene, word, code=""):
    scene.call(fakes.report("twilio", scene.url, attempt(), word, code))
    settle()


def earlier(org, person, days, *, soft=True, status="FAILED", channel="SMS", address=None):
    """Write a send of some days ago that ended so."""
    identifier = ids.at_least(datetime.now(UTC) - days * DAY)
    common = {"organization_id": org.pk, "message_id": identifier}
    Delivery.objects.create(
        id=identifier,
        **common,
        contact_id=str(person.pk),
        category="TRANSACTIONAL",
        channels=[],
        channel=channel,
        address=address or person.mobile,
        status=status,
        expires_at=datetime.now(UTC),
    )
    detail = {"reason": "Twilio 30003", "soft": True} if soft else None
    Event.objects.create(
        **common, delivery_id=identifier, type="failed", channel=channel, detail=detail
    )


@pytest.mark.promise("webhooks-5")
def test_five_in_a_row_suppress_the_number_for_a_while(org, api, scene):
    person = factories.contact(org)
    for days in (8, 6, 4, 2):
        earlier(org, person, days)
    message_id = scene.send(api, person)
    assert not Suppression.objects.exists()
    report(scene, "failed", "30003")
    row = Suppression.objects.get()
    assert (row.channel, row.address, row.reason, row.source, row.note) == (
        "SMS", person.mobile, "INVALID_ADDRESS", "PROVIDER", "5 soft bounces in a row",
    )  # fmt: skip
    assert timedelta(days=89) < row.expires_at - datetime.now(UTC) < timedelta(days=91)
    assert (state_of(message_id), events(message_id)) == ("FAILED", ["accepted", "sent", "failed"])
    shown = api.get(message_id)["events"][-1]
    assert shown["detail"] == {"reason": "Twilio 30003", "soft": True}


def state_of(message_id):
    return Delivery.objects.get(message_id=message_id).status


SCENES = {
    "four": lambda org, person: [earlier(org, person, days) for days in (8, 6, 4)],
    "all within a day": lambda org, person: [
        earlier(org, person, days / 10) for days in (8, 6, 4, 2)
    ],
    "one arrived": lambda org, person: [
        earlier(org, person, days, status="DELIVERED" if days == 4 else "FAILED", soft=days != 4)
        for days in (8, 6, 4, 2)
    ],
    "one failed otherwise": lambda org, person: [
        earlier(org, person, days, soft=days != 4) for days in (8, 6, 4, 2)
    ],
    "too long ago": lambda org, person: [earlier(org, person, days) for days in (40, 38, 36, 34)],
    "of another number": lambda org, person: [
        earlier(org, person, days, address="+12025559999") for days in (8, 6, 4, 2)
    ],
    "by another channel": lambda org, person: [
        earlier(org, person, days, channel="EMAIL") for days in (8, 6, 4, 2)
    ],
    "of another organization": lambda org, person: [
        earlier(factories.organization(f"other{days}"), person, days) for days in (8, 6, 4, 2)
    ],
}


@pytest.mark.parametrize("scene_name", SCENES)
def test_fewer_than_five_soft_bounces_in_a_row_suppress_nothing(org, api, scene, scene_name):
    person = factories.contact(org)
    SCENES[scene_name](org, person)
    scene.send(api, person)
    report(scene, "failed", "30003")
    assert not Suppression.objects.exists()


def test_failure_other_than_a_soft_bounce_is_not_counted(org, api, scene):
    person = factories.contact(org)
    for days in (8, 6, 4, 2):
        earlier(org, person, days)
    scene.send(api, person)
    report(scene, "failed", "30007")
    assert not Suppression.objects.exists()


@pytest.mark.parametrize("count", [1, 20])
def test_batch_of_any_size_needs_one_query(org, api, count, django_assert_num_queries):
    people = factories.contacts(org, count)
    for person in people:
        for days in (8, 6, 4, 2, 0):
            earlier(org, person, days)
    found = list(Delivery.objects.values_list("pk", flat=True))
    with django_assert_num_queries(1):
        entries = soft_bounces.find_dead_addresses(found, datetime.now(UTC))
    assert {entry.address for entry in entries} == {person.mobile for person in people}
    with django_assert_num_queries(0):
        assert soft_bounces.find_dead_addresses([], datetime.now(UTC)) == []


@pytest.mark.promise("webhooks-4")
def test_unknown_code_is_stored_and_counted(org, api, scene, counting):
    message_id = scene.send(api, factories.contact(org))
    report(scene, "failed", "30999")
    assert (state(), events(message_id)) == ("FAILED", ["accepted", "sent", "failed"])
    assert api.get(message_id)["events"][-1]["detail"] == {"reason": "Twilio 30999"}
    assert b"30999" in bytes(Callback.objects.get().body)
    code = labels(provider="twilio", code="30999")
    assert counted("rme_unknown_report_codes_total") == {code: 1.0}
    assert Attempt.objects.count() == 1
