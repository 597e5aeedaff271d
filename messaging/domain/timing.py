"""Times of scheduled sends and of quiet hours, where the recipient is. Callers pass the clock."""

import datetime as dt
from collections.abc import Mapping
from typing import NamedTuple
from zoneinfo import ZoneInfo

from messaging.domain.sentences import sentence

HORIZON = dt.timedelta(days=366)
"""How far ahead a message may be scheduled."""
LATE_INSTANT = dt.timedelta(seconds=60)
"""How far in the past an instant may be; it is then sent at once."""
LATE_LOCAL = dt.timedelta(minutes=15)
"""The same for a recipient's wall-clock time."""


def at_wall_clock(day: dt.date, clock: dt.time, zone: ZoneInfo) -> dt.datetime:
    """Return the instant of a wall-clock time, in UTC.

    A time that a clock change skips moves forward by the gap. If a time occurs twice, the first
    counts. Both follow from `fold=0` (PEP 495).
    """
    wall = dt.datetime.combine(day, clock, tzinfo=zone)
    try:
        return wall.astimezone(dt.UTC)
    except OverflowError:  # the first or last day of the calendar, moved out of it by the offset
        edge = dt.date.max if day.year > 1 else dt.date.min
        return dt.datetime.combine(edge, dt.time.max if day.year > 1 else dt.time.min, dt.UTC)


def quiet_until(
    moment: dt.datetime, hours: Mapping[str, str], zone: ZoneInfo
) -> dt.datetime | None:
    """Return the end of the quiet hours (`from`, `until`: HH:MM) that a moment falls into, or None.

    They may span midnight. If both ends are the same time, there are none.
    """
    begins, ends = dt.time.fromisoformat(hours["from"]), dt.time.fromisoformat(hours["until"])
    local = moment.astimezone(zone)
    clock, day = local.time(), local.date()
    if begins <= ends:
        return at_wall_clock(day, ends, zone) if begins <= clock < ends else None
    if ends <= clock < begins:
        return None
    return at_wall_clock(day + dt.timedelta(days=clock >= begins), ends, zone)


def next_at_wall_clock(clock: dt.time, zone: ZoneInfo, now: dt.datetime) -> dt.datetime:
    """Return today's instant of a wall-clock time if it is still ahead there, else tomorrow's."""
    today = now.astimezone(zone).date()
    moment = at_wall_clock(today, clock, zone)
    return moment if moment > now else at_wall_clock(today + dt.timedelta(days=1), clock, zone)


def scheduled_at(
    clock: dt.time, day: dt.date | None, zone: ZoneInfo, now: dt.datetime
) -> dt.datetime:
    """Return the instant of a wall-clock time on a day; without one, the next."""
    return next_at_wall_clock(clock, zone, now) if day is None else at_wall_clock(day, clock, zone)


# --- schedules of requests ------------------------------------------------------------------------


class LocalTime(NamedTuple):
    """A wall-clock time where each recipient is; without a day, the next."""

    clock: dt.time
    day: dt.date | None = None


class OrganizationTime(NamedTuple):
    """A wall-clock time in the organization's zone; without a day, the next."""

    clock: dt.time
    day: dt.date | None = None


class FixedTime(NamedTuple):
    """An instant, with any offset."""

    moment: dt.datetime


Schedule = LocalTime | OrganizationTime | FixedTime


class BadTime(NamedTuple):
    """Why a schedule can't be kept, and the field that is wrong."""

    field: str
    problem: str
    is_local: bool = False
    """Only this recipient's time has passed."""


def due(
    schedule: Schedule, *, contact_zone: str, organization_zone: str, now: dt.datetime
) -> dt.datetime | BadTime | None:
    """Return the instant at which a message is due for a recipient; None for at once."""
    field = "schedule.date"
    match schedule:
        case LocalTime(clock, day):
            moment = scheduled_at(clock, day, ZoneInfo(contact_zone), now)
            if moment < now - LATE_LOCAL:
                return BadTime(
                    "schedule.time", sentence("this time has passed there"), is_local=True
                )
        case OrganizationTime(clock, day):
            moment = scheduled_at(clock, day, ZoneInfo(organization_zone), now)
            if moment < now:
                return BadTime(field, sentence("this time has passed"))
        case FixedTime(moment):
            field = "schedule.at"
            try:
                moment = moment.astimezone(dt.UTC)
            except OverflowError:  # the offset moves it before the year 1 or after 9999
                return BadTime(field, sentence("is out of range"))
            if moment < now - LATE_INSTANT:
                return BadTime(field, sentence("this time has passed"))
    if moment > now + HORIZON:
        return BadTime(field, sentence("more than a year ahead"))
    return moment if moment > now else None


def is_released_late(
    scheduled_for: dt.datetime | None, now: dt.datetime, grace: dt.timedelta
) -> bool:
    """Return whether a scheduled delivery is due for longer than its organization allows."""
    return scheduled_for is not None and now - scheduled_for > grace


# --- polling a provider for the status of a message -----------------------------------------------

ASK_AFTER = dt.timedelta(seconds=15)
"""When a message is polled first: by then most phones have received it."""
LAST_AFTER = dt.timedelta(days=1)


def next_poll(sent_at: dt.datetime, now: dt.datetime) -> dt.datetime | None:
    """Return when to poll for a message again: when it is three times as old as now, at most a
    day; None after that.

    So it is polled after 15 s, 45 s, 2, 7 and 20 min, 1, 3 and 9 h, and last after a day. Nearly
    all arrive within seconds; Twilio itself gives up after ten hours. A status is known at the
    latest when twice the time has passed that it took, and a message without a final status costs
    nine calls.
    """
    age = max(now - sent_at, ASK_AFTER)
    return min(now + 2 * age, sent_at + LAST_AFTER) if age < LAST_AFTER else None
