"""Quiet hours and scheduled times, where the recipient is."""

from datetime import UTC, datetime, timedelta

import pytest

from messaging.domain.timing import is_released_late, quiet_until, scheduled_at
from rme.core.zones import zone

NIGHT = {"from": "21:00", "until": "08:00"}
NOON = {"from": "12:00", "until": "13:30"}


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.promise("schedule-10")
@pytest.mark.parametrize(
    ("moment", "hours", "where", "until"),
    [
        ("2026-03-01T20:59", NIGHT, "UTC", None),
        ("2026-03-01T21:00", NIGHT, "UTC", "2026-03-02T08:00"),
        ("2026-03-01T23:59", NIGHT, "UTC", "2026-03-02T08:00"),
        ("2026-03-02T00:00", NIGHT, "UTC", "2026-03-02T08:00"),
        ("2026-03-02T07:59", NIGHT, "UTC", "2026-03-02T08:00"),
        ("2026-03-02T08:00", NIGHT, "UTC", None),
        ("2026-03-01T12:00", NOON, "UTC", "2026-03-01T13:30"),
        ("2026-03-01T13:29", NOON, "UTC", "2026-03-01T13:30"),
        ("2026-03-01T13:30", NOON, "UTC", None),
        ("2026-03-01T11:59", NOON, "UTC", None),
        ("2026-03-01T12:00", {"from": "12:00", "until": "12:00"}, "UTC", None),
        ("2026-01-01T20:30", NIGHT, "Europe/Zurich", "2026-01-02T07:00"),
        # the night in which the clocks go forward, and the one in which they go back
        ("2026-03-28T22:00", NIGHT, "Europe/Zurich", "2026-03-29T06:00"),
        ("2026-10-24T22:00", NIGHT, "Europe/Zurich", "2026-10-25T07:00"),
        # an end that the clocks skip moves on by the gap
        ("2026-03-29T00:30", {"from": "22:00", "until": "02:30"}, "Europe/Zurich",
         "2026-03-29T01:30"),
    ],
)  # fmt: skip
def test_quiet_hours_end(moment, hours, where, until):
    assert quiet_until(at(moment), hours, zone(where)) == (at(until) if until else None)


@pytest.mark.parametrize(
    ("clock", "day", "now", "moment"),
    [
        ("09:00", None, "2026-03-01T07:59", "2026-03-01T08:00"),
        ("09:00", None, "2026-03-01T08:00", "2026-03-02T08:00"),
        ("09:00", "2026-03-01", "2026-03-05T12:00", "2026-03-01T08:00"),
        # clocks skip this time, which moves on by the gap
        ("02:30", None, "2026-03-28T23:00", "2026-03-29T01:30"),
    ],
)
def test_wall_clock_time_of_a_schedule(clock, day, now, moment):
    date = datetime.fromisoformat(day).date() if day else None
    time = datetime.fromisoformat(f"2026-01-01T{clock}").time()
    assert scheduled_at(time, date, zone("Europe/Zurich"), at(now)) == at(moment)


@pytest.mark.parametrize(
    ("scheduled_for", "is_late"),
    [(None, False), ("2026-03-01T11:30", False), ("2026-03-01T11:29", True)],
)
def test_release_after_the_grace_is_late(scheduled_for, is_late):
    moment = at(scheduled_for) if scheduled_for else None
    grace = timedelta(minutes=30)
    assert is_released_late(moment, at("2026-03-01T12:00"), grace) is is_late
