"""Webhook events of what people change about suppressions and devices in the console."""

import pytest

from messaging.models import Suppression, WebhookDelivery
from messaging.models.endpoints import ChangeType
from push.models import Device
from tests import factories
from tests.messaging.console.conftest import url
from tests.messaging.webhooks.webhook_scene import endpoint
from tests.tenants.admin.scene import page

pytestmark = pytest.mark.django_db


def test_changes_in_the_console_queue_webhook_events(root, org):
    endpoint(org, "https://hooks.example.com/", *ChangeType)
    contact = factories.contact(org)
    suppressed = {"channel": "EMAIL", "contact": str(contact.pk), "reason": "MANUAL"}
    root.post(url("suppression_new"), suppressed)
    entry = Suppression.objects.get()
    root.post(url("suppression", entry.pk), {"note": "by phone"})
    root.post(url("lift", entry.pk), {"why": "by phone"})
    form = {"organization": org.pk, "platform": "ANDROID", "environment": "PRODUCTION"}
    root.post(
        page(Device, "add"), {**form, "contact_id": str(contact.pk), "token": "t", "active": "on"}
    )
    device = Device.objects.get()
    root.post(page(Device, "change", device.pk), {**form, "contact_id": str(contact.pk)})
    root.post(page(Device, "delete", device.pk), {"post": "yes"})
    assert list(WebhookDelivery.objects.order_by("id").values_list("type", flat=True)) == [
        "suppression.created",
        "suppression.changed",
        "suppression.lifted",
        "device.registered",
        "device.deactivated",
        "device.deactivated",
    ]
