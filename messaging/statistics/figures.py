"""The statistics of an organization: by channel over periods, by reason, hour by hour."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from messaging.models import CountedOutcome, HourCount, MinuteCount
from messaging.statistics import minutes
from messaging.statistics.minutes import HOUR, hour_of
from messaging.store.reports import statistics
from messaging.store.reports.latencies import BUCKETS, percentile
from messaging.store.reports.statistics import MINUTE, PeriodPart

SPANS = {"1 h": HOUR, "24 h": timedelta(hours=24), "7 d": timedelta(days=7)}
"""The periods that end now, by name. Each is read a second time, of the week before."""
WEEK = timedelta(days=7)
HOURS = 24
REASONS_SPAN = "24 h"
_ANSWERED = (
    CountedOutcome.ATTEMPT_ACCEPTED,
    CountedOutcome.ATTEMPT_RETRYABLE,
    CountedOutcome.ATTEMPT_MISCONFIGURED,
    CountedOutcome.ATTEMPT_UNKNOWN,
)
"""As in health: rejections for the recipient's sake do not count against a provider."""


class TimeRange(NamedTuple):
    """A span of time, to the minute. `end` is not part of it."""

    start: datetime
    end: datetime

    def earlier(self, by: timedelta) -> "TimeRange":
        return TimeRange(self.start - by, self.end - by)


@dataclass(slots=True)
class ChannelFigures:
    """What happened on a channel in a period."""

    counts: dict[str, int] = field(default_factory=dict)
    latencies: Sequence[int] = ()

    def of(self, *outcomes: CountedOutcome) -> int:
        return sum(self.counts.get(each, 0) for each in outcomes)

    def latency(self, share: float) -> float | None:
        """Return a percentile of the milliseconds from accept to the provider."""
        return percentile(self.latencies, share)


class ReasonCount(NamedTuple):
    """How often deliveries failed or were not sent for a reason."""

    channel: str
    outcome: str
    reason: str
    times: int


@dataclass(slots=True)
class HourFigures:
    """What happened in an hour, on a channel or by an account."""

    at: datetime
    counts: dict[str, int] = field(default_factory=dict)

    def of(self, *outcomes: CountedOutcome) -> int:
        return sum(self.counts.get(each, 0) for each in outcomes)

    @property
    def answered(self) -> int:
        """Return how many attempts were answered, or should have been, for the account's sake."""
        return self.of(*_ANSWERED)

    @property
    def success(self) -> float | None:
        """Return the share of these attempts that the provider accepted."""
        return self.of(CountedOutcome.ATTEMPT_ACCEPTED) / self.answered if self.answered else None


@dataclass(frozen=True, slots=True)
class Statistics:
    """The statistics of an organization, up to the last minute that was counted."""

    until: datetime
    periods: Mapping[str, TimeRange]
    current: Mapping[str, Mapping[str, ChannelFigures]]
    """By name of the span and channel."""
    before: Mapping[str, Mapping[str, ChannelFigures]]
    """The same spans a week before."""
    reasons: Sequence[ReasonCount]
    """Of `REASONS_SPAN`, the most frequent first."""
    channels: Mapping[str, Sequence[HourFigures]]
    """The last hours by channel, the oldest first."""
    accounts: Mapping[int, Sequence[HourFigures]]
    """The last hours by account."""


def read(organization_id: str, *, test: bool) -> Statistics | None:
    """Return the statistics, by three statements; None before the job's first run."""
    progress = minutes.read_progress()
    if progress is None:
        return None
    until, border = progress.first_until, hour_of(progress.final_until)
    periods = {name: TimeRange(until - span, until) for name, span in SPANS.items()}
    both = [*periods.values(), *(each.earlier(WEEK) for each in periods.values())]
    oldest = until - minutes.MINUTE_RETENTION + HOUR
    sums: list[dict[str, ChannelFigures]] = [{} for _ in both]
    reasons: list[ReasonCount] = []
    pieces = [
        piece for index, each in enumerate(both) for piece in _pieces(index, each, border, oldest)
    ]
    for row in statistics.read_periods(organization_id, pieces, test=test):
        figures = sums[row.period].setdefault(row.channel, ChannelFigures())
        figures.counts[row.outcome] = figures.counts.get(row.outcome, 0) + row.count
        if row.latencies:
            buckets = figures.latencies or [0] * BUCKETS
            figures.latencies = [a + b for a, b in zip(buckets, row.latencies, strict=True)]
        if row.reason and row.period == list(SPANS).index(REASONS_SPAN):
            reasons.append(ReasonCount(row.channel, row.outcome, row.reason, row.count))
    channels, accounts = _by_hour(organization_id, until, border, test=test)
    return Statistics(
        until=until,
        periods=periods,
        current=dict(zip(SPANS, sums, strict=False)),
        before=dict(zip(SPANS, sums[len(SPANS) :], strict=True)),
        reasons=_summed(reasons),
        channels=channels,
        accounts=accounts,
    )


def last_hours(until: datetime) -> list[datetime]:
    """Return the beginnings of the last hours, the current one included."""
    last = hour_of(until - MINUTE)
    return [last - HOUR * (HOURS - 1 - place) for place in range(HOURS)]


def _pieces(index: int, period: TimeRange, border: datetime, oldest: datetime) -> list[PeriodPart]:
    """Divide a period into minutes, whole hours, and minutes after the last summed hour.

    Where minutes are no longer kept, the period begins with the hour.
    """
    start, end = period
    if start < oldest:
        start = hour_of(start)
    first = hour_of(start + HOUR - MINUTE)
    last = min(border, hour_of(end))
    if first >= last:
        return [PeriodPart(index, MinuteCount, start, end)]
    pieces = [
        PeriodPart(index, MinuteCount, start, first),
        PeriodPart(index, HourCount, first, last),
        PeriodPart(index, MinuteCount, last, end),
    ]
    return [each for each in pieces if each.start < each.end]


def _by_hour(
    organization_id: str, until: datetime, border: datetime, *, test: bool
) -> tuple[dict[str, list[HourFigures]], dict[int, list[HourFigures]]]:
    """Return the hours by channel and by account; one statement."""
    hours = last_hours(until)
    sums = statistics.read_hours(organization_id, hours[0], max(border, hours[0]), until, test=test)
    channels: dict[str, list[HourFigures]] = {}
    accounts: dict[int, list[HourFigures]] = {}
    places = {hour: index for index, hour in enumerate(hours)}
    for row in sums:
        if row.outcome.startswith("attempt"):
            strip = accounts.setdefault(row.account_id, [HourFigures(hour) for hour in hours])
        else:
            strip = channels.setdefault(row.channel, [HourFigures(hour) for hour in hours])
        counts = strip[places[row.at]].counts
        counts[row.outcome] = counts.get(row.outcome, 0) + row.count
    return channels, accounts


def _summed(reasons: Sequence[ReasonCount]) -> list[ReasonCount]:
    sums: dict[tuple[str, str, str], int] = {}
    for channel, outcome, reason, count in reasons:
        sums[channel, outcome, reason] = sums.get((channel, outcome, reason), 0) + count
    counts = [ReasonCount(*key, count) for key, count in sums.items()]
    return sorted(counts, key=lambda total: (-total.times, total.channel, total.reason))
