"""Devices by REST: registering, moving, and being the same again."""

from datetime import datetime

import hypothesis
import orjson
import pytest
from hypothesis import strategies as st

from push.models import Device
from tests import factories
from tests.any_value import EFFORT, JSON
from tests.push.devices_scene import BROWSER, HEX, NOBODY, android, history, register, shown
from tests.push.subscriptions import Browser
from tests.rest import Api, error

pytestmark = pytest.mark.django_db


# --- registering ----------------------------------------------------------------------------------
@pytest.mark.promise("devices-1", "devices-5")
def test_a_device_is_registered(api, org):
    person = factories.contact(org)
    answer = register(
        api,
        {
            "contactId": str(person.pk),
            "platform": "ios",
            "token": HEX,
            "app": "com.example.app",
            "userId": "005x",
            "locale": "en-GB",
            "timeZone": "Europe/London",
            "environment": "sandbox",
            "name": "Ada's phone",
        },
    )
    row = Device.objects.get()
    assert (answer.status_code, answer.json()) == (201, shown(row))
    assert (row.organization_id, row.contact_id, row.user_id) == (org.pk, str(person.pk), "005x")
    assert (row.platform, row.token, row.app) == ("IOS", HEX.lower(), "com.example.app")
    assert (row.environment, row.locale, row.zone) == ("SANDBOX", "en-GB", "Europe/London")
    assert (row.name, row.active, history(row)) == ("Ada's phone", True, ["REGISTERED"])


@pytest.mark.promise("devices-3", "devices-4")
@pytest.mark.parametrize(
    ("platform", "token", "kept"),
    [
        ("IOS", HEX, HEX.lower()),
        ("IOS", "ab" * 1000, "ab" * 1000),
        ("IOS", "simulator-bounce", "simulator-bounce"),
        ("ANDROID", "dBy5hqH0SpmU:APA91b", "dBy5hqH0SpmU:APA91b"),
        ("ANDROID", "c" * 4096, "c" * 4096),
        ("PLATFORM", "0055g00000AbCdE", "0055g00000AbCdE"),
        ("WEB", BROWSER.subscription, BROWSER.text),
        ("WEB", orjson.dumps(BROWSER.subscription).decode(), BROWSER.text),
        ("WEB", {**BROWSER.subscription, "expirationTime": None}, BROWSER.text),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, str) else "object",
)
def test_each_platform_has_its_token(api, org, platform, token, kept):
    body = {"userId": "u1", "platform": platform, "token": token}
    answer = register(api, body)
    row = Device.objects.get()
    assert (answer.status_code, answer.json()) == (201, shown(row, contactId=None))
    assert row.token == kept


@pytest.mark.promise("devices-6")
def test_the_same_token_again_is_the_same_device(api, org):
    person = factories.contact(org)
    first = register(api, android(person, name="Old"))
    Device.objects.update(
        active=False, inactive_reason="UNREGISTERED", inactive_since="2026-01-01T00:00Z"
    )
    again = register(api, android(person, name="New"))
    row = Device.objects.get()
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == shown(row)
    assert again.json()["deviceId"] == first.json()["deviceId"]
    # As times: an instant without a fraction, as text, comes after those of the same second.
    before, after = (datetime.fromisoformat(each.json()["registeredAt"]) for each in (first, again))
    assert after > before
    assert (row.active, row.inactive_reason, row.inactive_since) == (True, "", None)
    assert (row.name, history(row)) == ("New", ["REGISTERED", "ACTIVATED"])


def test_repeated_registration_adds_no_history(api, org):
    person = factories.contact(org)
    for _ in range(3):
        register(api, android(person))
    assert history(Device.objects.get()) == ["REGISTERED"]


@pytest.mark.promise("devices-7")
def test_a_token_belongs_to_the_last_to_register_it(api, org):
    ada, bob = factories.contact(org), factories.contact(org, first_name="Bob")
    device_id = register(api, android(ada, name="Ada's")).json()["deviceId"]
    answer = register(api, android(bob))
    row = Device.objects.get()
    assert (answer.status_code, answer.json()) == (200, shown(row, contactId=str(bob.pk)))
    assert (str(row.pk), row.name, history(row)) == (device_id, "", ["REGISTERED", "MOVED"])


@pytest.mark.promise("devices-7")
def test_the_history_keeps_the_latest(api, org):
    people = [factories.contact(org), factories.contact(org)]
    for turn in range(52):
        register(api, android(people[turn % 2]))
    assert history(Device.objects.get()) == ["MOVED"] * 50


def test_a_subscription_with_new_keys_is_the_same_device(api):
    one, other = Browser(), Browser()
    for browser in (one, other):
        body = {"userId": "u1", "platform": "WEB", "token": browser.subscription}
        answer = register(api, body)
    row = Device.objects.get()
    assert (answer.status_code, row.token) == (200, other.text)


@pytest.mark.promise("devices-8")
def test_an_unknown_contact_is_not_found(api, org):
    theirs = factories.contact(factories.organization("other"))
    for contact_id in (NOBODY, "nonsense", str(theirs.pk)):
        answer = register(api, {"contactId": contact_id, "platform": "ANDROID", "token": "t"})
        why = "no such contact"
        expected = error("NOT_FOUND", f"contactId: {why}", ("contactId", why))
        assert (answer.status_code, answer.json()) == (404, expected)
    assert not Device.objects.exists()


@pytest.mark.promise("devices-14")
def test_the_vapid_key_is_a_point(api, settings):
    settings.VAPID_PRIVATE_KEY = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"  # RFC 8291 §A
    answer = api.call("GET", "/devices/vapid-key")
    key = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
    assert (answer.status_code, answer.json()) == (200, {"key": key})


# --- anything -------------------------------------------------------------------------------------
FIELDS = [
    "contactId", "userId", "platform", "token", "app", "environment", "locale", "timeZone", "name",
    "entries", "anything",
]  # fmt: skip


@pytest.mark.promise("devices-20")
@EFFORT
@hypothesis.given(
    name=st.sampled_from(FIELDS),
    value=JSON,
    platform=st.sampled_from(["IOS", "ANDROID", "WEB", "PLATFORM"]),
    many=st.booleans(),
)
def test_any_value_in_any_field_is_stored_or_rejected_with_details(db, name, value, platform, many):
    from rme.tenants.models import Organization

    found = Organization.objects.filter(pk="acme").first()
    api = Api(found or factories.organization())
    body = {"userId": "u1", "platform": platform, "token": "t", name: value}
    answer = register(api, {"entries": [body]} if many else body)
    assert answer.status_code in (200, 201, 400, 404), answer.json()
    if answer.status_code == 400:
        assert answer.json()["error"]["details"], answer.json()
