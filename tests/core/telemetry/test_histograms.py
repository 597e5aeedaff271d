"""Histograms that several processes add up."""

import pytest

from rme.core.redis import counters
from rme.core.redis.counters import Counters
from rme.core.telemetry.histograms import Histogram

SECONDS = Histogram("test_seconds", "For this test.", ["kind"], (0.1, 1.0))


@pytest.fixture(autouse=True)
def _nothing_counted(redis):
    counters.flush()
    redis.flushdb()


def shown():
    counters.flush()
    family = SECONDS.family(counters.read())
    return {(s.name, s.labels["kind"], s.labels.get("le")): s.value for s in family.samples}


def test_values_are_counted_in_cumulative_buckets():
    # a bound belongs to its bucket, as Prometheus has it; a clock that was set back counts as 0
    SECONDS.observe_each([(0.1, ("a",)), (0.5, ("a",)), (7.0, ("a",)), (-3.0, ("a",))])
    SECONDS.observe(0.2, "b")
    found = shown()
    assert found.pop(("test_seconds_sum", "a", None)) == pytest.approx(7.6)
    assert found == {
        ("test_seconds_bucket", "a", "0.1"): 2,
        ("test_seconds_bucket", "a", "1.0"): 3,
        ("test_seconds_bucket", "a", "+Inf"): 4,
        ("test_seconds_count", "a", None): 4,
        ("test_seconds_bucket", "b", "0.1"): 0,
        ("test_seconds_bucket", "b", "1.0"): 1,
        ("test_seconds_bucket", "b", "+Inf"): 1,
        ("test_seconds_count", "b", None): 1,
        ("test_seconds_sum", "b", None): 0.2,
    }


def test_histograms_of_several_processes_add_up_and_strange_buckets_are_left_out():
    for process in (Counters(), Counters()):
        process.add_each({("test_seconds_bucket", "a", "1"): 2.0, ("test_seconds_sum", "a"): 1.5})
        process.flush()
    counters.add("test_seconds_bucket", "a", "9")  # of a release with more buckets
    found = shown()
    assert found["test_seconds_count", "a", None] == 4
    assert found["test_seconds_sum", "a", None] == 3.0


def test_empty_observation_stores_nothing():
    SECONDS.observe_each([])
    assert shown() == {}
