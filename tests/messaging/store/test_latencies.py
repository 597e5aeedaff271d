"""Buckets of latencies: their percentiles are those of the values, but for a factor of √2."""

from bisect import bisect_right
from math import sqrt

from hypothesis import given
from hypothesis import strategies as st

from messaging.store.reports.latencies import BOUNDS, BUCKETS, percentile


def counts(values):
    found = [0] * BUCKETS
    for value in values:
        found[bisect_right(BOUNDS, value)] += 1
    return found


def test_the_bounds_reach_from_a_millisecond_to_hours():
    assert (BOUNDS[0], BUCKETS, round(BOUNDS[-1] / 3_600_000, 1)) == (1.0, 49, 3.3)


def test_percentile_without_values_is_none():
    assert percentile([0] * BUCKETS, 0.5) is None
    assert percentile([], 0.5) is None


def test_percentiles_are_interpolated_within_a_bucket():
    assert percentile(counts([1.2] * 10), 1.0) == BOUNDS[1]
    assert percentile([4, *[0] * (BUCKETS - 1)], 0.5) == 0.5
    assert percentile(counts([10**9]), 0.5) == BOUNDS[-1]


@given(
    st.lists(st.floats(min_value=1, max_value=10_000_000), min_size=1, max_size=50),
    st.sampled_from([0.5, 0.95]),
)
def test_a_percentile_is_off_by_less_than_a_bucket(values, share):
    exact = sorted(values)[max(0, -int(-share * len(values) // 1) - 1)]
    found = percentile(counts(values), share)
    assert exact / (sqrt(2) * 1.001) <= found <= exact * sqrt(2) * 1.001
