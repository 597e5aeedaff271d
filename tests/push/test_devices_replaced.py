"""Replacing, forgetting and finding devices."""

import pytest

from push.models import Device, token_digest
from tests import factories
from tests.push.devices_scene import BROWSER, NOBODY, android, history, register, shown
from tests.push.subscriptions import Browser
from tests.rest import error

pytestmark = pytest.mark.django_db
UNKNOWN = error("NOT_FOUND", "This device doesn't exist.")


# --- replacing ------------------------------------------------------------------------------------
def replace(api, device_id, token):
    return api.call("POST", f"/devices/{device_id}/replace", {"token": token})


@pytest.mark.promise("devices-12")
def test_a_subscription_is_replaced(api, org):
    person = factories.contact(org)
    body = {"contactId": str(person.pk), "platform": "WEB", "token": BROWSER.subscription}
    device_id = register(api, body).json()["deviceId"]
    Device.objects.update(active=False, inactive_reason="Gone")
    new = Browser("https://fcm.googleapis.com/fcm/send/new")
    answer = replace(api, device_id, new.subscription)
    row = Device.objects.get()
    assert (answer.status_code, answer.json()) == (200, shown(row, deviceId=device_id))
    assert (row.token, row.active, history(row)) == (new.text, True, ["REGISTERED", "REPLACED"])
    assert register(api, {**body, "token": new.subscription}).status_code == 200


@pytest.mark.promise("devices-12")
def test_device_already_holding_the_new_token_is_merged(api, org):
    person = factories.contact(org)
    old = register(api, android(person, "old")).json()["deviceId"]
    register(api, android(person, "new"))
    answer = replace(api, old, "new")
    row = Device.objects.get()
    assert (answer.status_code, answer.json()) == (200, shown(row, deviceId=old))
    assert row.token_digest == token_digest("new")


@pytest.mark.promise("devices-12")
def test_a_token_of_another_platform_does_not_replace(api, org):
    row = factories.device(org, factories.contact(org))
    answer = replace(api, row.pk, BROWSER.subscription)
    expected = error("INVALID_PAYLOAD", "token: must be a string", ("token", "must be a string"))
    assert (answer.status_code, answer.json()) == (400, expected)


# --- forgetting, and what is another's ------------------------------------------------------------
@pytest.mark.promise("devices-11")
def test_a_device_is_forgotten(api, org):
    row = factories.device(org, factories.contact(org))
    answer = api.call("DELETE", f"/devices/{row.pk}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert "Content-Type" not in answer.headers
    assert not Device.objects.exists()
    again = api.call("DELETE", f"/devices/{row.pk}")
    assert (again.status_code, again.json()) == (404, UNKNOWN)


@pytest.mark.promise("devices-11")
@pytest.mark.parametrize("device_id", [NOBODY, "nonsense", "a%00b"])
def test_an_unknown_device_is_not_found(api, device_id):
    for answer in (api.call("DELETE", f"/devices/{device_id}"), replace(api, device_id, "t")):
        assert (answer.status_code, answer.json()) == (404, UNKNOWN)


@pytest.mark.promise("devices-8")
def test_devices_of_another_organization_are_not_found(api, org):
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
