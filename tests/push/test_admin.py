"""Push accounts and devices in the admin."""

import pytest
from django.contrib.admin.utils import display_for_value

from messaging.models import ProviderAccount
from messaging.policy.organization_policy import account_of
from messaging.webhooks import device_events
from push import feedback
from push.feedback import DeviceOutcome
from push.models import Device
from rme.core.db import clock
from rme.core.outcomes import Gone
from rme.tenants.models import Membership
from tests import factories
from tests.fakes import apns as fake_apns
from tests.fakes import fcm as fake_fcm
from tests.messaging.console.conftest import url
from tests.push.feedback_scene import store
from tests.tenants.admin.scene import page, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(org):
    return person("owner", org, Membership.Role.OWNER)


def form(kind, **settings):
    return {
        "name": "push", "channel": "PUSH", "match": "",
        **{f"setting_{kind}_{name}": value for name, value in settings.items()},
    }  # fmt: skip


APNS = {**fake_apns.settings(1, "", 5.0), "private_key": fake_apns.key_pem()}


@pytest.mark.promise("push-sending-9")
def test_apple_key_is_stored_and_never_shown(owner, org):
    answer = owner.post(url("new_provider", "apns"), form("apns", **APNS))
    assert answer.status_code == 302, answer.context["form"].errors
    row = ProviderAccount.objects.get()
    assert (row.state, account_of(row).provider is not None) == ("DRAFT", True)
    for address in (url("provider_settings", row.pk), url("provider", row.pk)):
        shown = owner.get(address)
        assert shown.status_code == 200
        assert b"PRIVATE KEY" not in shown.content


RSA = fake_fcm.key_pem()


@pytest.mark.promise("push-sending-9")
@pytest.mark.parametrize(
    "key",
    ["no key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", RSA, "a\x00b"],
    ids=["text", "broken", "rsa", "nul"],
)
def test_malformed_p8_key_is_rejected(owner, org, key):
    answer = owner.post(url("new_provider", "apns"), form("apns", **{**APNS, "private_key": key}))
    assert answer.status_code == 200
    assert set(answer.context["form"].errors) == {"setting_apns_private_key"}
    assert key.splitlines()[-1] not in answer.content.decode()
    assert not ProviderAccount.objects.exists()


@pytest.mark.promise("push-sending-9")
@pytest.mark.parametrize("text", ["no JSON", "{}", fake_fcm.account(1, private_key="no key")])
def test_malformed_service_account_is_rejected(owner, org, text):
    given = form("fcm", service_account_json=text, timeout=5)
    answer = owner.post(url("new_provider", "fcm"), given)
    assert answer.status_code == 200
    assert "setting_fcm_service_account_json" in answer.context["form"].errors
    assert not ProviderAccount.objects.exists()


def test_a_test_send_is_for_a_device_of_the_accounts_platform(owner, org):
    """What Apple could not have issued differs from a device that is not Apple's."""
    owner.post(url("new_provider", "apns"), form("apns", **APNS))
    row = ProviderAccount.objects.get()
    answer = owner.post(url("provider", row.pk), {"do": "test", "to": "no-token"}, follow=True)
    assert b"The address is gone: BadDeviceToken" in answer.content


@pytest.mark.promise("devices-2")
def test_a_device_shows_its_history(owner, org):
    device = factories.device(org, factories.contact(org))
    at = clock.now()
    store([DeviceOutcome(org.pk, device.pk, at, Gone("UNREGISTERED", 4_000_000_000_000))])
    feedback.retire(device_events.write)
    shown = owner.get(page(Device, "change", device.pk)).content.decode()
    assert "devices (MSG_Device__c)" in owner.get(page(Device, "changelist")).content.decode()
    assert "deactivated: UNREGISTERED" in shown
    device.refresh_from_db()
    since = display_for_value(device.inactive_since, "")  # as the page shows its other times
    assert shown.count(since) >= 2
