"""Health: what a person must set right, besides the accounts of providers."""

from datetime import timedelta

import pytest

from messaging.content import templates
from messaging.models import Delivery, Pause, TemplateVersion, WebhookDelivery
from rme.core import ids
from rme.core.db import clock
from rme.crm.models import RecordImport
from tests import factories
from tests.messaging.reports.test_health import read
from tests.messaging.webhooks.webhook_scene import endpoint
from tests.rest import message


@pytest.mark.parametrize(
    ("minutes", "is_found"), [(9, False), (15, True)], ids=["for-a-moment", "for-long"]
)
def test_failing_webhook_is_found_with_its_waiting_events(org, api, minutes, is_found):
    since = clock.now() - timedelta(minutes=minutes, seconds=5)
    row = endpoint(org, "https://hooks.example.com/", failing_since=since, failures=5)
    WebhookDelivery.objects.bulk_create(
        WebhookDelivery(
            organization_id=org.pk, endpoint_id=row.pk, event_id=ids.new_id(), type="message.sent"
        )
        for _ in range(3)
    )
    found = [each for each in read(api)["configuration"] if each["code"] == "WEBHOOK_FAILING"]
    text = f"The webhook {row} has been failing for 15 min, and 3 events are waiting."
    expected = {"severity": "warning", "code": "WEBHOOK_FAILING", "message": text}
    assert found == ([expected] if is_found else [])


def test_late_backlog_pause_review_and_rejected_import_are_found(org, api):
    api.send(message(factories.contact(org)))
    Delivery.objects.update(due_at=clock.now() - timedelta(minutes=3), priority=0)
    Pause.objects.create(organization=org, reason="the gateway moves", channel="SMS")
    template = factories.template(org, name="news")
    templates.add_draft(template.template, {"subject": "New", "html": "<p>New</p>"})
    TemplateVersion.objects.filter(state="DRAFT").update(review_by="ada")
    RecordImport.objects.create(
        organization=org, kind="Contact", name="people.csv", state="DONE", rows=5000,
        done=5000, rejected=3786, finished_at=clock.now(),
    )  # fmt: skip
    codes = ("BACKLOG_LATE", "PAUSED", "REVIEW_WAITING", "IMPORT_REJECTED")
    found = {each["code"]: each for each in read(api)["configuration"] if each["code"] in codes}
    assert {code: (each["severity"], each["message"]) for code, each in found.items()} == {
        "BACKLOG_LATE": (
            "error", "1 transactional email message is waiting to be sent, for 3 min.",
        ),
        "PAUSED": ("warning", "SMS is paused: the gateway moves"),
        "REVIEW_WAITING": ("warning", "1 draft waits for a review."),
        "IMPORT_REJECTED": (
            "warning", "The import of people.csv rejected 3,786 of 5,000 rows.",
        ),
    }  # fmt: skip
