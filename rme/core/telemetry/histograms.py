"""Histograms of all processes: how long things took, for /metrics.

A histogram is kept as counters (`rme.core.redis.counters`): one for each bucket, and the sum. So
they are added up over processes like the others, and a scrape of any process shows them all.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.core import HistogramMetricFamily

from rme.core.redis import counters
from rme.core.redis.counters import Labels

BUCKET, SUM = "_bucket", "_sum"
"""The ends of the names of a histogram's counters."""


@dataclass(frozen=True)
class Histogram:
    """A histogram of seconds. Label values must be few: each has as many series as buckets."""

    name: str
    help: str
    labels: Sequence[str]
    bounds: Sequence[float]
    """The upper bounds of the buckets, in ascending order; one without a bound follows them."""

    def observe(self, seconds: float, *labels: str) -> None:
        """Count one value."""
        self.observe_each([(seconds, labels)])

    def observe_each(self, values: Iterable[tuple[float, Labels]]) -> None:
        """Count values, each with its labels, all at once. Those below 0, of clocks that differ,
        count as 0.
        """
        counts: defaultdict[tuple[Labels, int], int] = defaultdict(int)
        sums: defaultdict[Labels, float] = defaultdict(float)
        for seconds, labels in values:
            bounded = max(0.0, seconds)
            counts[labels, bisect_left(self.bounds, bounded)] += 1
            sums[labels] += bounded
        if sums:
            bucket, total = self.name + BUCKET, self.name + SUM
            counters.add_each(
                {(bucket, *labels, str(place)): count for (labels, place), count in counts.items()}
                | {(total, *labels): amount for labels, amount in sums.items()}
            )

    def family(self, amounts: Mapping[str, Mapping[Labels, float]]) -> HistogramMetricFamily:
        """Build the metric from the counters of all processes (`counters.read`)."""
        family = HistogramMetricFamily(self.name, self.help, labels=self.labels)
        counts: defaultdict[Labels, list[float]] = defaultdict(lambda: [0.0] * self._size)
        for (*labels, place), count in amounts.get(self.name + BUCKET, {}).items():
            if int(place) < self._size:  # a release with more buckets may have counted it
                counts[tuple(labels)][int(place)] = count
        sums = amounts.get(self.name + SUM, {})
        for labels_of, bucket_counts in sorted(counts.items()):
            family.add_metric(labels_of, self._cumulative(bucket_counts), sums.get(labels_of, 0.0))
        return family

    @property
    def _size(self) -> int:
        return len(self.bounds) + 1

    def _cumulative(self, counts: Sequence[float]) -> list[tuple[str, float]]:
        """Return the buckets as Prometheus has them: each counts those below it, too."""
        total, buckets = 0.0, []
        for bound, count in zip((*map(str, self.bounds), "+Inf"), counts, strict=True):
            total += count
            buckets.append((bound, total))
        return buckets
