"""Wall-clock times around every change of every zone's clock, against an independent library."""

import datetime as dt
from collections.abc import Iterator
from zoneinfo import ZoneInfo, available_timezones

import pytest
import whenever

from messaging.domain.timing import at_wall_clock
from tests import factories
from tests.rest import error, message

UTC = dt.UTC
FIRST, LAST = dt.datetime(2025, 1, 1, tzinfo=UTC), dt.datetime(2038, 1, 1, tzinfo=UTC)
SECOND, WEEK = dt.timedelta(seconds=1), dt.timedelta(days=7)


def offset(zone: ZoneInfo, moment: dt.datetime) -> dt.timedelta:
    found = moment.astimezone(zone).utcoffset()
    assert found is not None
    return found


def transitions(zone: ZoneInfo) -> Iterator[dt.datetime]:
    """Return the first second of each new offset: weeks are compared, and the week bisected."""
    before, known = FIRST, offset(zone, FIRST)
    while before < LAST:
        after = before + WEEK
        if offset(zone, after) != known:
            low, high = before, after
            while high - low > SECOND:
                middle = low + (high - low) // 2
                middle = middle.replace(microsecond=0)
                low, high = (middle, high) if offset(zone, middle) == known else (low, middle)
            yield high
        before, known = after, offset(zone, after)


def wall_clocks(zone: ZoneInfo, change: dt.datetime) -> set[dt.datetime]:
    """Return the wall-clock times around a change, and those within its gap or overlap."""
    naive = change.replace(tzinfo=None)
    old, new = naive + offset(zone, change - SECOND), naive + offset(zone, change)
    middle = (old + (new - old) / 2).replace(microsecond=0)
    around = {edge + step for edge in (old, new) for step in (-SECOND, dt.timedelta(), SECOND)}
    return around | {middle, middle - SECOND, middle + SECOND}


def independent(wall: dt.datetime, zone: str) -> dt.datetime:
    plain = whenever.PlainDateTime(
        wall.year, wall.month, wall.day, wall.hour, wall.minute, wall.second
    )
    # as RFC 5545 has it: moved on by a gap, the first of two
    return plain.assume_tz(zone, disambiguation="compatible").to_instant().to_stdlib()


@pytest.mark.promise("schedule-7")
def test_every_change_of_every_zone_agrees_with_whenever():
    differing, changes = [], 0
    for name in sorted(available_timezones()):
        zone = ZoneInfo(name)
        for change in transitions(zone):
            changes += 1
            for wall in wall_clocks(zone, change):
                ours = at_wall_clock(wall.date(), wall.time(), zone)
                if ours != independent(wall, name):
                    differing.append((name, wall, ours, independent(wall, name)))
    assert differing == []
    assert changes > 4000  # the walk found them


def test_transitions_are_found_to_the_second():
    """Zurich, 2026: the EU's rule, at 01:00 UTC of the last Sundays of March and October."""
    found = [change for change in transitions(ZoneInfo("Europe/Zurich")) if change.year == 2026]
    assert found == [
        dt.datetime(2026, 3, 29, 1, tzinfo=UTC),
        dt.datetime(2026, 10, 25, 1, tzinfo=UTC),
    ]


@pytest.mark.parametrize(
    ("day", "zone", "expected"),
    [
        (dt.date(9999, 12, 31), "America/New_York", dt.datetime.max.replace(tzinfo=UTC)),
        (dt.date(1, 1, 1), "Asia/Tokyo", dt.datetime.min.replace(tzinfo=UTC)),
    ],
)
def test_a_day_at_the_border_of_the_calendar_is_its_border(day, zone, expected):
    clock = dt.time(23, 59) if day.year > 1 else dt.time(0, 1)
    assert at_wall_clock(day, clock, ZoneInfo(zone)) == expected


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("day", "zone", "text"),
    [
        ("9999-12-31", "America/New_York", "more than a year ahead"),
        ("0001-01-01", "Asia/Tokyo", "this time has passed there"),
    ],
)
def test_a_schedule_at_the_border_of_the_calendar_is_refused(api, org, day, zone, text):
    person = factories.contact(org, zone=zone)
    clock = "23:59" if day > "2" else "00:01"
    when = {"mode": "LOCAL", "date": day, "time": clock}
    field = "schedule.date" if day > "2" else "schedule.time"
    response = api.send(message(person, schedule=when))
    assert (response.status_code, response.json()) == (
        400,
        error("INVALID_PAYLOAD", f"{field}: {text}", (field, text)),
    )
