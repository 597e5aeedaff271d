"""Devices by REST: registering, moving, finding, replacing, forgetting."""

import hypothesis
import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import strategies as st

from push.models import Device, token_digest
from rme.core.clock import iso
from tests import factories
from tests.messaging.test_openapi import EFFORT, JSON
from tests.push.subscriptions import Browser
from tests.rest import Api, error

pytestmark = pytest.mark.django_db

HEX = "0aB1" * 16
NOBODY = "01a1fb37-a4a4-7470-9fc2-6927566e64b5"
UNKNOWN = error("NOT_FOUND", "There is no such device.")
BROWSER = Browser()


def register(api, body):
    return api.call("POST", "/devices", body)


def android(person, token="token-1", **fields):
    return {"contactId": str(person.pk), "platform": "ANDROID", "token": token, **fields}


def shown(row, **fields):
    return {
        "deviceId": str(row.pk),
        "contactId": row.contact_id or None,
        "platform": row.platform,
        "active": row.active,
        "registeredAt": iso(row.registered_at),
        **fields,
    }


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


def told(row):
    return [entry["what"] for entry in row.history]


# --- registering ----------------------------------------------------------------------------------
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
    assert (row.name, row.active, told(row)) == ("Ada's phone", True, ["REGISTERED"])


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


def endpoint(url):
    return {"platform": "WEB", "token": {**BROWSER.subscription, "endpoint": url}}


def keys(**given):
    both = {**BROWSER.subscription["keys"], **given}
    return {"platform": "WEB", "token": {**BROWSER.subscription, "keys": both}}


HTTPS = "must be an https address"
HOST = "is not of a push service that is known here"
POINT = "must be a public key on P-256, base64url"
SIXTEEN = "must be 16 bytes, base64url"
SUBSCRIPTION = "must be a PushSubscription: endpoint and keys"


@pytest.mark.parametrize(
    ("given", "field", "why"),
    [
        ({"platform": "IOS", "token": "ab" * 31}, "token", "must be hex, 64 digits or more"),
        ({"platform": "IOS", "token": "zz" * 32}, "token", "must be hex, 64 digits or more"),
        ({"platform": "IOS", "token": f"{HEX}/../x"}, "token", "must be hex, 64 digits or more"),
        ({"platform": "IOS", "token": "ab" * 2049}, "token", "must be hex, 64 digits or more"),
        ({"platform": "IOS", "token": BROWSER.subscription}, "token", "must be a string"),
        ({"platform": "ANDROID", "token": 7}, "token", "must be a string"),
        (
            {"platform": "ANDROID", "token": "a b"},
            "token",
            "must be an FCM registration token or installation id",
        ),
        ({"platform": "PLATFORM", "token": ""}, "token", "must be the platform's id of a user"),
        ({"platform": "WEB", "token": "x"}, "token", SUBSCRIPTION),
        ({"platform": "WEB", "token": None}, "token", SUBSCRIPTION),
        ({"platform": "WEB", "token": {"endpoint": "x"}}, "token", SUBSCRIPTION),
        (
            {"platform": "WEB", "token": {**BROWSER.subscription, "x": 1}},
            "token.x",
            "unknown field",
        ),
        (endpoint(None), "token.endpoint", "must be a string"),
        (endpoint("http://fcm.googleapis.com/x"), "token.endpoint", HTTPS),
        (endpoint("https://fcm.googleapis.com:8443/x"), "token.endpoint", "must be on port 443"),
        (endpoint("https://example.com/fcm.googleapis.com"), "token.endpoint", HOST),
        (endpoint("https://evilfcm.googleapis.com.example.com/"), "token.endpoint", HOST),
        (endpoint("https://evil-notify.windows.com/"), "token.endpoint", HOST),
        (endpoint("https://evilnotify.windows.com/"), "token.endpoint", HOST),
        (endpoint("https://fcm.googleapis.com@127.0.0.1/"), "token.endpoint", HTTPS),
        (endpoint("https://127.0.0.1\\@fcm.googleapis.com/"), "token.endpoint", HTTPS),
        (endpoint("https://127.0.0.1#.fcm.googleapis.com/"), "token.endpoint", HTTPS),
        (endpoint("https://fcm.googleapis.com/\u00e9"), "token.endpoint", HTTPS),
        (endpoint("https://fcm.googleapis.com/" + "x" * 2000), "token.endpoint", HTTPS),
        (keys(p256dh="AAAA"), "token.keys.p256dh", POINT),
        (keys(p256dh="B" + "A" * 86), "token.keys.p256dh", POINT),
        (keys(p256dh=7), "token.keys.p256dh", POINT),
        (keys(auth="AAAA"), "token.keys.auth", SIXTEEN),
        (keys(auth=None), "token.keys.auth", SIXTEEN),
        ({"app": "a b"}, "app", "String should match pattern '^[A-Za-z0-9._:/-]+$'"),
        ({"timeZone": "Mars/Base"}, "timeZone", "must be an IANA time zone"),
        ({"environment": "TEST"}, "environment", "Input should be 'PRODUCTION' or 'SANDBOX'"),
        ({"contactId": None, "userId": None}, "contactId", "give contactId or userId"),
        ({"name": "a\x00b"}, "name", "must not contain NUL characters"),
        ({"anything": 1}, "anything", "unknown field"),
    ],
)
def test_what_is_wrong_is_named(api, given, field, why):
    body = {"userId": "u1", "platform": "ANDROID", "token": "t", **given}
    answer = register(api, body)
    expected = error("INVALID_PAYLOAD", f"{field}: {why}", (field, why))
    assert (answer.status_code, answer.json()) == (400, expected)
    assert not Device.objects.exists()


@pytest.mark.parametrize("host", ["web.push.apple.com", "wns2-par02p.notify.windows.com"])
def test_endpoints_of_known_services_are_taken(api, host):
    browser = Browser(f"https://{host}/w/?token=abc")
    answer = register(api, {"userId": "u1", "platform": "WEB", "token": browser.subscription})
    assert answer.status_code == 201


def test_a_host_that_the_deployment_opens_is_taken(api, settings):
    settings.OUTBOUND_OPEN_HOSTS = ["push.internal:8443"]
    browser = Browser("https://push.internal:8443/x")
    body = {"userId": "u1", "platform": "WEB", "token": browser.subscription}
    assert register(api, body).status_code == 201
    other = Browser("https://push.internal:8444/x")
    assert register(api, {**body, "token": other.subscription}).status_code == 400


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
    assert again.json()["registeredAt"] > first.json()["registeredAt"]
    assert (row.active, row.inactive_reason, row.inactive_since) == (True, "", None)
    assert (row.name, told(row)) == ("New", ["REGISTERED", "ACTIVATED"])


def test_registering_at_every_start_leaves_no_trace(api, org):
    person = factories.contact(org)
    for _ in range(3):
        register(api, android(person))
    assert told(Device.objects.get()) == ["REGISTERED"]


def test_a_token_belongs_to_the_last_to_register_it(api, org):
    ada, bob = factories.contact(org), factories.contact(org, first_name="Bob")
    device_id = register(api, android(ada, name="Ada's")).json()["deviceId"]
    answer = register(api, android(bob))
    row = Device.objects.get()
    assert (answer.status_code, answer.json()) == (200, shown(row, contactId=str(bob.pk)))
    assert (str(row.pk), row.name, told(row)) == (device_id, "", ["REGISTERED", "MOVED"])


def test_the_history_keeps_the_latest(api, org):
    people = [factories.contact(org), factories.contact(org)]
    for turn in range(52):
        register(api, android(people[turn % 2]))
    assert told(Device.objects.get()) == ["MOVED"] * 50


def test_a_subscription_with_new_keys_is_the_same_device(api):
    one, other = Browser(), Browser()
    for browser in (one, other):
        body = {"userId": "u1", "platform": "WEB", "token": browser.subscription}
        answer = register(api, body)
    row = Device.objects.get()
    assert (answer.status_code, row.token) == (200, other.text)


def test_an_unknown_contact_is_not_found(api, org):
    theirs = factories.contact(factories.organization("other"))
    for contact_id in (NOBODY, "nonsense", str(theirs.pk)):
        answer = register(api, {"contactId": contact_id, "platform": "ANDROID", "token": "t"})
        why = "no such contact"
        expected = error("NOT_FOUND", f"contactId: {why}", ("contactId", why))
        assert (answer.status_code, answer.json()) == (404, expected)
    assert not Device.objects.exists()


# --- many -----------------------------------------------------------------------------------------
def test_of_many_a_bad_one_fails_no_other(api, org):
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


@pytest.mark.parametrize("count", [1, 50])
def test_many_cost_as_many_statements_as_one(api, org, count):
    person = factories.contact(org)
    entries = [android(person, f"token-{n}") for n in range(count)]
    api.call("POST", "/devices", {"entries": entries})
    with CaptureQueriesContext(connection) as captured:
        answer = api.call("POST", "/devices", {"entries": entries})
    assert (answer.json()["accepted"], len(captured)) == (count, 2)


# --- finding --------------------------------------------------------------------------------------
def test_the_newest_come_first_page_by_page(api, org):
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


@pytest.mark.parametrize("count", [1, 50])
def test_a_page_is_one_query(api, org, count):
    person = factories.contact(org)
    for number in range(count):
        factories.device(org, person, f"t{number}")
    api.call("GET", "/devices")  # the access token is looked up once
    with CaptureQueriesContext(connection) as captured:
        assert len(api.call("GET", f"/devices?contactId={person.pk}").json()["devices"]) == count
    assert len(captured) == 1


# --- replacing ------------------------------------------------------------------------------------
def replace(api, device_id, token):
    return api.call("POST", f"/devices/{device_id}/replace", {"token": token})


def test_a_subscription_is_replaced(api, org):
    person = factories.contact(org)
    body = {"contactId": str(person.pk), "platform": "WEB", "token": BROWSER.subscription}
    device_id = register(api, body).json()["deviceId"]
    Device.objects.update(active=False, inactive_reason="Gone")
    new = Browser("https://fcm.googleapis.com/fcm/send/new")
    answer = replace(api, device_id, new.subscription)
    row = Device.objects.get()
    assert (answer.status_code, answer.json()) == (200, shown(row, deviceId=device_id))
    assert (row.token, row.active, told(row)) == (new.text, True, ["REGISTERED", "REPLACED"])
    assert register(api, {**body, "token": new.subscription}).status_code == 200


def test_a_device_that_has_the_new_token_already_was_the_same(api, org):
    person = factories.contact(org)
    old = register(api, android(person, "old")).json()["deviceId"]
    register(api, android(person, "new"))
    answer = replace(api, old, "new")
    row = Device.objects.get()
    assert (answer.status_code, answer.json()) == (200, shown(row, deviceId=old))
    assert row.token_digest == token_digest("new")


def test_a_token_of_another_platform_does_not_replace(api, org):
    row = factories.device(org, factories.contact(org))
    answer = replace(api, row.pk, BROWSER.subscription)
    expected = error("INVALID_PAYLOAD", "token: must be a string", ("token", "must be a string"))
    assert (answer.status_code, answer.json()) == (400, expected)


# --- forgetting, and what is another's ------------------------------------------------------------
def test_a_device_is_forgotten(api, org):
    row = factories.device(org, factories.contact(org))
    answer = api.call("DELETE", f"/devices/{row.pk}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert "Content-Type" not in answer.headers
    assert not Device.objects.exists()
    again = api.call("DELETE", f"/devices/{row.pk}")
    assert (again.status_code, again.json()) == (404, UNKNOWN)


@pytest.mark.parametrize("device_id", [NOBODY, "nonsense", "a%00b"])
def test_an_unknown_device_is_not_found(api, device_id):
    for answer in (api.call("DELETE", f"/devices/{device_id}"), replace(api, device_id, "t")):
        assert (answer.status_code, answer.json()) == (404, UNKNOWN)


def test_another_organizations_devices_are_not_there(api, org):
    other = factories.organization("other")
    theirs = factories.device(other, factories.contact(other), "shared")
    before = list(Device.objects.values())
    assert api.call("GET", "/devices").json() == {"devices": [], "nextCursor": None}
    query = f"/devices?contactId={theirs.contact_id}"
    assert api.call("GET", query).json() == {"devices": [], "nextCursor": None}
    for answer in (api.call("DELETE", f"/devices/{theirs.pk}"), replace(api, theirs.pk, "t")):
        assert (answer.status_code, answer.json()) == (404, UNKNOWN)
    assert register(api, android(factories.contact(org), "shared")).status_code == 201
    assert list(Device.objects.filter(organization=other).values()) == before


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


@EFFORT
@hypothesis.given(
    name=st.sampled_from(FIELDS),
    value=JSON,
    platform=st.sampled_from(["IOS", "ANDROID", "WEB", "PLATFORM"]),
    many=st.booleans(),
)
def test_any_value_in_any_field_is_an_answer_that_names_it(db, name, value, platform, many):
    from rme.tenants.models import Organization

    found = Organization.objects.filter(pk="acme").first()
    api = Api(found or factories.organization())
    body = {"userId": "u1", "platform": platform, "token": "t", name: value}
    answer = register(api, {"entries": [body]} if many else body)
    assert answer.status_code in (200, 201, 400, 404), answer.json()
    if answer.status_code == 400:
        assert answer.json()["error"]["details"], answer.json()
