"""Consent is only added; suppressions are normalised, and some are lifted only with a reason."""

import pytest
from django.utils import timezone

from messaging.models import ConsentEntry, Suppression
from push.models import Device, token_digest
from tests import audited, factories
from tests.tenants.admin.scene import page

pytestmark = pytest.mark.django_db


@pytest.mark.promise("consent-5")
def test_consent_is_recorded_in_the_console_and_never_changed(root, org):
    response = root.get(page(ConsentEntry, "add"))
    assert (response.status_code, response.url) == (302, "/admin/console/consent/")
    assert root.post(page(ConsentEntry, "add"), {"organization": org.pk}).status_code == 302
    assert not ConsentEntry.objects.exists()
    row = ConsentEntry.objects.create(
        organization=org, contact_id="ada", channel="ALL", category="ALL", status="OPTED_IN",
        source="API", occurred_at=timezone.now(),
    )  # fmt: skip
    form = {"organization": org.pk, "contact_id": "ada", "status": "OPTED_OUT"}
    assert root.post(page(ConsentEntry, "change", row.pk), form).status_code == 403
    assert root.post(page(ConsentEntry, "delete", row.pk), {"post": "yes"}).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
    root.post(page(ConsentEntry, "changelist"), chosen)
    assert ConsentEntry.objects.get() == row


def suppression(**fields):
    return {"channel": "EMAIL", "address": "Ada@EXAMPLE.com", "reason": "STOP", **fields}


@pytest.mark.parametrize(
    ("channel", "typed", "kept"),
    [
        ("EMAIL", "Ada@EXAMPLE.com", "ada@example.com"),
        ("SMS", "(212) 736-5000", "+12127365000"),
        ("ALL", "Ada@EXAMPLE.com", "ada@example.com"),
    ],
)
def test_addresses_are_normalised(root, org, channel, typed, kept):
    form = suppression(organization=org.pk, channel=channel, address=typed)
    assert root.post(page(Suppression, "add"), form).status_code == 302
    assert Suppression.objects.get().address == kept


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"address": "nobody"}, "address"),
        ({"channel": "SMS", "address": "079 123 45 67"}, "address"),
        ({"address": ""}, "__all__"),
        ({"contact_id": "ada"}, "__all__"),
    ],
)
def test_malformed_address_is_rejected(root, org, fields, wrong):
    form = suppression(organization=org.pk, **fields)
    errors = root.post(page(Suppression, "add"), form).context["adminform"].form.errors
    assert set(errors) == {wrong}


@pytest.mark.promise("suppressions-2")
def test_unknown_contact_is_an_error_at_its_field(root, org):
    theirs = factories.contact(factories.organization("other"))
    for contact_id in (str(theirs.pk), "ada"):
        form = suppression(organization=org.pk, address="", contact_id=contact_id)
        errors = root.post(page(Suppression, "add"), form).context["adminform"].form.errors
        assert errors == {"contact_id": ["There is no such contact."]}
    ours = str(factories.contact(org).pk)
    form = suppression(organization=org.pk, address="", contact_id=ours)
    assert root.post(page(Suppression, "add"), form).status_code == 302
    assert Suppression.objects.get().contact_id == ours


def test_an_address_is_listed_once(root, org):
    form = suppression(organization=org.pk)
    root.post(page(Suppression, "add"), form)
    assert root.post(page(Suppression, "add"), form).status_code == 200
    assert Suppression.objects.count() == 1


@pytest.mark.promise("suppressions-13")
@pytest.mark.parametrize("reason", ["COMPLAINT", "STOP"])
def test_suppression_by_the_recipient_is_lifted_only_with_a_reason(root, org, reason):
    row = Suppression.objects.create(
        organization=org, channel="EMAIL", address="a@b.example", reason=reason
    )
    url = page(Suppression, "delete", row.pk)
    assert b"required" in root.get(url).content
    root.post(url, {"post": "yes", "reason": "  "})
    root.post(page(Suppression, "change", row.pk), {"note": "n", "expires_at_0": "2020-01-01"})
    row.refresh_from_db()
    assert row.expires_at is None
    root.post(url, {"post": "yes", "reason": "asked by phone"})
    assert not Suppression.objects.exists()
    assert "reason: asked by phone" in audited.lines(action="DELETED")


def test_a_manual_entry_needs_no_reason(root, org):
    row = Suppression.objects.create(
        organization=org, channel="EMAIL", address="a@b.example", reason="MANUAL"
    )
    root.post(page(Suppression, "delete", row.pk), {"post": "yes"})
    assert not Suppression.objects.exists()


@pytest.mark.promise("devices-19")
def test_a_token_is_registered_once_and_never_shown(root, org):
    form = {
        "organization": org.pk, "contact_id": "ada", "platform": "ANDROID", "token": "secret-token",
        "environment": "PRODUCTION", "active": "on",
    }  # fmt: skip
    assert root.post(page(Device, "add"), form).status_code == 302
    row = Device.objects.get()
    assert row.token_digest == token_digest("secret-token")
    again = root.post(page(Device, "add"), form)
    assert set(again.context["adminform"].form.errors) == {"token"}
    for name in ("change", "history", "delete"):
        shown = root.get(page(Device, name, row.pk)).content.decode()
        assert "secret-token" not in shown
        assert row.token_digest not in shown
