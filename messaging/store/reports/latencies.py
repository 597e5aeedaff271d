"""Latencies in logarithmic buckets, so that a percentile over any span comes of sums."""

from collections.abc import Sequence

BOUNDS = tuple(round(2 ** (step / 2), 3) for step in range(48))
"""The bounds between buckets in milliseconds, each √2 times the one before: 1 ms to 3.3 hours."""
BUCKETS = len(BOUNDS) + 1
"""The first bucket is below 1 ms, the last is all above the last bound."""


def percentile(counts: Sequence[int], share: float) -> float | None:
    """Return the latency in milliseconds that a share of all stays below; None if there are none.

    It is interpolated within its bucket, so it is off by less than a factor of √2.
    """
    rank, seen = share * sum(counts), 0
    for bucket, count in enumerate(counts):
        if count and seen + count >= rank:
            within = (rank - seen) / count
            if bucket == 0:
                return BOUNDS[0] * within
            low, high = BOUNDS[bucket - 1], BOUNDS[min(bucket, len(BOUNDS) - 1)]
            return float(low * (high / low) ** within)
        seen += count
    return None
