"""The bar of an account's last hours: the geometry that a template draws as SVG, and its text."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

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

    @property
    def texts(self) -> str:
        """Return what each hour means, in a line each."""
        return "\n".join(bar.text for bar in self.bars)


def success(hours: Sequence[HourFigures], zone: ZoneInfo) -> Chart:
    """Return the share of attempts that an account's provider accepted, in each hour."""
    bars = []
    for place, hour in enumerate(hours):
        share = hour.success
        if share is None:
            text = _("%(time)s: no attempts") % {"time": _time(hour.at, zone)}
            bars.append(Bar(STEP * place, LEAST, "none", text))
            continue
        text = ngettext(
            "%(time)s: %(share)s of %(attempts)s attempt accepted",
            "%(time)s: %(share)s of %(attempts)s attempts accepted",
            hour.answered,
        ) % {
            "time": _time(hour.at, zone),
            "share": f"{share:.0%}",
            "attempts": f"{hour.answered:,}",
        }
        bars.append(Bar(STEP * place, round(max(LEAST, share * HEIGHT), 1), _colour(share), text))
    tried = [(hour.success, hour) for hour in hours if hour.success is not None]
    if not tried:
        return Chart(bars, _("No attempts in the last %(hours)s hours.") % {"hours": HOURS})
    share, worst = min(tried, key=lambda each: (each[0], -each[1].answered))
    if share == 1:
        attempts = sum(hour.answered for _share, hour in tried)
        text = ngettext(
            "%(attempts)s attempt, accepted.", "All %(attempts)s attempts accepted.", attempts
        )
        return Chart(bars, text % {"attempts": f"{attempts:,}"})
    label = _("Worst hour %(time)s: %(share)s of %(attempts)s accepted.") % {
        "time": _time(worst.at, zone),
        "share": f"{share:.0%}",
        "attempts": f"{worst.answered:,}",
    }
    return Chart(bars, label)


def _colour(share: float) -> str:
    if share >= GOOD_RATE:
        return "good"
    return "warn" if share >= BAD_RATE else "bad"


def _time(moment: datetime, zone: ZoneInfo) -> str:
    return f"{moment.astimezone(zone):%H:%M}"
