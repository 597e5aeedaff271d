"""/metrics as Prometheus reads it: its samples, by name and labels."""

from collections.abc import Iterable

from django.test import Client
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from rme.core.redis.connection import redis_client
from rme.core.telemetry import meters
from rme.metrics import GAUGES

Labels = frozenset[tuple[str, str]]


def families() -> list[Metric]:
    """Return the metrics of a scrape; gauges of the database are of now."""
    redis_client().delete(GAUGES)
    answer = Client(HTTP_HOST="127.0.0.1:8000").get("/metrics")
    assert answer.status_code == 200
    return list(text_string_to_metric_families(answer.content.decode()))


def samples(name: str) -> dict[Labels, float]:
    """Return the samples of a name by their labels, as a scrape shows them."""
    return _samples(name, families())


def counted(name: str) -> dict[Labels, float]:
    """Return the samples of what processes have counted (the fixture `counting`)."""
    return _samples(name, meters.read())


def _samples(name: str, metrics: Iterable[Metric]) -> dict[Labels, float]:
    return {
        frozenset(sample.labels.items()): sample.value
        for metric in metrics
        for sample in metric.samples
        if sample.name == name
    }


def labels(**values: str) -> Labels:
    return frozenset(values.items())
