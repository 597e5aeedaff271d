"""Charts of the last hours: the geometry that the template draws as SVG, and the same as text."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from messaging.domain.attention import BAD_RATE, GOOD_RATE
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


@dataclass(frozen=True, slots=True)
class Lines:
    """A line of the period, and one of the week before."""

    current: str
    before: str
    """Points of a polyline; empty if there is nothing to compare with."""
    box: str


def lines(current: Sequence[float], before: Sequence[float]) -> Lines:
    """Return the lines of two series of the same length, on one scale from zero."""
    highest = max(*current, *before, 0) or 1
    box = f"0 0 {STEP * (len(current) - 1)} {HEIGHT}"
    return Lines(_points(current, highest), _points(before, highest) if any(before) else "", box)


def _points(values: Sequence[float], highest: float) -> str:
    # Half a unit is left for the width of the line.
    return " ".join(
        f"{STEP * place},{round(1 + (HEIGHT - 2) * (1 - value / highest), 1)}"
        for place, value in enumerate(values)
    )


def success(hours: Sequence[HourFigures], zone: ZoneInfo) -> Chart:
    """Return the share of attempts that an account's provider accepted, in each hour."""
    bars = []
    for place, hour in enumerate(hours):
        share = hour.success
        if share is None:
            text = f"{_time(hour.at, zone)}: no attempts"
            bars.append(Bar(STEP * place, LEAST, "none", text))
            continue
        text = f"{_time(hour.at, zone)}: {share:.0%} of {hour.answered:,} attempts accepted"
        bars.append(Bar(STEP * place, round(max(LEAST, share * HEIGHT), 1), _colour(share), text))
    tried = [(hour.success, hour) for hour in hours if hour.success is not None]
    if not tried:
        return Chart(bars, f"No attempts in the last {HOURS} hours.")
    share, worst = min(tried, key=lambda each: (each[0], -each[1].answered))
    if share == 1:
        return Chart(bars, f"All {sum(h.answered for _, h in tried):,} attempts were accepted.")
    label = f"Worst hour {_time(worst.at, zone)}: {share:.0%} of {worst.answered:,} accepted."
    return Chart(bars, label)


def _colour(share: float) -> str:
    if share >= GOOD_RATE:
        return "good"
    return "warn" if share >= BAD_RATE else "bad"


def _time(moment: datetime, zone: ZoneInfo) -> str:
    return f"{moment.astimezone(zone):%H:%M}"
