"""Every row of the contract's tables, from the send to what stays of it.

What became of the attempt, whether the device is dead and why, how the account's circuit stands,
and whether the account rests. What an answer means is at the top of each sender's file.
"""

import json

import pytest

from messaging.accept import send_push
from messaging.delivery.accounts import circuits
from messaging.feedback import tasks
from messaging.models import Attempt, Delivery, ProviderAccount
from push.models import Device
from push.providers import apns, salesforce
from rme.transport import AddressPolicy, Transport
from tests import factories
from tests.fakes.apns import apple
from tests.fakes.fcm import google
from tests.fakes.webpush import push_service
from tests.push.providers.test_fcm import failure
from tests.push.providers.test_salesforce import refused, whole
from tests.push.providers.test_salesforce import salesforce as salesforce_service
from tests.rest import work

pytestmark = pytest.mark.django_db

IOS, OTHER_IOS = "ab" * 32, "cd" * 32
ANDROID, USER, OTHER_USER = "token-1", "0055g00000AbCdE", "0055g00000AbCdF"
LONG_AGO, LATER = 1_000_000_000_000, 4_000_000_000_000

TAKEN = ("Accepted", "SENT", "CLOSED")
DEAD = ("Gone", "FAILED", "CLOSED")
PAYLOAD = ("Rejected", "FAILED", "CLOSED")
RECIPIENT = PAYLOAD
CONFIG = ("Misconfigured", "ACCEPTED", "OPEN")
RETRY = ("Retryable", "ACCEPTED", "CLOSED")
BACKOFF = ("Retryable", "ACCEPTED", "rests")
UNKNOWN = ("Unknown", "UNKNOWN", "CLOSED")
"""The attempt's outcome, the delivery's status, the account's circuit (or that the account rests).

DEAD alone deactivates the device, with the reason of the attempt.
"""


@pytest.fixture
def person(org, settings, redis):
    settings.OUTBOUND_OPEN_HOSTS = ["localhost"]
    yield factories.contact(org)
    redis.flushdb()


def account(org, kind, settings):
    return ProviderAccount.objects.create(
        organization=org, name=kind, kind=kind, channel="PUSH", credentials=json.dumps(settings)
    )


def device(person, name, token):
    row = factories.device(person.organization, person, token)
    Device.objects.filter(pk=row.pk).update(platform=name)
    return row


def push(person, title="Hello"):
    """Send one push, as workers do."""
    sent = send_push(person.organization_id, str(person.pk), title=title, body="Hi")
    transport = Transport(AddressPolicy(["localhost"]))
    work(transport, once=True)
    transport.close()
    tasks.retire_devices()
    return sent.message_id


def came_of(message_id, account, device):
    """Return what is stored of a push: outcome, reason, status, circuit, and the device's end."""
    outcome, reason = Attempt.objects.values_list("outcome", "reason").get(delivery_id=message_id)
    status = Delivery.objects.values_list("status", flat=True).get(message_id=message_id)
    circuit = str(circuits.read([account.pk])[account.pk].state)
    if circuit == "CLOSED" and account.pk in circuits.states([account.pk]).last:
        circuit = "rests"
    device.refresh_from_db()
    return outcome, reason, status, circuit, device.active, device.inactive_reason


def expected(row, reason):
    outcome, status, circuit = row
    dead = row == DEAD
    return outcome, reason, status, circuit, not dead, reason if dead else ""


APNS = [
    (200, None, False, TAKEN),
    (400, "BadDeviceToken", True, DEAD),
    (400, "BadDeviceToken", False, CONFIG),
    (400, "DeviceTokenNotForTopic", True, DEAD),
    (400, "DeviceTokenNotForTopic", False, CONFIG),
    (400, "TopicDisallowed", False, CONFIG),
    (400, "BadTopic", False, CONFIG),
    (400, "MissingTopic", False, CONFIG),
    (400, "BadCollapseId", False, PAYLOAD),
    (400, "BadExpirationDate", False, PAYLOAD),
    (400, "BadMessageId", False, PAYLOAD),
    (400, "BadPriority", False, PAYLOAD),
    (400, "InvalidPushType", False, PAYLOAD),
    (400, "DuplicateHeaders", False, PAYLOAD),
    (400, "MissingDeviceToken", False, PAYLOAD),
    (400, "PayloadEmpty", False, PAYLOAD),
    (400, "IdleTimeout", False, RETRY),
    (403, "ExpiredProviderToken", False, CONFIG),  # refused though it is new
    (403, "InvalidProviderToken", True, CONFIG),
    (403, "MissingProviderToken", True, CONFIG),
    (403, "BadCertificate", True, CONFIG),
    (403, "BadCertificateEnvironment", True, CONFIG),
    (403, "BadEnvironmentKeyIdInToken", True, CONFIG),
    (403, "Forbidden", True, CONFIG),
    (403, "UnrelatedKeyIdInToken", False, RETRY),
    (404, "BadPath", False, CONFIG),
    (405, "MethodNotAllowed", False, CONFIG),
    (410, "Unregistered", False, DEAD),
    (410, "ExpiredToken", False, DEAD),
    (413, "PayloadTooLarge", False, PAYLOAD),
    (429, "TooManyProviderTokenUpdates", False, BACKOFF),
    (429, "TooManyRequests", False, RETRY),  # that device alone waits
    (500, "InternalServerError", False, BACKOFF),
    (503, "ServiceUnavailable", False, BACKOFF),
    (503, "Shutdown", False, RETRY),
    (418, "Teapot", False, UNKNOWN),
]


@pytest.mark.promise("push-answers-1", "push-answers-19")
@pytest.mark.parametrize(("status", "reason", "proven", "row"), APNS)
def test_apns(org, person, status, reason, proven, row):
    body = {"reason": reason, "timestamp": LATER} if reason else {}
    with apple(**{IOS: (status, body)}) as service:
        used = account(org, "apns", service.settings())
        if proven:
            other = factories.contact(org)
            device(other, "IOS", OTHER_IOS)
            push(other)
        one = device(person, "IOS", IOS)
        found = came_of(push(person), used, one)
    why = f"unexpected answer: {status}" if row is UNKNOWN else reason
    assert found == expected(row, why)


@pytest.mark.promise("push-answers-3")
def test_apns_says_when_a_token_died(org, person):
    with apple(**{IOS: (410, {"reason": "Unregistered", "timestamp": LONG_AGO})}) as service:
        used = account(org, "apns", service.settings())
        one = device(person, "IOS", IOS)
        found = came_of(push(person), used, one)
    assert found == expected(RETRY, "Unregistered, before the device registered again")


@pytest.mark.promise("push-answers-20")
@pytest.mark.parametrize("reason", ["TopicDisallowed", "BadTopic", "DeviceTokenNotForTopic"])
def test_wrong_app_of_one_device_opens_no_circuit(org, person, reason):
    with apple(**{IOS: (400, {"reason": reason})}) as service:
        used = account(org, "apns", service.settings())
        one = device(person, "IOS", IOS)
        Device.objects.filter(pk=one.pk).update(app="com.example.typo")
        assert came_of(push(person), used, one) == expected(RECIPIENT, reason)
        other = factories.contact(org)
        fine = device(other, "IOS", OTHER_IOS)
        assert came_of(push(other), used, fine) == expected(TAKEN, None)


@pytest.mark.promise("push-answers-20")
@pytest.mark.parametrize(
    ("status", "reason", "row"),
    [
        (400, "BadDeviceToken", RECIPIENT),
        (403, "BadEnvironmentKeyIdInToken", RECIPIENT),
        (403, "BadCertificateEnvironment", RECIPIENT),
    ],
)
def test_wrong_environment_of_one_device_opens_no_circuit(org, person, status, reason, row):
    with apple() as production, apple(**{IOS: (status, {"reason": reason})}) as sandbox:
        used = account(org, "apns", {**production.settings(), "sandbox_url": sandbox.url})
        other = factories.contact(org)
        device(other, "IOS", OTHER_IOS)
        push(other)
        one = device(person, "IOS", IOS)
        Device.objects.filter(pk=one.pk).update(environment="SANDBOX")
        assert came_of(push(person), used, one) == expected(row, reason)


FCM = [
    (200, {"name": "projects/x/messages/1"}, None, TAKEN),
    (404, failure("UNREGISTERED", "NOT_FOUND"), "UNREGISTERED", DEAD),
    (404, failure("", "NOT_FOUND"), "NOT_FOUND", CONFIG),
    (400, failure("INVALID_ARGUMENT", "X", "message.token"), "INVALID_ARGUMENT", DEAD),
    (400, failure("INVALID_ARGUMENT", "X", "message.data"), "INVALID_ARGUMENT", PAYLOAD),
    (400, failure("INVALID_ARGUMENT", "X"), "INVALID_ARGUMENT", PAYLOAD),
    (413, b"", "no error code", PAYLOAD),
    (403, failure("SENDER_ID_MISMATCH", "X"), "SENDER_ID_MISMATCH", DEAD),
    (401, failure("THIRD_PARTY_AUTH_ERROR", "X"), "THIRD_PARTY_AUTH_ERROR", RECIPIENT),
    (401, failure("", "UNAUTHENTICATED"), "UNAUTHENTICATED", CONFIG),
    (403, failure("", "PERMISSION_DENIED"), "PERMISSION_DENIED", CONFIG),
    (429, failure("QUOTA_EXCEEDED", "X"), "QUOTA_EXCEEDED", BACKOFF),
    (500, failure("INTERNAL", "X"), "INTERNAL", BACKOFF),
    (503, failure("UNAVAILABLE", "X"), "UNAVAILABLE", BACKOFF),
    (418, b"", "unexpected answer: 418", UNKNOWN),
]


@pytest.mark.promise("push-answers-11")
@pytest.mark.parametrize(
    ("status", "body", "reason", "row"), FCM, ids=[f"{row[0]}-{row[2]}-{row[3][0]}" for row in FCM]
)
def test_fcm(org, person, status, body, reason, row):
    with google(**{ANDROID: (status, body)}) as service:
        used = account(org, "fcm", service.settings())
        one = device(person, "ANDROID", ANDROID)
        found = came_of(push(person), used, one)
    assert found == expected(row, reason)


OTHER_KEY = "subscribed with another key"
WEB = [
    (201, b"", None, TAKEN),
    (202, b"", None, TAKEN),
    (404, b"", "the push service answered 404", DEAD),
    (410, b"", "the push service answered 410", DEAD),
    (400, b'{"reason": "VapidPkHashMismatch"}', OTHER_KEY, DEAD),
    (400, b"", "the push service answered 400", PAYLOAD),
    (401, b"VAPID public key mismatch", OTHER_KEY, DEAD),
    (403, b"key does not match the subscription", OTHER_KEY, DEAD),
    (401, b"", "the push service answered 401", CONFIG),
    (403, b"", "the push service answered 403", CONFIG),
    (413, b"", "the push service answered 413", PAYLOAD),
    (406, b"", "the push service answered 406", RETRY),  # the host waits, not the account
    (429, b"", "the push service answered 429", RETRY),
    (301, b"", "the push service answered 301", RETRY),
    (308, b"", "the push service answered 308", RETRY),
    (500, b"", "the push service answered 500", RETRY),
    (503, b"", "the push service answered 503", RETRY),
    (200, b"", "unexpected answer: 200", UNKNOWN),
]


@pytest.mark.promise("push-answers-14")
@pytest.mark.parametrize(
    ("status", "body", "reason", "row"), WEB, ids=[f"{row[0]}-{row[3][0]}" for row in WEB]
)
def test_web_push(org, person, status, body, reason, row):
    with push_service(device=(status, body, {"location": "/nowhere"})) as service:
        used = account(org, "webpush", service.settings())
        one = device(person, "WEB", service.browser().text)
        found = came_of(push(person), used, one)
        assert len(service.seen) == 1  # no redirect is followed
    assert found == expected(row, reason)


@pytest.mark.promise("push-sending-28", "push-answers-15")
def test_busy_push_service_of_a_browser_does_not_delay_others(org, person):
    """So many refusals by one would open the circuit, if it were the account's."""
    with push_service(device=(429, b"", {"retry-after": "300"})) as busy, push_service() as fine:
        used = account(org, "webpush", busy.settings())
        device(person, "WEB", busy.browser().text)
        for _ in range(25):
            push(person)
        assert len(busy.seen) == 1
        other = factories.contact(org)
        one = device(other, "WEB", fine.browser().text)
        found = came_of(push(other), used, one)
    assert found == expected(TAKEN, None)


@pytest.mark.promise("push-answers-20")
@pytest.mark.parametrize("status", [401, 403])
def test_push_service_rejecting_the_key_does_not_stop_others(org, person, status):
    """Another service takes the same key. The devices of the first one wait for it."""
    with push_service(device=(status, b"", {})) as refusing, push_service() as fine:
        used = account(org, "webpush", refusing.settings())
        other = factories.contact(org)
        works = device(other, "WEB", fine.browser().text)
        assert came_of(push(other), used, works) == expected(TAKEN, None)
        one = device(person, "WEB", refusing.browser().text)
        messages = [push(person) for _ in range(25)]
        found = came_of(messages[0], used, one)
        assert found == expected(RETRY, f"the push service answered {status}")
        assert len(refusing.seen) == 1
        assert came_of(push(other), used, works) == expected(TAKEN, None)


SALESFORCE = [
    (None, TAKEN),
    ("ENTITY_IS_DELETED", DEAD),
    ("INACTIVE_OWNER_OR_USER", DEAD),
    ("INVALID_CROSS_REFERENCE_KEY", RECIPIENT),
    ("INVALID_ID_FIELD", RECIPIENT),
    ("MALFORMED_ID", RECIPIENT),
    ("INSUFFICIENT_ACCESS_ON_CROSS_REFERENCE_ENTITY", RECIPIENT),
    ("API_DISABLED_FOR_ORG", CONFIG),
    ("FUNCTIONALITY_NOT_ENABLED", CONFIG),
    ("INSUFFICIENT_ACCESS", CONFIG),
    ("INSUFFICIENT_ACCESS_OR_READONLY", CONFIG),
    ("REQUIRED_FIELD_MISSING", PAYLOAD),
    ("STRING_TOO_LONG", PAYLOAD),
    ("SERVER_UNAVAILABLE", RETRY),
    ("UNABLE_TO_LOCK_ROW", RETRY),
    ("LIMIT_EXCEEDED", BACKOFF),
    ("REQUEST_LIMIT_EXCEEDED", BACKOFF),
    ("SOMETHING_NEW", RECIPIENT),
]


@pytest.mark.promise("push-answers-16")
@pytest.mark.parametrize(("code", "row"), SALESFORCE)
def test_salesforce(org, person, code, row):
    with salesforce_service(answers={USER: refused(code)} if code else {}) as service:
        used = account(org, "salesforce", service.settings())
        one = device(person, "PLATFORM", USER)
        found = came_of(push(person), used, one)
    assert found == expected(row, code)


@pytest.mark.promise("push-answers-20")
@pytest.mark.parametrize("code", ["INSUFFICIENT_ACCESS", "API_DISABLED_FOR_ORG"])
def test_refusal_for_one_user_of_several_opens_no_circuit(org, person, code):
    with salesforce_service(answers={USER: refused(code)}) as service:
        used = account(org, "salesforce", service.settings())
        one = device(person, "PLATFORM", USER)
        device(person, "PLATFORM", OTHER_USER)
        message_id = push(person)
    outcomes = Attempt.objects.filter(delivery_id=message_id).values_list("outcome", flat=True)
    assert sorted(outcomes) == ["Accepted", "Rejected"]
    assert Delivery.objects.get(message_id=message_id).status == "SENT"
    assert str(circuits.read([used.pk])[used.pk].state) == "CLOSED"
    one.refresh_from_db()
    assert one.active


@pytest.mark.promise("push-answers-16")
@pytest.mark.parametrize(
    ("status", "body", "reason", "row"),
    [
        (401, whole("INVALID_SESSION_ID"), "INVALID_SESSION_ID", CONFIG),
        (403, whole("REQUEST_LIMIT_EXCEEDED"), "REQUEST_LIMIT_EXCEEDED", BACKOFF),
        (403, whole("API_DISABLED_FOR_ORG"), "API_DISABLED_FOR_ORG", CONFIG),
        (404, whole("NOT_FOUND"), "NOT_FOUND", CONFIG),
        (400, whole("JSON_PARSER_ERROR"), "JSON_PARSER_ERROR", PAYLOAD),
        (429, b"", "answered 429", BACKOFF),
        (503, b"", "answered 503", BACKOFF),
        (500, b"", "unexpected answer: 500", UNKNOWN),
    ],
)
def test_salesforce_answer_to_the_whole_request(org, person, status, body, reason, row):
    with salesforce_service(whole=(status, body, {})) as service:
        used = account(org, "salesforce", service.settings())
        one = device(person, "PLATFORM", USER)
        found = came_of(push(person), used, one)
    assert found == expected(row, reason)


@pytest.mark.promise("push-answers-1")
def test_the_tables_of_the_senders_have_no_other_row():
    assert {(row[0], row[1]) for row in APNS} >= set(apns.ANSWERS)
    assert {row[0] for row in SALESFORCE} >= set(salesforce.RESULTS)
