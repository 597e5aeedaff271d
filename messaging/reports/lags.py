"""How far the background work of the deployment is behind, and what of it waits for a person.

All of it is read by one statement, and each part has a bound, so that a scrape stays cheap whatever
has piled up.

SQL, because the parts of one statement stop counting at a limit, and step through an index.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from prometheus_client.core import GaugeMetricFamily, Metric

from messaging.delivery.accounts import CIRCUIT_MEMORY
from messaging.models import (
    PARTITIONED,
    CircuitChange,
    CountedUntil,
    Delivery,
    Message,
    MessageContent,
    PrivacyRequest,
    ProviderAccount,
    WebhookDelivery,
    WebhookEndpoint,
)
from messaging.providers import REGISTRY
from rme.core import ids
from rme.core.db import clock, partitions, sql
from rme.tenants.models import ApiKey

COUNTED = 10_000
"""The most rows that are counted."""
Values = dict[tuple[str, ...], float]
"""The values of a gauge, by those of its labels."""
KEY_EXPIRES_DAYS, KEY_USED_DAYS = 14, 7

_DEFAULTS = " UNION ALL ".join(
    f"(SELECT '{model._meta.db_table}' AS name, count(*) AS rows FROM "
    f"(SELECT FROM {model._meta.db_table}_default LIMIT {COUNTED}) r)"
    for model in PARTITIONED
)
_HELD = f"""SELECT count(*) AS rows FROM (SELECT FROM {Delivery._meta.db_table}
  WHERE status = 'UNKNOWN' AND due_at IS NULL LIMIT {COUNTED}) r"""
_COUNTED_UNTIL = f"""SELECT extract(epoch FROM statement_timestamp() - first_until)::float8 AS age
  FROM {CountedUntil._meta.db_table}"""
# One step of the index notice_due for each endpoint.
_WEBHOOKS = f"""SELECT
  coalesce(extract(epoch FROM max(statement_timestamp() - n.due_at)
    FILTER (WHERE w.enabled AND w.failures = 0)), 0)::float8 AS lag,
  count(*) FILTER (WHERE w.enabled AND w.failures > 0) AS failing,
  count(*) FILTER (WHERE NOT w.enabled) AS disabled
FROM {WebhookEndpoint._meta.db_table} w LEFT JOIN LATERAL (
  SELECT due_at FROM {WebhookDelivery._meta.db_table}
  WHERE endpoint_id = w.id AND due_at <= statement_timestamp() ORDER BY due_at LIMIT 1) n ON true"""
_CIRCUITS = f"""SELECT a.kind, count(*) AS rows FROM (
  SELECT DISTINCT ON (account_id) account_id, is_open FROM {CircuitChange._meta.db_table}
  WHERE id >= %s::uuid ORDER BY account_id, id DESC) c
JOIN {ProviderAccount._meta.db_table} a ON a.id = c.account_id
WHERE c.is_open AND a.state = 'ACTIVE' GROUP BY a.kind"""
_KEYS = f"""SELECT count(*) AS rows FROM {ApiKey._meta.db_table}
WHERE revoked_at IS NULL AND expires_at > statement_timestamp()
  AND expires_at < statement_timestamp() + interval '{KEY_EXPIRES_DAYS} days'
  AND last_used_at > statement_timestamp() - interval '{KEY_USED_DAYS} days'"""

_PRIVACY = f"""SELECT count(*) AS rows FROM (SELECT FROM {PrivacyRequest._meta.db_table}
  WHERE state IN ('OPEN', 'RUNNING') AND due_at < statement_timestamp() LIMIT {COUNTED}) r"""


def collect() -> Iterator[Metric]:
    """Return the gauges, by two statements. Raises django.db.Error."""
    now = clock.now()
    remembered = timedelta(seconds=CIRCUIT_MEMORY * settings.CIRCUIT_OPEN_SECONDS)
    defaults, held, counted, webhooks, circuits, keys, privacy = sql.read(
        [
            sql.Step(_DEFAULTS, []),
            sql.Step(_HELD, []),
            sql.Step(_COUNTED_UNTIL, []),
            sql.Step(_WEBHOOKS, []),
            sql.Step(_CIRCUITS, [str(ids.at_least(now - remembered))]),
            sql.Step(_KEYS, []),
            sql.Step(_PRIVACY, []),
        ]
    )
    by_table: Values = {(name,): rows for name, rows in defaults}
    text = f"Rows that no partition of a period took, up to {COUNTED}."
    yield gauge("rme_default_partition_rows", text, by_table, "table")
    yield gauge(
        "rme_deliveries_held",
        f"Deliveries with an unknown outcome that wait for a person, up to {COUNTED}.",
        {(): held[0][0]},
    )
    # Before the first run nothing is late.
    age = counted[0][0] if counted else 0.0
    yield gauge("rme_statistics_lag_seconds", "The age of the last minute counted.", {(): age})
    lag, failing, disabled = webhooks[0]
    text = "How long the oldest webhook delivery is due, of endpoints that do not fail."
    yield gauge("rme_webhook_lag_seconds", text, {(): lag})
    endpoints: Values = {("failing",): failing, ("disabled",): disabled}
    yield gauge("rme_webhook_endpoints", "Endpoints that get nothing now.", endpoints, "state")
    opened: Values = {(kind,): 0 for kind in REGISTRY}
    opened |= {(kind,): rows for kind, rows in circuits}
    text = "Active accounts whose circuit is open or half-open."
    yield gauge("rme_circuits_open", text, opened, "provider")
    text = f"API keys in use that expire within {KEY_EXPIRES_DAYS} days."
    yield gauge("rme_api_keys_expiring", text, {(): keys[0][0]})
    text = f"Requests for a data export or an erasure past their deadline, up to {COUNTED}."
    yield gauge("rme_privacy_requests_overdue", text, {(): privacy[0][0]})
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
