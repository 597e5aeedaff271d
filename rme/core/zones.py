"""IANA time zones: which names exist, and what a wall clock there means."""

import datetime as dt
from collections.abc import Mapping
from zoneinfo import ZoneInfo, available_timezones

from django.core.exceptions import ValidationError


def is_zone(name: str) -> bool:
    """Say whether a name is a zone of the IANA database."""
    return name in available_timezones()


def validate_zone(name: str) -> None:
    """Refuse a name that is no IANA zone."""
    if not is_zone(name):
        raise ValidationError(f"{name} is not an IANA time zone.", code="zone")


def zone(name: str | None, fallback: str = "UTC") -> ZoneInfo:
    """Give a zone by name; a name that is none gives the fallback's."""
    return ZoneInfo(name if name and is_zone(name) else fallback)


def at_wall_clock(day: dt.date, clock: dt.time, where: ZoneInfo) -> dt.datetime:
    """Give the instant of a wall-clock time.

    One that a clock change skips moves forward by the gap; one that happens twice is its first.
    Both are what `fold=0` means (PEP 495): in a gap it reads the clock before the change.
    """
    wall = dt.datetime.combine(day, clock, tzinfo=where)
    try:
        return wall.astimezone(dt.UTC)
    except OverflowError:  # the first or last day there is, moved across its border by the offset
        border = dt.date.max if day.year > 1 else dt.date.min
        return dt.datetime.combine(border, dt.time.max if day.year > 1 else dt.time.min, dt.UTC)


def quiet_until(
    moment: dt.datetime, hours: Mapping[str, str], where: ZoneInfo
) -> dt.datetime | None:
    """Give the end of the quiet hours (`from`, `until`: HH:MM) that a moment falls into, if any.

    They may go over midnight. Where both ends are the same time, no hour is quiet.
    """
    begins, ends = dt.time.fromisoformat(hours["from"]), dt.time.fromisoformat(hours["until"])
    here = moment.astimezone(where)
    clock, day = here.time(), here.date()
    if begins <= ends:
        return at_wall_clock(day, ends, where) if begins <= clock < ends else None
    if ends <= clock < begins:
        return None
    return at_wall_clock(day + dt.timedelta(days=clock >= begins), ends, where)
