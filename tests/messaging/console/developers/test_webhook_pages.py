"""The pages of webhook deliveries: the list, one with its payload and answers, sending again."""

from datetime import UTC, datetime, timedelta

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.models import WebhookDelivery, WebhookEndpoint
from messaging.webhooks import delivery_log, outbox, replays
from rme.core.cache import TtlCache
from rme.tenants.models import Membership
from tests import audited, factories
from tests.messaging.console.conftest import url
from tests.messaging.webhooks.webhook_scene import endpoint
from tests.rest import Api, message, work
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db
Role = Membership.Role
URL = "https://hooks.example.com/a"
AT = datetime(2026, 5, 1, 8, tzinfo=UTC)
ANSWER = "no such ada@x.example, +41791234567"


@pytest.fixture
def developer(org):
    return person("dev", org, Role.DEVELOPER)


@pytest.fixture
def row(org):
    return endpoint(org, URL, description="Shop")


def queued(row, n=1, **fields):
    """Queue test events and return the rows, the newest first."""
    for _ in range(n):
        replays.queue_test(row)
    WebhookDelivery.objects.filter(endpoint_id=row.pk).update(**fields)
    return list(WebhookDelivery.objects.filter(endpoint_id=row.pk).order_by("-event_id"))


def failed(row, n=1):
    attempt = {"at": "2026-05-01T08:00:00Z", "status": 500, "ms": 31, "error": None}
    attempts = [{**attempt, "status": None, "error": "no connection"}, attempt | {"answer": ANSWER}]
    attempts[0]["answer"] = None
    return queued(row, n, status="FAILED", due_at=None, tries=2, attempts=attempts)


def listed(client, row, query=""):
    found = client.get(url("webhook_deliveries", row.pk) + query)
    return [line.row.pk for line in found.context["lines"]]


def test_a_delivery_with_its_payload_answers_and_message(developer, org, row):
    Api(org).send(message(factories.contact(org), metadata={"to": "ada@x.example"}))
    work()
    sent = WebhookDelivery.objects.get(type="message.sent")
    (claimed,) = outbox.claim(10)
    (body,) = [
        orjson.loads(outbox.payload_of(due.event, test=False))
        for due in claimed.due
        if due.id == sent.pk
    ]
    failed(row, 0)
    seen = {person("olga", org, Role.OWNER): "ada@x.example", developer: "a…@x.example"}
    for client, address in seen.items():
        found = client.get(url("webhook_delivery", row.pk, sent.pk))
        payload = orjson.loads(found.context["payload"])
        assert payload == {**body, "data": {**body["data"], "metadata": {"to": address}}}
        answer = ANSWER if address in ANSWER else "no such a…@x.example, +41…67"
        parts = [url("message", body["data"]["messageId"]), "Answered 500", "no connection", answer]
        text = found.content.decode()
        assert [part for part in parts if part not in text] == []
        assert (ANSWER in text) == (answer == ANSWER)


def test_delivery_without_its_event_cannot_be_resent(developer, org, row):
    (each,) = queued(row, data=None, type="message.sent")
    text = developer.get(url("webhook_delivery", row.pk, each.pk)).content.decode()
    assert "no longer stored" in text
    assert "Resend</button>" not in text


def test_filters_combine_and_pages_follow_each_other(developer, row, monkeypatch):
    rows = failed(row, 53)
    WebhookDelivery.objects.filter(pk__in=[rows[0].pk, rows[52].pk]).update(status="DELIVERED")
    keys = [each.pk for each in rows]
    assert listed(developer, row) == keys[:50]
    assert listed(developer, row, f"?after={rows[49].event_id}") == keys[50:]
    assert listed(developer, row, "?status=DELIVERED&type=webhook.test") == [keys[0], keys[52]]
    assert listed(developer, row, f"?webhook_id={rows[7].event_id}") == [keys[7]]
    assert listed(developer, row, "?type=message.sent") == []
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")
    assert listed(developer, row, f"?since={tomorrow}") == []
    assert len(listed(developer, row, f"?until={tomorrow}")) == 50
    for wrong in ("?webhook_id=x", "?after=x", "?status=%00", "?since=never"):
        assert len(listed(developer, row, wrong)) == 50
    monkeypatch.setattr(delivery_log, "SCAN_LIMIT", 20)
    found = developer.get(url("webhook_deliveries", row.pk) + "?status=DELIVERED").context
    assert [line.row.pk for line in found["lines"]] == [keys[0]]
    assert found["following"] == rows[19].event_id


def test_pages_ask_as_often_for_3_deliveries_as_for_1(developer, row):
    developer.get(url("webhook_deliveries", row.pk))  # the session keeps the organization
    counts = []
    for more in (1, 2):
        (last, *_) = failed(row, more)
        for path in (
            url("webhook_deliveries", row.pk),
            url("webhook_deliveries", row.pk) + "?status=FAILED",
            url("webhook_delivery", row.pk, last.pk),
            url("webhooks_again", row.pk) + "?status=FAILED",
        ):
            TtlCache.clear_all()
            with CaptureQueriesContext(connection) as captured:
                assert developer.get(path).status_code == 200
            counts.append(len(captured))
    assert counts == [12, 13, 9, 8] * 2


def test_single_resend_is_immediate_and_audited(developer, org, row):
    first, second = failed(row, 2)
    later = datetime.now(UTC) + timedelta(minutes=20)
    WebhookEndpoint.objects.filter(pk=row.pk).update(failures=4, failing_since=AT, free_at=later)
    path = url("webhook_delivery", row.pk, first.pk)
    assert developer.post(path, follow=True).redirect_chain == [(path, 302)]
    (claimed,) = outbox.claim(10)
    assert [each.event.id for each in claimed.due] == [first.event_id]
    second.refresh_from_db()
    assert second.status == "FAILED"
    (line,) = audited.entries(action="REPLAYED")
    assert (line.entry.actor_name, line.values.text) == ("dev", f"{first.event_id}: 1 event")


def test_a_filtered_set_is_counted_asks_for_a_reason_and_is_sent_again(developer, row):
    failed(row, 3)
    queued(endpoint(row.organization, URL), status="FAILED")
    path = url("webhooks_again", row.pk)
    assert developer.get(f"{path}?status=FAILED").context["count"] == 3
    assert developer.get(f"{path}?status=DELIVERED").context["count"] == 0
    refused = developer.post(path, {"status": "FAILED", "why": ""})
    assert refused.context["form"].errors == {"why": ["This field is required."]}
    assert "FAILED" in str(refused.context["filters"].typed)
    misread = developer.post(path, {"since": "never", "why": "x"})
    assert (misread.context["count"], "aren't valid" in misread.context["problem"]) == (0, True)
    assert not WebhookDelivery.objects.filter(status="PENDING").exists()
    done = developer.post(path, {"status": "FAILED", "why": "they are up again"})
    assert done["Location"] == url("webhook_deliveries", row.pk) + "?status=FAILED"
    waiting = WebhookDelivery.objects.filter(status="PENDING", tries=0, due_at__isnull=False)
    assert set(waiting.values_list("endpoint_id", flat=True)) == {row.pk}
    assert waiting.count() == 3
    (line,) = audited.entries(action="REPLAYED")
    assert line.values.reason == "they are up again"


def test_disabled_endpoint_gets_no_resend_and_the_page_has_its_switch(developer, row):
    (each,) = failed(row)
    WebhookEndpoint.objects.filter(pk=row.pk).update(enabled=False, disabled_reason="By hand.")
    switch = f'action="{url("webhook_settings", row.pk)}"'
    for path in (url("webhook_delivery", row.pk, each.pk), url("webhooks_again", row.pk)):
        text = developer.post(path, {"why": "x"}).content.decode()
        assert ("Enable it first." in text, switch in text) == (True, True)
    assert WebhookDelivery.objects.get().status == "FAILED"


def test_first_page_shows_the_failing_endpoint(developer, org):
    assert "No webhook endpoints yet" in developer.get(url("webhooks")).content.decode()
    rows = [endpoint(org, URL) for _ in range(3)]
    assert developer.get(url("webhooks"))["Location"] == url("webhook_deliveries", rows[2].pk)
    WebhookEndpoint.objects.filter(pk=rows[0].pk).update(failing_since=AT)
    lead = developer.get(url("webhooks") + "?status=FAILED")["Location"]
    assert lead == url("webhook_deliveries", rows[0].pk) + "?status=FAILED"


def test_delivery_of_another_endpoint_or_organization_is_not_found(developer, org, row):
    elsewhere = endpoint(factories.organization("other"), URL)
    (theirs,), (mine,) = queued(elsewhere), queued(row)
    own_second = endpoint(org, URL)
    for path in (
        url("webhook_delivery", row.pk, theirs.pk),
        url("webhook_delivery", own_second.pk, mine.pk),
        url("webhook_delivery", elsewhere.pk, theirs.pk),
        url("webhook_deliveries", elsewhere.pk),
    ):
        assert developer.get(path).status_code == 404
