"""The statistics of an organization: what has become of the messages of a period, by channel and
reason, hour by hour; how long they took; and the attempts of provider accounts.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from messaging.domain.figures import FIGURE_OF, Figure, figures
from messaging.domain.statuses import Status
from messaging.models import CountedOutcome, HourCount, MinuteCount
from messaging.statistics import minutes
from messaging.statistics.minutes import HOUR, hour_of
from messaging.store.reports import statistics
from messaging.store.reports.latencies import BUCKETS, percentile
from messaging.store.reports.statistics import MINUTE, PeriodPart, StatusCount

SPANS = {"24h": 24, "7d": 24 * 7}
"""The periods to choose, in hours: the last ones, with the hour that runs."""
WEEK = timedelta(days=7)
HOURS = 24
"""The hours of the attempts of accounts."""
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


class ReasonCount(NamedTuple):
    """How many deliveries failed or were not sent for a reason."""

    channel: str
    figure: Figure
    reason: str
    times: int


@dataclass(slots=True)
class HourFigures:
    """The attempts of an account in an hour."""

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
class Figures:
    """What has become of messages: the figures add up to the accepted ones."""

    counts: Mapping[Figure, int]

    @property
    def accepted(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class PeriodFigures:
    """The messages that were accepted in a period, as they are now."""

    channels: Mapping[str, Figures]
    hours: Sequence[Figures]
    """The oldest first."""

    @property
    def total(self) -> Figures:
        sums: Counter[Figure] = Counter()
        for each in self.channels.values():
            sums.update(each.counts)
        return Figures({figure: sums[figure] for figure in Figure})


@dataclass(frozen=True, slots=True)
class Statistics:
    """The statistics of an organization, up to the last minute that was counted."""

    span: TimeRange
    current: PeriodFigures
    before: PeriodFigures
    """The same hours of the week before."""
    reasons: Sequence[ReasonCount]
    """The most frequent first."""
    latencies: Mapping[str, Sequence[int]]
    """Milliseconds from accept to the provider by channel, in buckets."""
    accounts: Mapping[int, Sequence[HourFigures]]
    """The last hours by account, the oldest first."""

    def latency(self, channel: str, share: float) -> float | None:
        """Return a percentile of a channel's latencies."""
        return percentile(self.latencies.get(channel, ()), share)


def read(organization_id: str, *, test: bool, hours: int = HOURS) -> Statistics | None:
    """Return the statistics of the last hours, by three statements; None before the job's first
    run.
    """
    progress = minutes.read_progress()
    if progress is None:
        return None
    until, border = progress.first_until, hour_of(progress.final_until)
    starts = last_hours(until, hours)
    span = TimeRange(starts[0], until)
    weeks = [(start, start + HOUR * hours) for start in (span.start, span.start - WEEK)]
    rows = statistics.read_statuses(organization_id, weeks, test=test)
    current, before = (
        _period([row for row in rows if row.period == number], weeks[number - 1][0], hours)
        for number in (1, 2)
    )
    return Statistics(
        span=span,
        current=current,
        before=before,
        reasons=_reasons(row for row in rows if row.period == 1),
        latencies=_latencies(organization_id, span, border, test=test),
        accounts={} if test else _attempts(organization_id, until, border),
    )


def read_accounts(organization_id: str) -> dict[int, list[HourFigures]]:
    """Return the attempts of the last hours by account, by two statements; the oldest first."""
    progress = minutes.read_progress()
    if progress is None:
        return {}
    return _attempts(organization_id, progress.first_until, hour_of(progress.final_until))


def last_hours(until: datetime, hours: int = HOURS) -> list[datetime]:
    """Return the beginnings of the last hours, the current one included."""
    last = hour_of(until - MINUTE)
    return [last - HOUR * (hours - 1 - place) for place in range(hours)]


def _period(rows: Sequence[StatusCount], start: datetime, hours: int) -> PeriodFigures:
    by_channel: dict[str, Counter[Status]] = {}
    by_hour: list[Counter[Status]] = [Counter() for _ in range(hours)]
    for row in rows:
        status = Status(row.status.upper())
        by_channel.setdefault(row.channel, Counter())[status] += row.deliveries
        by_hour[(row.at - start) // HOUR][status] += row.deliveries
    return PeriodFigures(
        {channel: Figures(figures(counts)) for channel, counts in by_channel.items()},
        [Figures(figures(counts)) for counts in by_hour],
    )


def _reasons(rows: Iterable[StatusCount]) -> list[ReasonCount]:
    sums: Counter[tuple[str, Figure, str]] = Counter()
    for row in rows:
        if row.reason:
            sums[row.channel, FIGURE_OF[Status(row.status.upper())], row.reason] += row.deliveries
    counts = [ReasonCount(*key, count) for key, count in sums.items()]
    return sorted(counts, key=lambda total: (-total.times, total.channel, total.reason))


def _latencies(
    organization_id: str, span: TimeRange, border: datetime, *, test: bool
) -> dict[str, Sequence[int]]:
    oldest = span.end - minutes.MINUTE_RETENTION + HOUR
    parts = _parts(span, border, oldest)
    sums: dict[str, Sequence[int]] = {}
    for channel, buckets in statistics.read_latencies(organization_id, parts, test=test):
        before = sums.get(channel, [0] * BUCKETS)
        sums[channel] = [a + b for a, b in zip(before, buckets, strict=True)]
    return sums


def _parts(span: TimeRange, border: datetime, oldest: datetime) -> list[PeriodPart]:
    """Divide a period into minutes, whole hours, and minutes after the last summed hour.

    Where minutes are no longer kept, the period begins with the hour.
    """
    start, end = span
    if start < oldest:
        start = hour_of(start)
    first = hour_of(start + HOUR - MINUTE)
    last = min(border, hour_of(end))
    if first >= last:
        return [PeriodPart(MinuteCount, start, end)]
    parts = [
        PeriodPart(MinuteCount, start, first),
        PeriodPart(HourCount, first, last),
        PeriodPart(MinuteCount, last, end),
    ]
    return [each for each in parts if each.start < each.end]


def _attempts(
    organization_id: str, until: datetime, border: datetime
) -> dict[int, list[HourFigures]]:
    """Return the attempts by account and hour; one statement."""
    hours = last_hours(until)
    places = {hour: index for index, hour in enumerate(hours)}
    accounts: dict[int, list[HourFigures]] = {}
    for row in statistics.read_attempts(organization_id, hours[0], max(border, hours[0]), until):
        strip = accounts.setdefault(row.account_id, [HourFigures(hour) for hour in hours])
        counts = strip[places[row.at]].counts
        counts[row.outcome] = counts.get(row.outcome, 0) + row.attempts
    return accounts
