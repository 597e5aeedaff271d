"""Prometheus metrics that are read from the database, for the whole deployment.

They name no organization. PostgreSQL knows the exact backlog of all processes, while a counter in
each process would have to be summed and would be lost with it.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from prometheus_client.core import Metric

from messaging.domain.statuses import Status
from messaging.reports import lags, problem_gauges
from messaging.reports.lags import Values, gauge
from messaging.store.reports import gauges
from messaging.store.reports.gauges import COUNTED
from rme.core.db import sql

PERIOD = timedelta(minutes=5)


def collect() -> Iterator[Metric]:
    """Return the gauges, by seven statements. Raises django.db.Error."""
    ready, unsent, released, swept, attempts = gauges.read_queues(datetime.now(UTC) - PERIOD)
    yield from _ready(ready)
    yield gauge(
        "rme_transactional_oldest_seconds",
        "How long ago the oldest TRANSACTIONAL delivery was accepted that has not gone, of those "
        f"that no pause covers and that did not fall back; of the first {COUNTED}.",
        {(channel,): age for channel, age in unsent},
        "channel",
    )
    late_counts: Values = {(Status.SCHEDULED.value,): released[0][0]}
    late_counts |= {(status,): rows for status, rows in swept}
    yield gauge(
        "rme_deliveries_overdue",
        "Deliveries that the sweep should have looked after more than ten seconds ago, "
        f"up to {COUNTED} of a status.",
        late_counts,
        "status",
    )
    yield gauge(
        "rme_recent_attempts",
        f"The newest {COUNTED} attempts of the last five minutes, by their outcome; "
        "none: not known yet.",
        {(channel, outcome): rows for channel, outcome, rows in attempts},
        "channel",
        "outcome",
    )
    yield from problem_gauges.collect(ready)
    yield from lags.collect()


def _ready(rows: sql.Rows) -> Iterator[Metric]:
    """Return the backlog of every channel and priority, also if it is 0: alerts need the data."""
    labels = ("channel", "priority")
    text = f"Deliveries that are ready and have not gone, up to {COUNTED}."
    counts: Values = {(channel, str(priority)): count for channel, priority, count, _ in rows}
    yield gauge("rme_deliveries_ready", text, counts, *labels)
    ages: Values = {(channel, str(priority)): age for channel, priority, _, age in rows}
    text = "How long the oldest has been ready."
    yield gauge("rme_deliveries_ready_oldest_seconds", text, ages, *labels)
