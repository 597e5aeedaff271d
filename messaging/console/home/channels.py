"""The figures of channels in words: each number with its link, and the week before beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from messaging.console import wording
from messaging.console.access import Viewer
from messaging.console.home.charts import Chart, volume
from messaging.domain.channels import Channel
from messaging.domain.statuses import Status
from messaging.models import CountedOutcome
from messaging.policy import organization_policy
from messaging.reports.health import Queue
from messaging.statistics.figures import REASONS_SPAN, ChannelFigures, Statistics, TimeRange

REASONS = 8
_MOMENT = "%Y-%m-%dT%H:%M"
_ROWS: Mapping[str, tuple[CountedOutcome, str]] = {
    "Accepted": (CountedOutcome.ACCEPTED, ""),
    "Delivered": (CountedOutcome.DELIVERED, Status.DELIVERED),
    "Failed": (CountedOutcome.FAILED, Status.FAILED),
    "Not sent": (CountedOutcome.BLOCKED, Status.BLOCKED),
    "Expired": (CountedOutcome.EXPIRED, Status.EXPIRED),
}
"""What is counted, and the status by which the list shows it."""
_SHARES = {"Half within": 0.5, "95 % within": 0.95}
_STATUS_OF = {"failed": Status.FAILED, "blocked": Status.BLOCKED, "expired": Status.EXPIRED}


@dataclass(frozen=True, slots=True)
class TableCell:
    """A figure, that of the week before, and the list behind it if there is one."""

    span: str
    text: str
    week_before: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """The figures of a channel: rows of cells, one for each span."""

    channel: str
    rows: Sequence[tuple[str, Sequence[TableCell]]]
    chart: Chart | None


@dataclass(frozen=True, slots=True)
class CountedLine:
    """A sentence with a number, and the list behind it."""

    text: str
    count: str
    url: str


def list_url(viewer: Viewer, **filters: str) -> str:
    """Return the address of the message list with filters."""
    query = urlencode({name: value for name, value in filters.items() if value})
    return f"{reverse('console:messages', args=[viewer.organization_id])}?{query}"


def within(period: TimeRange, *, test: bool) -> dict[str, str]:
    """Return the filters of a period and a mode."""
    return {
        "mode": "test" if test else "live",
        "since": period.start.strftime(_MOMENT),
        "until": period.end.strftime(_MOMENT),
    }


def cards(viewer: Viewer, statistics: Statistics, *, test: bool) -> list[Card]:
    """Return the cards of the channels that have figures or a provider account."""
    served = {each.channel for each in organization_policy.of(viewer.organization_id).accounts}
    periods = (*statistics.current.values(), *statistics.before.values())
    used = {channel for figures in periods for channel in figures}
    channels = used if test else used | served
    return [
        _card(viewer, statistics, channel, test=test) for channel in Channel if channel in channels
    ]


def _card(viewer: Viewer, statistics: Statistics, channel: str, *, test: bool) -> Card:
    longest = list(statistics.periods)[-1]
    rows = [
        (
            name,
            [
                _count(viewer, statistics, channel, span, name, test=test)
                for span in statistics.periods
            ],
        )
        for name, (events, _) in _ROWS.items()
        if name != "Expired" or _of(statistics, longest, channel)[0].of(events)
    ]
    rows += [
        (name, [_latency(statistics, channel, span, share) for span in statistics.periods])
        for name, share in _SHARES.items()
    ]
    chart = (
        volume(statistics.channels[channel], viewer.zone)
        if channel in statistics.channels
        else None
    )
    return Card(channel, rows, chart)


def _of(statistics: Statistics, span: str, channel: str) -> tuple[ChannelFigures, ChannelFigures]:
    """Return a channel's figures of a span, and those of the week before."""
    none = ChannelFigures()
    return statistics.current[span].get(channel, none), statistics.before[span].get(channel, none)


def _count(
    viewer: Viewer, statistics: Statistics, channel: str, span: str, name: str, *, test: bool
) -> TableCell:
    events, status = _ROWS[name]
    now, previous = (figures.of(events) for figures in _of(statistics, span, channel))
    period = within(statistics.periods[span], test=test)
    url = list_url(viewer, channel=channel, status=status, **period) if now else ""
    return TableCell(span, f"{now:,}", f"{previous:,}", url)


def _latency(statistics: Statistics, channel: str, span: str, share: float) -> TableCell:
    now, previous = (figures.latency(share) for figures in _of(statistics, span, channel))
    return TableCell(span, duration(now), duration(previous))


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


def reasons(viewer: Viewer, statistics: Statistics, *, test: bool) -> list[CountedLine]:
    """Return the most frequent reasons why messages failed or were not sent."""
    period = within(statistics.periods[REASONS_SPAN], test=test)
    lines = []
    for reason in statistics.reasons[:REASONS]:
        status = _STATUS_OF[reason.outcome]
        words = wording.reason(reason.reason)
        url = list_url(
            viewer, channel=reason.channel, status=status, reason=reason.reason, **period
        )
        text = f"{reason.channel}, {wording.status(status).lower()}: {words}"
        lines.append(CountedLine(text, f"{reason.times:,}", url))
    return lines


def backlog(viewer: Viewer, queues: Sequence[Queue]) -> list[CountedLine]:
    """Return what is ready to be sent and has not gone, by channel."""
    return [
        CountedLine(
            f"{each.channel}: the oldest for {duration(1000 * each.oldest_seconds)}",
            f"{each.ready:,}",
            list_url(viewer, channel=each.channel, status=Status.ACCEPTED),
        )
        for each in queues
        if each.ready
    ]
