"""Prometheus metrics that are read from the database, for the whole deployment.

They name no organization. They are read at each scrape: PostgreSQL knows the exact backlog of all
processes, while a counter in each process would have to be summed and would be lost with it.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from django.db.models import Count
from django.db.models.functions import Now
from prometheus_client.core import GaugeMetricFamily, Metric

from messaging.models import Attempt, Delivery
from messaging.reports import lags
from messaging.reports.backlog import backlog
from rme.core import ids
from rme.core.channels import Channel

PERIOD = timedelta(minutes=5)
OVERDUE = timedelta(seconds=10)


def collect() -> Iterator[Metric]:
    """Return the gauges, by five statements. Raises django.db.Error."""
    yield from _backlog()
    yield from lags.collect()
    overdue = Delivery.objects.exclude(status="ACCEPTED").filter(due_at__lt=Now() - OVERDUE)
    late = GaugeMetricFamily(
        "rme_deliveries_overdue",
        "Deliveries that the sweep should have looked after more than ten seconds ago.",
        labels=["status"],
    )
    for status, count in overdue.values_list("status").annotate(count=Count("pk")):
        late.add_metric([status], count)
    yield late
    recent = GaugeMetricFamily(
        "rme_recent_attempts",
        "Attempts of the last five minutes, by their outcome; none: not known yet.",
        labels=["channel", "outcome"],
    )
    since = ids.at_least(datetime.now(UTC) - PERIOD)
    attempts = Attempt.objects.filter(pk__gte=since).values_list("channel", "outcome")
    for channel, outcome, count in attempts.annotate(count=Count("pk")):
        recent.add_metric([channel, outcome or ""], count)
    yield recent


def _backlog() -> Iterator[Metric]:
    """Return the backlog of every channel and priority, also if it is 0: alerts need the data."""
    labels = ["channel", "priority"]
    ready = GaugeMetricFamily(
        "rme_deliveries_ready", "Deliveries that are ready and have not gone.", labels=labels
    )
    oldest = GaugeMetricFamily(
        "rme_deliveries_ready_oldest_seconds", "How long the oldest has been ready.", labels=labels
    )
    known = {
        (channel, priority): (count, age.total_seconds())
        for channel, priority, count, age in backlog("channel", "priority")
    }
    for channel in Channel:
        for priority in (0, 1):
            count, age = known.get((channel, priority), (0, 0.0))
            ready.add_metric([channel, str(priority)], count)
            oldest.add_metric([channel, str(priority)], age)
    yield ready
    yield oldest
