"""Lines of the last hours: the geometry that the template draws as SVG, and the same as text."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from django.utils import dateformat
from django.utils.translation import gettext as _

from messaging.console.routing.health_bars import HEIGHT, STEP
from messaging.statistics.figures import HOURS


@dataclass(frozen=True, slots=True)
class Lines:
    """A line of the period, and one of the week before."""

    current: str
    before: str
    """Points of a polyline; empty if there is nothing to compare with."""
    box: str
    texts: str
    """What each hour means, in a line each."""


def lines(
    hours: Sequence[datetime],
    current: Sequence[int],
    before: Sequence[int],
    zone: ZoneInfo,
    words: str = "%(value)s",
) -> Lines:
    """Return the lines of two series of hours, on one scale from zero. `words` says what a value is
    if there is none to compare it with.
    """
    highest = max(*current, *before, 0) or 1
    is_compared = any(before)
    words = _("%(value)s, a week before %(before)s") if is_compared else words
    pattern = "D H:i" if len(hours) > HOURS else "H:i"
    texts = [
        f"{dateformat.format(at.astimezone(zone), pattern)}: {_values(words, value, then)}"
        for at, value, then in zip(hours, current, before, strict=True)
    ]
    return Lines(
        _points(current, highest),
        _points(before, highest) if is_compared else "",
        f"0 0 {STEP * (len(current) - 1)} {HEIGHT}",
        "\n".join(texts),
    )


def _values(words: str, value: int, before: int) -> str:
    return words % {"value": f"{value:,}", "before": f"{before:,}"}


def _points(values: Sequence[int], highest: int) -> str:
    # Half a unit is left for the width of the line.
    return " ".join(
        f"{STEP * place},{round(1 + (HEIGHT - 2) * (1 - value / highest), 1)}"
        for place, value in enumerate(values)
    )
