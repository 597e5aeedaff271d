"""How far background work is behind, as /metrics shows it."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from messaging.models import (
    CountedUntil,
    Delivery,
    Event,
    Message,
    PrivacyRequest,
    WebhookDelivery,
    WebhookEndpoint,
)
from rme.core import ids
from rme.core.db import partitions
from rme.tenants.models import ApiKey
from rme.tenants.oauth import api_keys
from tests import factories
from tests.rest import message
from tests.scrape import labels, samples

pytestmark = pytest.mark.django_db


def ago(**span: float) -> datetime:
    return datetime.now(UTC) - timedelta(**span)


def test_webhook_lag_counts_only_working_endpoints(org):
    works, fails, off = (
        WebhookEndpoint.objects.create(
            organization=org, url="https://example.org", types=[], failures=failures, enabled=on
        )
        for failures, on in ((0, True), (3, True), (0, False))
    )
    for endpoint, minutes in ((works, 5), (works, 2), (fails, 60), (off, 600), (works, -10)):
        WebhookDelivery.objects.create(
            organization_id=org.pk,
            endpoint_id=endpoint.pk,
            event_id=ids.new_id(),
            type="message.sent",
            due_at=ago(minutes=minutes),
        )
    (lag,) = samples("rme_webhook_lag_seconds").values()
    assert 300 <= lag < 330


def test_held_uncounted_and_misplaced_rows_are_measured(api, org):
    api.bulk([message(person) for person in factories.contacts(org, 3)])
    first = Delivery.objects.first()
    assert first is not None
    Delivery.objects.filter(pk=first.pk).update(status="UNKNOWN", due_at=None)
    CountedUntil.objects.create(first_until=ago(minutes=7), final_until=ago(minutes=17))
    far = ids.at_least(datetime.now(UTC) + timedelta(days=900))
    Event.objects.create(
        id=far,
        organization_id=org.pk,
        message_id=first.message_id,
        delivery_id=first.pk,
        type="sent",
        at=ago(),
    )
    for place, (expires, used) in enumerate(((-5, 1), (-5, 9), (-30, 1), (5, 6))):
        api_keys.issue(org, f"key {place}")
        ApiKey.objects.filter(name=f"key {place}").update(
            expires_at=ago(days=expires), last_used_at=ago(days=used)
        )
    assert samples("rme_deliveries_held") == {labels(): 1}
    assert 420 <= samples("rme_statistics_lag_seconds")[labels()] < 450
    filled = {each: rows for each, rows in samples("rme_default_partition_rows").items() if rows}
    assert filled == {labels(table="messaging_event"): 1}
    assert samples("rme_api_keys_expiring") == {labels(): 1}


def test_privacy_requests_past_their_deadline_are_counted(org):
    for state, days in (("OPEN", -1), ("RUNNING", -30), ("OPEN", 1), ("DONE", -1)):
        PrivacyRequest.objects.create(
            organization=org, kind="EXPORT", state=state, requested_at=ago(), due_at=ago(days=-days)
        )
    assert samples("rme_privacy_requests_overdue") == {labels(): 2}


def test_retention_lag_is_the_age_of_rows_past_retention(settings):
    settings.MESSAGE_RETENTION_DAYS, settings.CONTENT_RETENTION_DAYS = 100, 30
    table = Message._meta.db_table
    assert set(samples("rme_retention_lag_seconds").values()) == {0}
    part = partitions.Partition(table, settings.PARTITION_PERIOD.start_of(ago(days=160)))
    with connection.cursor() as cursor:
        low, high = part.bounds
        cursor.execute(
            f'CREATE TABLE "{part.name}" PARTITION OF "{table}" '
            f"FOR VALUES FROM ('{low}') TO ('{high}')"
        )
    found = samples("rme_retention_lag_seconds")
    expected = (ago(days=100) - part.end).total_seconds()
    assert found[labels(table=table)] == pytest.approx(expected, abs=60)
    assert found[labels(table="messaging_messagecontent")] == 0
