"""IANA time zones: their names, and the instants of wall-clock times."""

import datetime as dt
from collections.abc import Mapping
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.core.exceptions import ValidationError


def is_zone(name: str) -> bool:
    """Return whether a name is a zone of the IANA database."""
    return name in _names()


@cache
def _names() -> frozenset[str]:
    """Return the names of all zones: reading them from the files takes 6 ms of CPU."""
    return frozenset(available_timezones())


def validate_zone(name: str) -> None:
    """Raise ValidationError for a name that is no IANA zone."""
    if not is_zone(name):
        raise ValidationError(f"{name} is not an IANA time zone.", code="zone")


def zone(name: str | None, fallback: str = "UTC") -> ZoneInfo:
    """Return the zone of a name, or the fallback for a name that is no zone."""
    return ZoneInfo(name if name and is_zone(name) else fallback)


def at_wall_clock(day: dt.date, clock: dt.time, where: ZoneInfo) -> dt.datetime:
    """Return the instant of a wall-clock time, in UTC.

    A time that a clock change skips moves forward by the gap. If a time occurs twice, the first
    counts. Both follow from `fold=0` (PEP 495).
    """
    wall = dt.datetime.combine(day, clock, tzinfo=where)
    try:
        return wall.astimezone(dt.UTC)
    except OverflowError:  # the first or last day of the calendar, moved out of it by the offset
        edge = dt.date.max if day.year > 1 else dt.date.min
        return dt.datetime.combine(edge, dt.time.max if day.year > 1 else dt.time.min, dt.UTC)


def quiet_until(
    moment: dt.datetime, hours: Mapping[str, str], where: ZoneInfo
) -> dt.datetime | None:
    """Return the end of the quiet hours (`from`, `until`: HH:MM) that a moment falls into, or None.

    They may span midnight. If both ends are the same time, there are none.
    """
    begins, ends = dt.time.fromisoformat(hours["from"]), dt.time.fromisoformat(hours["until"])
    here = moment.astimezone(where)
    clock, day = here.time(), here.date()
    if begins <= ends:
        return at_wall_clock(day, ends, where) if begins <= clock < ends else None
    if ends <= clock < begins:
        return None
    return at_wall_clock(day + dt.timedelta(days=clock >= begins), ends, where)
