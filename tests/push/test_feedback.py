"""Dead tokens: feedback deactivates their devices, unless they registered since."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.feedback import tasks
from messaging.webhooks import device_events
from push import feedback
from push.feedback import DeviceOutcome
from push.models import Device, Feedback
from rme.core.db import clock
from rme.core.outcomes import Accepted, Gone, Misconfigured, Rejected, Retryable, Unknown
from tests import factories
from tests.push.feedback_scene import store

pytestmark = pytest.mark.django_db
OTHERS = [
    Accepted("x"), Retryable("no"), Rejected("no"), Rejected("no", hard=True), Misconfigured("no"),
    Unknown("no"),
]  # fmt: skip


@pytest.fixture
def person(org):
    return factories.contact(org)


def device_outcome(device, outcome=None, at=None, org=None):
    whose = org.pk if org else device.organization_id
    return DeviceOutcome(whose, device.pk, at or clock.now(), outcome or Gone("Unregistered"))


def now():
    """Return a time after all registrations, by the clock that stamped them."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        return cursor.fetchone()[0] + timedelta(milliseconds=1)


@pytest.mark.promise("push-answers-22")
def test_a_dead_token_deactivates_its_device_alone(org, person):
    dead, alive = factories.device(org, person, "dead"), factories.device(org, person, "alive")
    store([device_outcome(dead, at=now()), device_outcome(alive, Accepted("x"))])
    tasks.retire_devices()
    dead.refresh_from_db()
    alive.refresh_from_db()
    assert (dead.active, dead.inactive_reason, alive.active) == (False, "Unregistered", True)
    assert abs(dead.inactive_since - clock.now()) < timedelta(minutes=1)
    (entry,) = dead.history
    at = datetime.fromisoformat(entry.pop("at"))
    assert entry == {"what": "DEACTIVATED", "reason": "Unregistered"}
    assert abs(at - clock.now()) < timedelta(minutes=1)
    assert (alive.history, Feedback.objects.count()) == ([], 0)


@pytest.mark.promise("push-answers-23")
@pytest.mark.parametrize("outcome", OTHERS, ids=lambda outcome: type(outcome).__name__)
def test_no_other_outcome_touches_a_device(org, person, outcome):
    device = factories.device(org, person)
    one = device_outcome(device, outcome, now())
    with CaptureQueriesContext(connection) as captured:
        store([one])
    assert len(captured) == 0
    tasks.retire_devices()
    device.refresh_from_db()
    assert (device.active, device.history) == (True, [])


@pytest.mark.promise("push-answers-3")
@pytest.mark.parametrize(
    ("registered", "active"), [(-1000, False), (0, False), (1, True), (60_000, True)]
)
@pytest.mark.parametrize("by", ["the service's time", "the attempt's"])
def test_device_registered_since_stays_active(org, person, registered, active, by):
    died = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
    device = factories.device(org, person)
    Device.objects.update(registered_at=died + timedelta(milliseconds=registered, microseconds=500))
    if by == "the attempt's":
        one = device_outcome(device, at=died)
    else:
        one = device_outcome(device, Gone("Unregistered", int(died.timestamp() * 1000)), now())
    store([one])
    tasks.retire_devices()
    device.refresh_from_db()
    assert device.active is active


@pytest.mark.promise("devices-6")
def test_device_registered_again_becomes_active(api, org, person):
    device = factories.device(org, person, "token")
    store([device_outcome(device, at=now())])
    tasks.retire_devices()
    body = {"contactId": str(person.pk), "platform": "ANDROID", "token": "token"}
    answer = api.call("POST", "/devices", body)
    assert (answer.status_code, answer.json()["active"]) == (200, True)
    device.refresh_from_db()
    assert [entry["what"] for entry in device.history] == ["DEACTIVATED", "ACTIVATED"]


def test_outcome_of_another_organization_is_ignored(org, person):
    other = factories.organization("other")
    device = factories.device(org, person)
    store([device_outcome(device, at=now(), org=other)])
    tasks.retire_devices()
    device.refresh_from_db()
    assert (device.active, Feedback.objects.count()) == (True, 0)


def test_repeated_feedback_counts_once(org, person):
    device = factories.device(org, person)
    for _ in range(2):
        store([device_outcome(device, at=now()), device_outcome(device, at=now())])
        tasks.retire_devices()
    device.refresh_from_db()
    assert len(device.history) == 1


@pytest.mark.promise("push-answers-22")
@pytest.mark.parametrize("count", [1, 200])
def test_a_batch_is_one_statement(org, person, count):
    devices = [factories.device(org, person, f"token-{n}") for n in range(count)]
    everything = [device_outcome(device, at=now()) for device in devices]
    with CaptureQueriesContext(connection) as captured:
        store(everything)
        assert feedback.retire(device_events.write) == (count, count)
    assert len(captured) == 3  # stored, retired, queued for endpoints
    assert not Device.objects.filter(active=True).exists()


@pytest.mark.promise("push-answers-25")
def test_devices_not_seen_for_long_are_stale(org, person):
    today = clock.now()
    seen = {
        "fresh": (timedelta(days=269), "ANDROID", True),
        "stale": (timedelta(days=271), "ANDROID", True),
        "phone": (timedelta(days=900), "IOS", True),
        "dead": (timedelta(days=900), "ANDROID", False),
    }
    for name, (ago, platform, active) in seen.items():
        device = factories.device(org, person, name)
        Device.objects.filter(pk=device.pk).update(
            last_seen_at=today - ago, platform=platform, active=active
        )
    with CaptureQueriesContext(connection) as captured:
        tasks.retire_unseen_devices()
    assert len(captured) == 2  # retired, queued for endpoints
    found = Device.objects.order_by("token").values_list("token", "active", "inactive_reason")
    assert list(found) == [
        ("dead", False, ""), ("fresh", True, ""), ("phone", True, ""), ("stale", False, "STALE"),
    ]  # fmt: skip
