"""How far the background work of the deployment is behind, and which part waits for a person.

One statement reads it all, and each part has a bound, so that a scrape stays cheap whatever has
piled up.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from prometheus_client.core import GaugeMetricFamily, Metric

from messaging.models import Message, MessageContent
from messaging.store.reports import gauges
from messaging.store.reports.gauges import COUNTED, KEY_EXPIRES_DAYS
from rme.core.db import clock, partitions

Values = dict[tuple[str, ...], float]
"""The values of a gauge, by those of its labels."""


def collect() -> Iterator[Metric]:
    """Return the gauges, by two statements. Raises django.db.Error."""
    now = clock.now()
    defaults, in_review, counted_until, webhooks, keys, privacy, started = gauges.read_lags()
    by_table: Values = {(name,): count for name, count in defaults}
    text = f"Rows that no partition of a period took, up to {COUNTED}."
    yield gauge("rme_default_partition_rows", text, by_table, "table")
    yield gauge(
        "rme_deliveries_held",
        f"Deliveries with an unknown outcome that wait for a person, up to {COUNTED}.",
        {(): in_review[0][0]},
    )
    # Before the first run nothing is late.
    age = counted_until[0][0] if counted_until else 0.0
    yield gauge("rme_statistics_lag_seconds", "The age of the last minute counted.", {(): age})
    text = "How long the oldest webhook delivery is due, of endpoints that do not fail."
    yield gauge("rme_webhook_lag_seconds", text, {(): webhooks[0][0]})
    text = f"API keys in use that expire within {KEY_EXPIRES_DAYS} days."
    yield gauge("rme_api_keys_expiring", text, {(): keys[0][0]})
    text = f"Requests for a data export or an erasure past their deadline, up to {COUNTED}."
    yield gauge("rme_privacy_requests_overdue", text, {(): privacy[0][0]})
    ((at, is_after_crash),) = started
    text = "When PostgreSQL started or restarted last, and after what."
    starts: Values = {("crash" if is_after_crash else "shutdown",): at}
    yield gauge("rme_postgresql_start_time_seconds", text, starts, "after")
    yield _retention(now)


def _retention(now: datetime) -> Metric:
    """Return how long ago the oldest partition passed that is still there."""
    days = settings.MESSAGE_RETENTION_DAYS
    messages, contents = Message._meta.db_table, MessageContent._meta.db_table
    cutoffs = {
        messages: now - timedelta(days=days),
        contents: now - timedelta(days=min(days, settings.CONTENT_RETENTION_DAYS)),
    }
    lags = dict.fromkeys(cutoffs, timedelta(0))
    for part in partitions.past(list(cutoffs), before=max(cutoffs.values())):
        lags[part.table] = max(lags[part.table], cutoffs[part.table] - part.end)
    values: Values = {(table,): lag.total_seconds() for table, lag in lags.items()}
    text = "How long the oldest partition is there that retention should have dropped."
    return gauge("rme_retention_lag_seconds", text, values, "table")


def gauge(name: str, text: str, values: Values, *labels: str) -> GaugeMetricFamily:
    """Build a gauge; the values are by those of `labels`."""
    family = GaugeMetricFamily(name, text, labels=labels)
    for label_values, value in values.items():
        family.add_metric(label_values, value)
    return family
