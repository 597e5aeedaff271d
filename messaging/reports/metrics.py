"""Prometheus metrics that are read from the database, for the whole deployment.

They name no organization. They are read at each scrape: PostgreSQL knows the exact backlog of all
processes, while a counter in each process would have to be summed and would be lost with it.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from django.db import connection
from prometheus_client.core import GaugeMetricFamily, Metric

from messaging.models import Attempt, Delivery
from rme.core import ids
from rme.core.channels import Channel

PERIOD = timedelta(minutes=5)
_D = Delivery._meta.db_table

_READY = f"""
SELECT channel, priority, count(*), EXTRACT(EPOCH FROM statement_timestamp() - min(due_at))::float8
FROM {_D} WHERE status = 'ACCEPTED' AND channel = ANY(%s) AND due_at <= statement_timestamp()
GROUP BY channel, priority
"""
_OVERDUE = f"""
SELECT status, count(*) FROM {_D}
WHERE status <> 'ACCEPTED' AND due_at < statement_timestamp() - interval '10 seconds'
GROUP BY status
"""
_ATTEMPTS = f"""
SELECT channel, coalesce(outcome, ''), count(*) FROM {Attempt._meta.db_table}
WHERE id >= %s GROUP BY 1, 2
"""


def collect() -> Iterator[Metric]:
    """Return the gauges, by three statements. Raises django.db.Error."""
    with connection.cursor() as cursor:
        cursor.execute(_READY, [list(Channel)])
        ready = cursor.fetchall()
        cursor.execute(_OVERDUE)
        overdue = cursor.fetchall()
        cursor.execute(_ATTEMPTS, [ids.at_least(datetime.now(UTC) - PERIOD)])
        attempts = cursor.fetchall()
    yield from _backlog(ready)
    late = GaugeMetricFamily(
        "rme_deliveries_overdue",
        "Deliveries that the sweep should have looked after more than ten seconds ago.",
        labels=["status"],
    )
    for status, count in overdue:
        late.add_metric([status], count)
    yield late
    recent = GaugeMetricFamily(
        "rme_recent_attempts",
        "Attempts of the last five minutes, by their outcome; none: not known yet.",
        labels=["channel", "outcome"],
    )
    for channel, outcome, count in attempts:
        recent.add_metric([channel, outcome], count)
    yield recent


def _backlog(rows: list[tuple[str, int, int, float]]) -> Iterator[Metric]:
    """Return the backlog of every channel and priority, also if it is 0: alerts need the data."""
    labels = ["channel", "priority"]
    ready = GaugeMetricFamily(
        "rme_deliveries_ready", "Deliveries that are ready and have not gone.", labels=labels
    )
    oldest = GaugeMetricFamily(
        "rme_deliveries_ready_oldest_seconds", "How long the oldest has been ready.", labels=labels
    )
    known = {(channel, priority): (count, age) for channel, priority, count, age in rows}
    for channel in Channel:
        for priority in (0, 1):
            count, age = known.get((channel, priority), (0, 0.0))
            ready.add_metric([channel, str(priority)], count)
            oldest.add_metric([channel, str(priority)], age)
    yield ready
    yield oldest
