"""The time of a scheduled send: wall-clock times in zones, instants, and times in the past."""

import datetime as dt
from zoneinfo import ZoneInfo

from messaging.accept.requests import AtSchedule, LocalSchedule, OrgSchedule
from rme.core.errors import InvalidPayload
from rme.core.zones import at_wall_clock, zone

HORIZON = dt.timedelta(days=366)
"""How far ahead a message may be scheduled."""
LATE_INSTANT = dt.timedelta(seconds=60)
"""How far in the past an instant may be; it is then sent at once."""
LATE_LOCAL = dt.timedelta(minutes=15)
"""The same for a recipient's wall-clock time."""


class TooLate(Exception):
    """The wall-clock time has passed where the recipient is."""


def _next(clock: dt.time, where: ZoneInfo, now: dt.datetime) -> dt.datetime:
    """Return today's instant of a wall-clock time if it is still ahead there, else tomorrow's."""
    today = now.astimezone(where).date()
    moment = at_wall_clock(today, clock, where)
    return moment if moment > now else at_wall_clock(today + dt.timedelta(days=1), clock, where)


def due(
    schedule: LocalSchedule | OrgSchedule | AtSchedule,
    *,
    contact_zone: str,
    organization_zone: str,
    now: dt.datetime,
) -> dt.datetime | None:
    """Return the instant at which a message is due for a recipient; None for at once.

    Raises InvalidPayload for a time that is invalid for all recipients, and TooLate for one that
    has passed where this recipient is.
    """
    match schedule:
        case AtSchedule(at=at):
            moment = _instant(at, now)
        case OrgSchedule(time=clock, date=None):
            moment = _next(clock, zone(organization_zone), now)
        case OrgSchedule(time=clock, date=dt.date() as day):
            moment = at_wall_clock(day, clock, zone(organization_zone))
            if moment < now:
                raise InvalidPayload.at("schedule.date", "this time has passed")
        case LocalSchedule(time=clock, date=None):
            moment = _next(clock, zone(contact_zone, organization_zone), now)
        case LocalSchedule(time=clock, date=dt.date() as day):
            moment = at_wall_clock(day, clock, zone(contact_zone, organization_zone))
            if moment < now - LATE_LOCAL:
                raise TooLate
    if moment > now + HORIZON:
        field = "schedule.at" if isinstance(schedule, AtSchedule) else "schedule.date"
        raise InvalidPayload.at(field, "more than a year ahead")
    return moment if moment > now else None


def _instant(at: dt.datetime, now: dt.datetime) -> dt.datetime:
    try:
        moment = at.astimezone(dt.UTC)
    except OverflowError:  # the offset moves it before the year 1 or after 9999
        raise InvalidPayload.at("schedule.at", "is out of range") from None
    if moment < now - LATE_INSTANT:
        raise InvalidPayload.at("schedule.at", "this time has passed")
    return moment
