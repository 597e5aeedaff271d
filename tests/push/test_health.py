"""What health says of push: a VAPID key that is not set, credentials that are refused."""

import json
from datetime import timedelta

import pytest
from django.apps import apps
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.accept import send_push
from messaging.models import Delivery, ProviderAccount
from messaging.reports import configuration
from push.models import Device
from rme.core.cache import TtlCache
from rme.core.db import clock
from rme.transport import AddressPolicy, Transport
from tests import factories
from tests.fakes.apns import apple
from tests.fakes.fcm import google
from tests.rest import work

pytestmark = pytest.mark.django_db

VAPID = {
    "severity": "warning",
    "code": "VAPID_KEY_MISSING",
    "message": "VAPID_PRIVATE_KEY isn't set. rme makes the key from SECRET_KEY, so all browsers "
    "are lost when you change it.",
}
PUSH = {"VAPID_KEY_MISSING", "APNS_KEY_REFUSED", "CREDENTIALS_FAILING"}


def push_findings(api):
    """Return the findings of health on push."""
    TtlCache.clear_all()
    found = api.call("GET", "/health").json()["configuration"]
    return [each for each in found if each["code"] in PUSH]


def account(org, kind, settings, **fields):
    return ProviderAccount.objects.create(
        organization=org, name=kind, kind=kind, channel="PUSH", credentials=json.dumps(settings),
        **fields,
    )  # fmt: skip


def device(org, platform, active=True, token="token"):
    row = factories.device(org, factories.contact(org), token)
    Device.objects.filter(pk=row.pk).update(platform=platform, active=active)
    return row


# --- the VAPID key --------------------------------------------------------------------------------
@pytest.mark.promise("health-1", "push-answers-21")
@pytest.mark.parametrize(
    ("platform", "active", "kind", "found"),
    [
        ("WEB", True, None, [VAPID]),
        ("WEB", False, None, []),
        ("IOS", True, None, []),
        (None, True, "webpush", [VAPID]),
        (None, True, "fcm", []),
        ("WEB", True, "webpush", [VAPID]),
        (None, True, None, []),
    ],
)
def test_unset_key_is_a_finding_for_organizations_with_browsers(
    org, api, settings, platform, active, kind, found
):
    settings.VAPID_KEY_IS_SET = False
    other = factories.organization("other")
    device(other, "WEB")
    account(other, "webpush", {"subject": "mailto:ops@example.com"})
    if platform:
        device(org, platform, active)
    if kind:
        account(org, kind, {"subject": "mailto:ops@example.com"})
    assert push_findings(api) == found


def test_set_key_causes_no_finding_and_no_query(org, api, settings):
    settings.VAPID_KEY_IS_SET = True
    device(org, "WEB")
    assert push_findings(api) == []
    with CaptureQueriesContext(connection) as captured:
        configuration.findings([org.pk])
    assert len(captured) == 8


@pytest.mark.promise("push-answers-21")
def test_many_organizations_and_devices_need_the_same_queries_as_one(db, settings):
    settings.VAPID_KEY_IS_SET = False
    found = []
    for count in (1, 20):
        TtlCache.clear_all()
        owners = [factories.organization(f"o{count}x{n}") for n in range(count)]
        for place, owner in enumerate(owners):
            device(owner, "WEB", token=f"a{place}")
            device(owner, "WEB", token=f"b{place}")
        with CaptureQueriesContext(connection) as captured:
            findings = configuration.findings([owner.pk for owner in owners])
        organizations = [
            each.organization_id for each in findings if each.code == "VAPID_KEY_MISSING"
        ]
        assert organizations == [owner.pk for owner in owners]
        found.append(len(captured))
    assert found == [10, 10]


@pytest.mark.promise("push-answers-21")
@pytest.mark.parametrize("key", ["", "short", "not base64url!", "AA" * 22, "A" * 43])
def test_malformed_key_prevents_the_start(settings, key):
    settings.VAPID_PRIVATE_KEY = key
    with pytest.raises(ValueError):
        apps.get_app_config("push").ready()


# --- credentials ----------------------------------------------------------------------------------
def send(person, times=1):
    for _ in range(times):
        send_push(person.organization_id, str(person.pk), title="Hello", body="Hi")
    transport = Transport(AddressPolicy(["localhost"]))
    work(transport)
    transport.close()


REFUSED = {
    "severity": "error",
    "code": "APNS_KEY_REFUSED",
    "message": "Apple refuses apns: its key, team or topic is wrong.",
}


@pytest.mark.promise("health-1", "push-answers-19")
@pytest.mark.parametrize("reason", ["InvalidProviderToken", "TopicDisallowed", "BadDeviceToken"])
def test_key_rejected_by_apple_is_a_finding_until_accepted_again(org, api, settings, redis, reason):
    settings.VAPID_KEY_IS_SET = True
    token, other = "ab" * 32, "cd" * 32
    with apple(**{token: (403, {"reason": reason}), other: (200, {})}) as service:
        account(org, "apns", service.settings())
        first = device(org, "IOS", token=token)
        second = device(org, "IOS", token=other)
        send(person_of(first))
        assert push_findings(api) == [REFUSED]
        shown = [
            (each["name"], each["channel"], each["status"], each["circuit"], each["lastError"])
            for each in api.call("GET", "/health").json()["providers"]
        ]
        assert shown == [
            ("apns", "PUSH", "down", "OPEN", reason),
            ("simulator", "EMAIL", "ok", "CLOSED", None),
            ("simulator", "SMS", "ok", "CLOSED", None),
        ]
        # The first is not tried again meanwhile, however slow this machine is.
        Delivery.objects.update(due_at=clock.now() + timedelta(hours=1))
        send(person_of(second))
        assert push_findings(api) == []
    redis.flushdb()


def person_of(row):
    from rme.crm.models import Contact

    return Contact.objects.get(pk=row.contact_id)


@pytest.mark.promise("health-1", "push-answers-19")
def test_service_account_rejected_by_google_is_a_finding(org, api, settings, redis):
    settings.VAPID_KEY_IS_SET = True
    with google() as service:
        service.login = (400, {"error": "invalid_grant"})
        account(org, "fcm", service.settings())
        send(person_of(device(org, "ANDROID", token="fcm:token")))
    assert push_findings(api) == [
        {
            "severity": "error",
            "code": "CREDENTIALS_FAILING",
            "message": "The provider of fcm refuses its settings. Correct them.",
        }
    ]
    redis.flushdb()
