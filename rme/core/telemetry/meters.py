"""Counters, gauges and histograms of a process, for /metrics.

A process of the service shares them with the others of its machine (`share`), and a scrape of any
of them shows the sums. Another process, such as a command, counts for itself alone. Counting never
fails, but for want of memory: what can't be counted is lost, and the log says so once.
"""

import collections
import os
import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import prometheus_client
import structlog
from prometheus_client import values
from prometheus_client.core import Metric

from rme.core.telemetry import metric_files
from rme.core.telemetry.metric_files import FileNumber

log = structlog.get_logger(__name__)

Labels = tuple[str, ...]
_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that prometheus_client reads when it opens a file."""
_making = threading.Lock()
values.ValueClass = values.MutexValue  # until `share`, also below a process that shares


@cache
def _log_loss(error: str) -> None:
    log.warning("metrics.lost", error=error)


class _LosingErrors:
    """Lets no work stop for a metric: logs that something isn't counted, once for each kind of
    error. A MemoryError passes, since it ends the process.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        if kind is None or not issubclass(kind, Exception) or issubclass(kind, MemoryError):
            return False
        _log_loss(kind.__name__)
        return True


_losing_errors = _LosingErrors()


class Meter:
    """A metric of all processes. Label values must be few: each is a time series for ever."""

    def __init__(self, name: str, help_text: str, labels: Sequence[str] = ()) -> None:
        self.name, self.help, self.labels = name, help_text, tuple(labels)
        self._metric: Any = None  # prometheus_client's classes share no typed interface
        ALL.append(self)

    def show(self, labels: Labels = ()) -> None:
        """Show a series before it has counted, so that its first increase can be seen."""
        with _losing_errors:
            self._series(labels)

    def forget(self) -> None:
        """Forget what this process has counted; its files keep it."""
        self._metric = None

    def _series(self, labels: Labels) -> Any:
        if self._metric is None:
            with _making:
                # Made now: only then is it certain whether this process shares its metrics.
                self._metric = self._metric or self._make()
        return self._metric.labels(*labels) if labels else self._metric

    def _make(self) -> object:
        raise NotImplementedError


ALL: list[Meter] = []


class Counter(Meter):
    """A number that only grows."""

    def add(self, *labels: str, by: float = 1) -> None:
        """Count occurrences."""
        with _losing_errors:
            self._series(labels).inc(by)

    def _make(self) -> object:
        return prometheus_client.Counter(self.name, self.help, self.labels, registry=None)


class Gauge(Meter):
    """A number of each process; a scrape shows the sum, or the maximum, of those that run."""

    def __init__(
        self,
        name: str,
        help_text: str,
        labels: Sequence[str] = (),
        mode: Literal["livesum", "livemax"] = "livesum",
    ) -> None:
        super().__init__(name, help_text, labels)
        self._mode = mode

    def set(self, value: float, *labels: str) -> None:
        """Store the value of this process."""
        with _losing_errors:
            self._series(labels).set(value)

    def _make(self) -> object:
        return prometheus_client.Gauge(
            self.name, self.help, self.labels, registry=None, multiprocess_mode=self._mode
        )


class Histogram(Meter):
    """How long things took, in seconds."""

    def __init__(
        self, name: str, help_text: str, labels: Sequence[str], bounds: Sequence[float]
    ) -> None:
        """`bounds` are the upper bounds of the buckets; one without a bound follows them."""
        super().__init__(name, help_text, labels)
        self.bounds = bounds

    def observe(self, seconds: float, *labels: str) -> None:
        """Count one value."""
        self.observe_each([(seconds, labels)])

    def observe_each(self, measurements: Iterable[tuple[float, Labels]]) -> None:
        """Count values, each with its labels. One below 0, of clocks that differ, counts as 0."""
        with _losing_errors:
            by_labels: defaultdict[Labels, list[float]] = defaultdict(list)
            for seconds, labels in measurements:
                by_labels[labels].append(max(0.0, seconds))
            for labels, values_of_series in by_labels.items():
                self._count(self._series(labels), values_of_series)

    def _count(self, series: Any, seconds: Sequence[float]) -> None:
        """Count values as `series.observe` does, but change each of its numbers once: each change
        is a lock and a write to a file.
        """
        buckets = collections.Counter([bisect_left(self.bounds, value) for value in seconds])
        series._sum.inc(sum(seconds))
        for bucket, count in buckets.items():
            series._buckets[bucket].inc(count)

    def _make(self) -> object:
        return prometheus_client.Histogram(
            self.name, self.help, self.labels, registry=None, buckets=self.bounds
        )


class _Shared:
    """Where this process shares its metrics, if it does."""

    folder: Path | None = None
    number: FileNumber | None = None

    def leave(self) -> None:
        """Release the number of the files: after a fork it is the parent's."""
        if self.number:
            self.number.release()


_shared = _Shared()
os.register_at_fork(after_in_child=_shared.leave)


def share(folder: Path) -> None:
    """Share what this process and its forks will count, in files of a folder. If the folder can't
    be used, each counts for itself.
    """
    reset()
    os.environ[_FOLDER] = str(folder)
    number = FileNumber(folder)
    try:
        metric_files.prepare(folder)
        values.ValueClass = values.MultiProcessValue(number)
    except OSError as error:
        log.warning("metrics.not_shared", folder=str(folder), error=str(error))
    else:
        _shared.folder, _shared.number = folder, number


def reset() -> None:
    """Let this process count for itself, from 0. What it has shared stays."""
    _shared.leave()
    _shared.folder = _shared.number = None
    os.environ.pop(_FOLDER, None)
    values.ValueClass = values.MutexValue
    for meter in ALL:
        meter.forget()


def read() -> Iterable[Metric]:
    """Return the metrics of the machine's processes; none if this process shares none."""
    return metric_files.read(_shared.folder) if _shared.folder else ()
