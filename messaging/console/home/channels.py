"""The figures of an organization in words: each number with the list behind it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from messaging.console import wording
from messaging.console.access import Viewer
from messaging.console.filters.message_filter import MOMENT, WAITING
from messaging.console.home.charts import Lines, lines
from messaging.domain import figures
from messaging.domain.channels import Channel
from messaging.domain.figures import STATUSES, Figure
from messaging.policy import organization_policy
from messaging.reports.health import Queue
from messaging.statistics.figures import Figures, Statistics, TimeRange

REASONS = 8
COLUMNS: Mapping[Figure, str] = {
    Figure.DELIVERED: "Delivered",
    Figure.SENT: "Sent",
    Figure.WAITING: "Waiting",
    Figure.FAILED: "Failed",
    Figure.NOT_SENT: "Not sent",
    Figure.EXPIRED: "Expired",
    Figure.CANCELLED: "Cancelled",
}
SPANS = {"24h": "24 hours", "7d": "7 days"}
"""The periods to choose."""


@dataclass(frozen=True, slots=True)
class TableCell:
    """A figure with its column's title, and the list behind it unless it is zero."""

    title: str
    text: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class ChannelRow:
    """The figures of a channel, or of all."""

    channel: str
    cells: Sequence[TableCell]
    """The first is all that was accepted; the others add up to it."""
    latencies: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Tile:
    """A figure with what it was a week before."""

    title: str
    text: str
    note: str
    comparison: str
    url: str
    chart: Lines | None = None


@dataclass(frozen=True, slots=True)
class CountedLine:
    """A sentence with a number, and the list behind it."""

    text: str
    count: str
    url: str


@dataclass(frozen=True, slots=True)
class Lists:
    """The lists behind the figures of a person's organization, in a period and a mode."""

    viewer: Viewer
    span: TimeRange
    test: bool

    def url(self, **filters: str) -> str:
        """Return the address of the message list of the period, with filters."""
        start, end = (moment.astimezone(self.viewer.zone) for moment in self.span)
        query = {
            "mode": "test" if self.test else "live",
            "since": start.strftime(MOMENT),
            "until": end.strftime(MOMENT),
            **{name: value for name, value in filters.items() if value},
        }
        path = reverse("console:messages", args=[self.viewer.organization_id])
        return f"{path}?{urlencode(query)}"


def _filter(figure: Figure) -> str:
    """Return the status by which the list shows a figure."""
    return WAITING if figure is Figure.WAITING else STATUSES[figure][0]


def rows(lists: Lists, statistics: Statistics) -> list[ChannelRow]:
    """Return the rows of the channels that have figures or a provider account, and of all of them
    if there are several.
    """
    viewer = lists.viewer
    served = {each.channel for each in organization_policy.of(viewer.organization_id).accounts}
    channel_names = set(statistics.current.channels) | (set() if lists.test else served)
    channels = [channel for channel in Channel if channel in channel_names]
    nothing = Figures(dict.fromkeys(Figure, 0))
    table = [
        ChannelRow(
            channel.label,
            _cells(lists, statistics.current.channels.get(channel, nothing), channel),
            [
                ("Median", duration(statistics.latency(channel, 0.5))),
                ("95th percentile", duration(statistics.latency(channel, 0.95))),
            ],
        )
        for channel in channels
    ]
    if len(table) > 1:
        table.append(ChannelRow("All", _cells(lists, statistics.current.total), []))
    return table


def _cells(lists: Lists, channel_figures: Figures, channel: str = "") -> list[TableCell]:
    cells = [_cell("Accepted", channel_figures.accepted, lists.url(channel=channel))]
    for figure, title in COLUMNS.items():
        url = lists.url(channel=channel, status=_filter(figure))
        cells.append(_cell(title, channel_figures.counts[figure], url))
    return cells


def _cell(title: str, count: int, url: str) -> TableCell:
    return TableCell(title, f"{count:,}", url if count else "")


def tiles(lists: Lists, statistics: Statistics, queues: Sequence[Queue]) -> list[Tile]:
    """Return the tiles: accepted, succeeded, failed and waiting messages."""
    current, week_before = statistics.current, statistics.before
    now, then = current.total.counts, week_before.total.counts
    accepted, accepted_before = current.total.accepted, week_before.total.accepted
    successes = now[Figure.DELIVERED] + now[Figure.SENT]
    tried = successes + now[Figure.FAILED]
    tried_before = then[Figure.DELIVERED] + then[Figure.SENT] + then[Figure.FAILED]
    return [
        Tile(
            "Accepted",
            f"{accepted:,}",
            "",
            f"{accepted_before:,} a week before" if accepted_before else "None a week before",
            lists.url(),
            _chart(statistics, lambda counts: sum(counts.values())),
        ),
        Tile(
            "Delivered or sent",
            percent(figures.success(now)),
            f"{now[Figure.DELIVERED]:,} delivered, {now[Figure.SENT]:,} sent",
            _before(figures.success(then)),
            lists.url(status=_filter(Figure.DELIVERED)),
            _chart(statistics, lambda counts: counts[Figure.DELIVERED] + counts[Figure.SENT]),
        ),
        Tile(
            "Failed",
            percent(now[Figure.FAILED] / tried if tried else None),
            f"{now[Figure.FAILED]:,} of {tried:,} tried",
            _before(then[Figure.FAILED] / tried_before if tried_before else None),
            lists.url(status=_filter(Figure.FAILED)),
            _chart(statistics, lambda counts: counts[Figure.FAILED]),
        ),
        Tile(
            "Waiting",
            f"{now[Figure.WAITING]:,}",
            _oldest(queues),
            "",
            lists.url(status=WAITING),
        ),
    ]


def _before(share: float | None) -> str:
    return "None a week before" if share is None else f"{percent(share)} a week before"


def _oldest(queues: Sequence[Queue]) -> str:
    ready = sum(each.ready for each in queues)
    if not ready:
        return "None ready to be sent"
    oldest = max(each.oldest_seconds for each in queues if each.ready)
    return f"{ready:,} ready, the oldest for {duration(1000 * oldest)}"


def _chart(statistics: Statistics, value: Callable[[Mapping[Figure, int]], int]) -> Lines | None:
    current, week_before = (
        [float(value(hour.counts)) for hour in period.hours]
        for period in (statistics.current, statistics.before)
    )
    return lines(current, week_before) if any(current) or any(week_before) else None


def percent(share: float | None) -> str:
    """Return a share in percent, never rounded up to all or down to nothing; a dash if none."""
    if share is None:
        return "–"
    rounded = round(100 * share, 1)
    if rounded == 100 and share < 1:
        rounded = 99.9
    if rounded == 0 and share:
        rounded = 0.1
    return f"{rounded:g} %"


def duration(milliseconds: float | None) -> str:
    """Return a latency as people read it; a dash if there is none."""
    if milliseconds is None:
        return "–"
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    for limit, size, unit in ((60, 1, "s"), (3600, 60, "min"), (float("inf"), 3600, "h")):
        if seconds < limit:
            amount = seconds / size
            return f"{amount:.1f} {unit}" if amount < 10 else f"{amount:.0f} {unit}"
    raise AssertionError


def reasons(lists: Lists, statistics: Statistics) -> list[CountedLine]:
    """Return the most frequent reasons why messages failed or were not sent."""
    lines_of_reasons = []
    for reason in statistics.reasons[:REASONS]:
        status = _filter(reason.figure)
        url = lists.url(channel=reason.channel, status=status, reason=reason.reason)
        channel = Channel(reason.channel).label
        text = f"{channel}, {COLUMNS[reason.figure].lower()}: {wording.reason(reason.reason)}"
        lines_of_reasons.append(CountedLine(text, f"{reason.times:,}", url))
    return lines_of_reasons
