"""The figures of an organization in words: each number with the list behind it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from messaging.console import wording
from messaging.console.access import Viewer
from messaging.console.filters.message_filter import MOMENT, WAITING
from messaging.console.home.charts import Lines, lines
from messaging.domain import figures
from messaging.domain.channels import Channel
from messaging.domain.figures import STATUSES, Figure
from messaging.policy import organization_policy
from messaging.reports.health import Queue
from messaging.statistics.figures import Figures, Statistics, TimeRange, last_hours

REASONS = 8
COLUMNS: Mapping[Figure, Promise] = {
    Figure.DELIVERED: lazy("Delivered"),
    Figure.SENT: lazy("Sent"),
    Figure.WAITING: lazy("Waiting"),
    Figure.FAILED: lazy("Failed"),
    Figure.NOT_SENT: lazy("Not sent"),
    Figure.EXPIRED: lazy("Expired"),
    Figure.CANCELLED: lazy("Cancelled"),
}
REASON_LINES: Mapping[Figure, Promise] = {
    Figure.DELIVERED: lazy("%(channel)s, delivered: %(reason)s"),
    Figure.SENT: lazy("%(channel)s, sent: %(reason)s"),
    Figure.WAITING: lazy("%(channel)s, waiting: %(reason)s"),
    Figure.FAILED: lazy("%(channel)s, failed: %(reason)s"),
    Figure.NOT_SENT: lazy("%(channel)s, not sent: %(reason)s"),
    Figure.EXPIRED: lazy("%(channel)s, expired: %(reason)s"),
    Figure.CANCELLED: lazy("%(channel)s, cancelled: %(reason)s"),
}
"""Why messages are where they are."""
SPANS = {"24h": lazy("24 hours"), "7d": lazy("7 days")}
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
    change: str = ""
    """How it differs from the week before; empty without a figure to compare with."""
    chart: Lines | None = None


@dataclass(frozen=True, slots=True)
class CountedLine:
    """A sentence with a number, and the list behind it."""

    text: str
    count: str
    url: str
    share: int
    """Percent of the most frequent one."""


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
            wording.channel(channel),
            _cells(lists, statistics.current.channels.get(channel, nothing), channel),
            [
                (_("Median"), duration(statistics.latency(channel, 0.5))),
                (_("95th percentile"), duration(statistics.latency(channel, 0.95))),
            ],
        )
        for channel in channels
    ]
    if len(table) > 1:
        table.append(ChannelRow(_("All"), _cells(lists, statistics.current.total), []))
    return table


def _cells(lists: Lists, channel_figures: Figures, channel: str = "") -> list[TableCell]:
    cells = [_cell(_("Accepted"), channel_figures.accepted, lists.url(channel=channel))]
    for figure, title in COLUMNS.items():
        url = lists.url(channel=channel, status=_filter(figure))
        cells.append(_cell(str(title), channel_figures.counts[figure], url))
    return cells


def _cell(title: str, count: int, url: str) -> TableCell:
    return TableCell(title, f"{count:,}", url if count else "")


def tiles(lists: Lists, statistics: Statistics, queues: Sequence[Queue]) -> list[Tile]:
    """Return the tiles: accepted, succeeded, failed and waiting messages."""
    now, then = statistics.current.total.counts, statistics.before.total.counts
    tried = _tried(now)
    shares = {"delivered": f"{now[Figure.DELIVERED]:,}", "sent": f"{now[Figure.SENT]:,}"}
    return [
        _accepted(lists, statistics),
        Tile(
            _("Delivered or sent"),
            percent(figures.success(now)),
            _("%(delivered)s delivered, %(sent)s sent") % shares,
            _before(figures.success(then)),
            lists.url(status=_filter(Figure.DELIVERED)),
            _points(figures.success(now), figures.success(then)),
            _chart(lists, statistics, lambda each: each[Figure.DELIVERED] + each[Figure.SENT]),
        ),
        Tile(
            _("Failed"),
            percent(_failed(now)),
            _("%(failed)s of %(tried)s tried")
            % {"failed": f"{now[Figure.FAILED]:,}", "tried": f"{tried:,}"},
            _before(_failed(then)),
            lists.url(status=_filter(Figure.FAILED)),
            _points(_failed(now), _failed(then)),
            _chart(lists, statistics, lambda each: each[Figure.FAILED]),
        ),
        Tile(
            _("Waiting"),
            f"{now[Figure.WAITING]:,}",
            _oldest(queues),
            "",
            lists.url(status=WAITING),
            chart=_waiting_chart(lists, statistics),
        ),
    ]


def _accepted(lists: Lists, statistics: Statistics) -> Tile:
    now, then = statistics.current.total.accepted, statistics.before.total.accepted
    return Tile(
        _("Accepted"),
        f"{now:,}",
        "",
        _("%(figure)s a week before") % {"figure": f"{then:,}"}
        if then
        else _("None a week before"),
        lists.url(),
        f"{100 * (now - then) / then:+,.0f}%" if then else "",
        _chart(lists, statistics, lambda each: sum(each.values())),
    )


def _tried(counts: Mapping[Figure, int]) -> int:
    return sum(counts[each] for each in (Figure.DELIVERED, Figure.SENT, Figure.FAILED))


def _failed(counts: Mapping[Figure, int]) -> float | None:
    """Return the share of messages that failed among those that rme tried; None without any."""
    tried = _tried(counts)
    return counts[Figure.FAILED] / tried if tried else None


def _before(share: float | None) -> str:
    if share is None:
        return _("None a week before")
    return _("%(figure)s a week before") % {"figure": percent(share)}


def _points(now: float | None, before: float | None) -> str:
    """Return how many points of percent a share has changed."""
    if now is None or before is None:
        return ""
    return _("%(points)s points") % {"points": f"{100 * (now - before):+.1f}"}


def _oldest(queues: Sequence[Queue]) -> str:
    ready = sum(each.ready for each in queues)
    if not ready:
        return _("Nothing ready to send")
    oldest = max(each.oldest_seconds for each in queues if each.ready)
    words = {"ready": f"{ready:,}", "time": duration(1000 * oldest)}
    return _("%(ready)s ready, the oldest for %(time)s") % words


def _chart(
    lists: Lists, statistics: Statistics, value: Callable[[Mapping[Figure, int]], int]
) -> Lines | None:
    """Return the lines of a figure; None if it was zero all the time."""
    current, week_before = (
        [value(hour.counts) for hour in period.hours]
        for period in (statistics.current, statistics.before)
    )
    if not any(current) and not any(week_before):
        return None
    hours = last_hours(statistics.span.end, len(current))
    return lines(hours, current, week_before, lists.viewer.zone)


def _waiting_chart(lists: Lists, statistics: Statistics) -> Lines | None:
    """Return a line of the waiting messages by the hour in which they were accepted.

    How many waited at the end of an hour isn't stored. The messages of the week before have left.
    """
    waiting = [hour.counts[Figure.WAITING] for hour in statistics.current.hours]
    if not any(waiting):
        return None
    hours = last_hours(statistics.span.end, len(waiting))
    words = _("%(value)s still waiting")
    return lines(hours, waiting, [0] * len(waiting), lists.viewer.zone, words)


def percent(share: float | None) -> str:
    """Return a share in percent, never rounded up to all or down to nothing; a dash if none."""
    if share is None:
        return "–"
    rounded = round(100 * share, 1)
    if rounded == 100 and share < 1:
        rounded = 99.9
    if rounded == 0 and share:
        rounded = 0.1
    return f"{rounded:g}%"


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
        text = str(REASON_LINES[reason.figure]) % {
            "channel": wording.channel(reason.channel),
            "reason": wording.reason(reason.reason),
        }
        share = 100 * reason.times // statistics.reasons[0].times
        lines_of_reasons.append(CountedLine(text, f"{reason.times:,}", url, share))
    return lines_of_reasons
