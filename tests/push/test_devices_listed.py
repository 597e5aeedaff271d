"""Registering many devices, and listing them page by page."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from push.models import Device
from rme.core.db.clock import iso
from tests import factories
from tests.push.devices_scene import android, shown
from tests.rest import error

pytestmark = pytest.mark.django_db


def listed(row, **fields):
    return (
        shown(
            row,
            userId=None,
            app=None,
            environment="PRODUCTION",
            locale=None,
            timeZone=None,
            name=None,
            lastSeenAt=iso(row.last_seen_at),
            inactiveReason=None,
            inactiveSince=None,
        )
        | fields
    )


# --- many -----------------------------------------------------------------------------------------
@pytest.mark.promise("devices-9")
def test_invalid_device_among_many_is_rejected_alone(api, org):
    ada, bob = factories.contact(org), factories.contact(org)
    entries = [android(ada), {"platform": "IOS"}, android(bob, "token-2"), android(bob)]
    answer = api.call("POST", "/devices", {"entries": entries})
    rows = {row.token: row for row in Device.objects.all()}
    (of_one, of_two) = (shown(rows[f"token-{n}"], contactId=str(bob.pk)) for n in (1, 2))
    missing = error("INVALID_PAYLOAD", "token: is required", ("token", "is required"))["error"]
    assert (answer.status_code, answer.json()) == (
        201,
        {
            "accepted": 3,
            "rejected": 1,
            "results": [
                {"index": 0, "entry": of_one},
                {"index": 1, "error": missing},
                {"index": 2, "entry": of_two},
                {"index": 3, "entry": of_one},  # the last to say it has it
            ],
        },
    )


@pytest.mark.promise("devices-9")
@pytest.mark.parametrize("count", [1, 50])
def test_many_devices_need_the_same_statements_as_one(api, org, count):
    person = factories.contact(org)
    entries = [android(person, f"token-{n}") for n in range(count)]
    api.call("POST", "/devices", {"entries": entries})
    with CaptureQueriesContext(connection) as captured:
        answer = api.call("POST", "/devices", {"entries": entries})
    assert (answer.json()["accepted"], len(captured)) == (count, 2)


# --- finding --------------------------------------------------------------------------------------
@pytest.mark.promise("devices-10", "devices-19")
def test_newest_suppressions_come_first_across_pages(api, org):
    ada, bob = factories.contact(org), factories.contact(org)
    for number in range(3):
        factories.device(org, ada, f"a{number}")
        factories.device(org, bob, f"b{number}")
    rows = list(Device.objects.order_by("-pk"))
    answer = api.call("GET", "/devices")
    assert answer.json() == {"devices": [listed(row) for row in rows], "nextCursor": None}
    first = api.call("GET", f"/devices?contactId={ada.pk}&limit=2")
    cursor = first.json()["nextCursor"]
    assert first.json()["devices"] == [listed(rows[1]), listed(rows[3])]
    assert f"contactId={ada.pk}&limit=2&cursor={cursor}" in first.headers["Link"]
    second = api.call("GET", f"/devices?contactId={ada.pk}&limit=2&cursor={cursor}")
    assert second.json() == {"devices": [listed(rows[5])], "nextCursor": None}


def test_a_dead_device_says_why(api, org):
    row = factories.device(org, factories.contact(org))
    Device.objects.update(
        active=False, inactive_reason="Unregistered", inactive_since="2026-01-02T03:04:05Z"
    )
    found = api.call("GET", "/devices").json()["devices"]
    expected = listed(
        row, active=False, inactiveReason="Unregistered", inactiveSince="2026-01-02T03:04:05Z"
    )
    row.refresh_from_db()
    assert found == [expected | {k: iso(getattr(row, n)) for k, n in TIMES.items()}]


TIMES = {"registeredAt": "registered_at", "lastSeenAt": "last_seen_at"}


@pytest.mark.promise("devices-10")
@pytest.mark.parametrize("count", [1, 50])
def test_a_page_is_one_query(api, org, count):
    person = factories.contact(org)
    for number in range(count):
        factories.device(org, person, f"t{number}")
    api.call("GET", "/devices")  # the access token is looked up once
    with CaptureQueriesContext(connection) as captured:
        assert len(api.call("GET", f"/devices?contactId={person.pk}").json()["devices"]) == count
    assert len(captured) == 1
