"""Reading the statistics of an organization: by channel over periods, by reason, hour by hour.

SQL, because the buckets of latencies are summed place by place, and six periods are read at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import connection

from messaging.models import CountedOutcome, HourCount, MinuteCount
from messaging.statistics import minutes
from messaging.statistics.latencies import BUCKETS, percentile
from messaging.statistics.minutes import HOUR, hour_of

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

_SUMS = ", ".join(f"coalesce(sum(c.latencies[{place + 1}]), 0)" for place in range(BUCKETS))
_PERIODS = """
SELECT p.period, c.channel, c.outcome, c.reason, sum(c.count),
  CASE WHEN c.outcome = 'sent' THEN ARRAY[{sums}] END
FROM unnest(%s::int[], %s::timestamptz[], %s::timestamptz[]) p(period, first, last)
JOIN {table} c ON c.organization_id = %s AND c.test = %s AND c.at >= p.first AND c.at < p.last
WHERE c.outcome NOT LIKE 'attempt%%' GROUP BY 1, 2, 3, 4
"""
_BY_HOUR = """
SELECT date_trunc('hour', c.at, 'UTC'), c.channel, c.account_id, c.outcome, sum(c.count)
FROM {table} c WHERE c.organization_id = %s AND c.test = %s AND c.at >= %s AND c.at < %s
GROUP BY 1, 2, 3, 4
"""
_TABLES = (MinuteCount._meta.db_table, HourCount._meta.db_table)


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
    found: list[dict[str, ChannelFigures]] = [{} for _ in both]
    reasons: list[ReasonCount] = []
    for index, channel, outcome, reason, count, latencies in _read_periods(
        organization_id, [_pieces(each, border, oldest) for each in both], test=test
    ):
        figures = found[index].setdefault(channel, ChannelFigures())
        figures.counts[outcome] = figures.counts.get(outcome, 0) + count
        if latencies:
            known = figures.latencies or [0] * BUCKETS
            figures.latencies = [a + b for a, b in zip(known, latencies, strict=True)]
        if reason and index == list(SPANS).index(REASONS_SPAN):
            reasons.append(ReasonCount(channel, outcome, reason, count))
    channels, accounts = _by_hour(organization_id, until, border, test=test)
    return Statistics(
        until=until,
        periods=periods,
        current=dict(zip(SPANS, found, strict=False)),
        before=dict(zip(SPANS, found[len(SPANS) :], strict=True)),
        reasons=_summed(reasons),
        channels=channels,
        accounts=accounts,
    )


def last_hours(until: datetime) -> list[datetime]:
    """Return the beginnings of the last hours, the current one included."""
    last = hour_of(until - minutes.MINUTE)
    return [last - HOUR * (HOURS - 1 - place) for place in range(HOURS)]


class _Piece(NamedTuple):
    """A part of a period that one table answers: 0 by minutes, 1 by hours."""

    table: int
    start: datetime
    end: datetime


def _pieces(period: TimeRange, border: datetime, oldest: datetime) -> list[_Piece]:
    """Divide a period into minutes, whole hours, and minutes after the last summed hour.

    Where minutes are no longer kept, the period begins with the hour.
    """
    start, end = period
    if start < oldest:
        start = hour_of(start)
    first = hour_of(start + HOUR - minutes.MINUTE)
    last = min(border, hour_of(end))
    if first >= last:
        return [_Piece(0, start, end)]
    pieces = [_Piece(0, start, first), _Piece(1, first, last), _Piece(0, last, end)]
    return [each for each in pieces if each.start < each.end]


def _read_periods(
    organization_id: str, periods: Sequence[Sequence[_Piece]], *, test: bool
) -> Iterator[tuple[Any, ...]]:
    """Yield the sums of periods by their number, channel, outcome and reason; one statement."""
    values: list[Any] = []
    for table in (0, 1):
        own = [
            (index, piece)
            for index, pieces in enumerate(periods)
            for piece in pieces
            if piece.table == table
        ]
        values += [
            [index for index, _ in own],
            [piece.start for _, piece in own],
            [piece.end for _, piece in own],
            organization_id,
            test,
        ]
    text = " UNION ALL ".join(_PERIODS.format(sums=_SUMS, table=table) for table in _TABLES)
    with connection.cursor() as cursor:
        cursor.execute(text, values)
        yield from cursor.fetchall()


def _by_hour(
    organization_id: str, until: datetime, border: datetime, *, test: bool
) -> tuple[dict[str, list[HourFigures]], dict[int, list[HourFigures]]]:
    """Return the hours by channel and by account; one statement."""
    hours = last_hours(until)
    last = max(border, hours[0])
    values: list[Any] = [organization_id, test, last, until, organization_id, test, hours[0], last]
    channels: dict[str, list[HourFigures]] = {}
    accounts: dict[int, list[HourFigures]] = {}
    places = {hour: index for index, hour in enumerate(hours)}
    with connection.cursor() as cursor:
        text = " UNION ALL ".join(_BY_HOUR.format(table=table) for table in _TABLES)
        cursor.execute(text, values)
        for at, channel, account_id, outcome, count in cursor.fetchall():
            if outcome.startswith("attempt"):
                strip = accounts.setdefault(account_id, [HourFigures(hour) for hour in hours])
            else:
                strip = channels.setdefault(channel, [HourFigures(hour) for hour in hours])
            counts = strip[places[at]].counts
            counts[outcome] = counts.get(outcome, 0) + count
    return channels, accounts


def _summed(reasons: Sequence[ReasonCount]) -> list[ReasonCount]:
    sums: dict[tuple[str, str, str], int] = {}
    for channel, outcome, reason, count in reasons:
        sums[channel, outcome, reason] = sums.get((channel, outcome, reason), 0) + count
    found = [ReasonCount(*key, count) for key, count in sums.items()]
    return sorted(found, key=lambda each: (-each.times, each.channel, each.reason))
