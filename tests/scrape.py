"""/metrics as Prometheus reads it: its samples, by name and labels."""

from django.test import Client
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from rme.core.redis import counters
from rme.core.redis.connection import redis_client
from rme.metrics import GAUGES

Labels = frozenset[tuple[str, str]]


def families() -> list[Metric]:
    """Return the metrics of a scrape; what this process has counted is in them, and gauges are of
    now.
    """
    counters.flush()
    redis_client().delete(GAUGES)
    answer = Client(HTTP_HOST="127.0.0.1:8000").get("/metrics")
    assert answer.status_code == 200
    return list(text_string_to_metric_families(answer.content.decode()))


def samples(name: str) -> dict[Labels, float]:
    """Return the samples of a name by their labels."""
    return {
        frozenset(sample.labels.items()): sample.value
        for family in families()
        for sample in family.samples
        if sample.name == name
    }


def labels(**values: str) -> Labels:
    return frozenset(values.items())
