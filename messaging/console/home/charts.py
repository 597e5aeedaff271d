"""Charts of the last hours: the geometry that the template draws as SVG, and the same as text."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from messaging.models import CountedOutcome
from messaging.reports.health import BAD_RATE, GOOD_RATE
from messaging.statistics.figures import HOURS, HourFigures

HEIGHT, STEP, WIDTH = 32, 10, 8
LEAST = 2.0
"""The height of a bar that would be too low to be seen."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One hour: where its bar stands, how high it is, and what it means."""

    x: int
    height: float
    colour: str
    text: str

    @property
    def y(self) -> float:
        return round(HEIGHT - self.height, 1)


@dataclass(frozen=True, slots=True)
class Chart:
    """The bars of the last hours; `label` says the same to people who do not see them."""

    bars: Sequence[Bar]
    label: str
    box: str = f"0 0 {STEP * HOURS} {HEIGHT}"
    height: int = HEIGHT
    width: int = WIDTH


def volume(hours: Sequence[HourFigures], zone: ZoneInfo) -> Chart:
    """Return how many deliveries were accepted in each hour, and how many failed."""
    accepted = [each.of(CountedOutcome.ACCEPTED) for each in hours]
    failed = [each.of(CountedOutcome.FAILED) for each in hours]
    highest = max(*accepted, *failed, 1)
    bars = []
    for place, hour in enumerate(hours):
        text = f"{_time(hour.at, zone)}: {accepted[place]:,} accepted, {failed[place]:,} failed"
        for colour, count in (("volume", accepted[place]), ("bad", failed[place])):
            if count:
                bars.append(Bar(STEP * place, _height(count / highest), colour, text))
    peak = accepted.index(max(accepted))
    label = (
        f"Last {HOURS} hours: {sum(accepted):,} accepted, {sum(failed):,} failed; "
        f"most at {_time(hours[peak].at, zone)}: {accepted[peak]:,}."
    )
    return Chart(bars, label)


def success(hours: Sequence[HourFigures], zone: ZoneInfo) -> Chart:
    """Return the share of attempts that an account's provider accepted, in each hour."""
    bars, levels = [], Counter[str]()
    for place, hour in enumerate(hours):
        share = hour.success
        if share is None:
            text = f"{_time(hour.at, zone)}: no attempts"
            bars.append(Bar(STEP * place, LEAST, "none", text))
            continue
        colour = _colour(share)
        levels[colour] += 1
        text = f"{_time(hour.at, zone)}: {share:.0%} of {hour.answered:,} attempts"
        bars.append(Bar(STEP * place, _height(share), colour, text))
    tried = [hour for hour in hours if hour.success is not None]
    if not tried:
        return Chart(bars, f"No attempts in the last {HOURS} hours.")
    worst = min(tried, key=lambda hour: (hour.success, -hour.answered))
    label = (
        f"{levels['good']} of {len(tried)} hours with attempts at {GOOD_RATE:.0%} or more; "
        f"the worst at {_time(worst.at, zone)}: {worst.success:.0%} of {worst.answered:,}."
    )
    return Chart(bars, label)


def _colour(share: float) -> str:
    if share >= GOOD_RATE:
        return "good"
    return "warn" if share >= BAD_RATE else "bad"


def _height(share: float) -> float:
    return round(max(LEAST, share * HEIGHT), 1)


def _time(moment: datetime, zone: ZoneInfo) -> str:
    return f"{moment.astimezone(zone):%H:%M}"
