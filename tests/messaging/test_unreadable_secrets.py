"""Secrets that no key decrypts: only what uses them fails, and they can be replaced."""

import orjson
import pytest
from cryptography.fernet import Fernet
from django.db import connection

from messaging.models import ProviderAccount, WebhookDelivery, WebhookEndpoint
from messaging.policy import organization_policy
from messaging.webhooks import endpoints
from rme.core.db.encrypted_fields import UnreadableSecret
from rme.crm import platforms
from rme.crm.models import Platform
from tests import factories
from tests.messaging.webhooks.dispatcher_scene import queue, states
from tests.messaging.webhooks.webhook_scene import dispatch_all, endpoint

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback")]


def lose_key(row, column):
    """Store a secret as if its key had been removed from FIELD_KEYS."""
    stored = Fernet(Fernet.generate_key()).encrypt(b"lost").decode()
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {row._meta.db_table} SET {column} = %s WHERE {row._meta.pk.column} = %s",
            [stored, row.pk],
        )
    return stored


def stored_value(row, column):
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {column} FROM {row._meta.db_table} WHERE id = %s", [row.pk])
        return cursor.fetchone()[0]


def test_unreadable_webhook_secret_fails_only_its_deliveries(org, receiver):
    broken = endpoint(org, f"{receiver.url}broken")
    working = endpoint(factories.organization("other"), f"{receiver.url}working")
    lose_key(broken, "secret")
    queue(broken)
    queue(working)
    dispatch_all()
    assert [request.path for request in receiver.seen] == ["/working"]
    status = WebhookDelivery.Status
    assert states() == [(status.PENDING, 1), (status.DELIVERED, 1)]
    [attempt] = WebhookDelivery.objects.get(endpoint_id=broken.pk).attempts
    assert attempt["error"] == "the signing secret can't be decrypted; replace it"


def test_unreadable_webhook_secret_can_be_shown_changed_and_replaced(org, api, receiver):
    row = endpoint(org, receiver.url)
    lose_key(row, "secret")
    listed = api.call("GET", "/webhook-endpoints")
    assert [each["id"] for each in listed.json()["webhookEndpoints"]] == [str(row.pk)]
    changed = api.call("PATCH", f"/webhook-endpoints/{row.pk}", {"description": "our CRM"})
    assert (changed.status_code, changed.json()["description"]) == (200, "our CRM")
    secret = api.call("POST", f"/webhook-endpoints/{row.pk}/rotate-secret").json()["secret"]
    row = WebhookEndpoint.objects.get(pk=row.pk)
    assert endpoints.signing_secrets(row) == [secret]
    queue(row)
    dispatch_all()
    assert states() == [(WebhookDelivery.Status.DELIVERED, 1)]


def test_unreadable_account_stops_no_other_organization(org):
    other = factories.organization("other")
    made = {"kind": "simulator", "channel": "EMAIL", "credentials": "{}"}
    broken = ProviderAccount.objects.create(organization=org, name="broken", **made)
    ProviderAccount.objects.create(organization=other, name="working", **made)
    lose_key(broken, "credentials")
    policies = organization_policy.of_many([org.pk, other.pk])
    has_provider = {
        each.name: each.provider is not None
        for policy in policies.values()
        for each in policy.accounts
    }
    assert has_provider == {"broken": False, "working": True}


def test_unreadable_platform_is_reported_as_its_problem(org):
    credentials = orjson.dumps({"address": "https://odoo.example"}).decode()
    row = Platform.objects.create(organization=org, kind="odoo", credentials=credentials)
    lose_key(row, "credentials")
    assert platforms.get(org.pk).problem == str(UnreadableSecret())


def test_saving_a_row_keeps_its_unread_secret(org):
    row = endpoint(org, "https://hooks.example/")
    lost = lose_key(row, "secret")
    row = WebhookEndpoint.objects.get(pk=row.pk)
    row.description = "our CRM"
    row.save()
    assert stored_value(row, "secret") == lost


def test_secret_is_decrypted_on_access_and_stored_encrypted(org):
    row = endpoint(org, "https://hooks.example/")
    row.secret = "whsec_c2VjcmV0"
    row.save()
    assert "whsec" not in stored_value(row, "secret")
    assert WebhookEndpoint.objects.get(pk=row.pk).secret == "whsec_c2VjcmV0"
    lose_key(row, "secret")
    with pytest.raises(UnreadableSecret, match="Add the key again"):
        _ = WebhookEndpoint.objects.get(pk=row.pk).secret
