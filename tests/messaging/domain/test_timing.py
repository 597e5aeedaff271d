"""Quiet hours and scheduled times, where the recipient is."""

from datetime import UTC, date, datetime, time, timedelta

import pytest

from messaging.domain.timing import (
    BadTime,
    FixedTime,
    LocalTime,
    OrganizationTime,
    due,
    is_released_late,
    quiet_until,
    scheduled_at,
)
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


NOON_IN_MARCH = at("2026-03-20T12:00")


def due_at(schedule, contact="UTC"):
    return due(schedule, contact_zone=contact, organization_zone="UTC", now=NOON_IN_MARCH)


def local(clock, day=None):
    return LocalTime(time.fromisoformat(clock), date.fromisoformat(day) if day else None)


def fixed(text):
    return FixedTime(datetime.fromisoformat(text))


@pytest.mark.promise("schedule-1", "schedule-2", "schedule-3", "schedule-5", "schedule-7")
@pytest.mark.parametrize(
    ("schedule", "contact", "moment"),
    [
        (local("09:30"), "Europe/Zurich", "2026-03-21T08:30"),
        (local("14:00"), "Europe/Zurich", "2026-03-20T13:00"),
        (local("09:30"), "America/New_York", "2026-03-20T13:30"),
        # skipped: 02:30 of the day moves on by the gap; twice: the first
        (local("02:30", "2026-03-29"), "Europe/Zurich", "2026-03-29T01:30"),
        (local("02:30", "2026-10-25"), "Europe/Zurich", "2026-10-25T00:30"),
        # Lord Howe moves its clock by half an hour only
        (local("02:15", "2026-10-04"), "Australia/Lord_Howe", "2026-10-03T15:45"),
        (OrganizationTime(time(9), date(2026, 4, 1)), "Asia/Kolkata", "2026-04-01T09:00"),
        (fixed("2026-03-20T15:00:00+02:00"), "UTC", "2026-03-20T13:00"),
        (fixed("2026-03-20T11:59:30+00:00"), "UTC", None),
    ],
)
def test_schedule_is_due_at_the_expected_time(schedule, contact, moment):
    assert due_at(schedule, contact) == (at(moment) if moment else None)


@pytest.mark.promise("schedule-5", "schedule-6")
@pytest.mark.parametrize(
    ("schedule", "bad_time"),
    [
        (fixed("2026-03-20T11:58:00+00:00"), ("schedule.at", "this time has passed")),
        (fixed("2028-01-01T00:00:00+00:00"), ("schedule.at", "more than a year ahead")),
        (fixed("0001-01-01T00:00:00+14:00"), ("schedule.at", "is out of range")),
        (fixed("9999-12-31T23:59:59-12:00"), ("schedule.at", "is out of range")),
        (OrganizationTime(time(9), date(2026, 3, 19)), ("schedule.date", "this time has passed")),
        (local("09:00", "2028-01-01"), ("schedule.date", "more than a year ahead")),
    ],
)
def test_impossible_times_are_rejected(schedule, bad_time):
    assert due_at(schedule) == BadTime(*bad_time)


@pytest.mark.promise("schedule-8")
def test_a_passed_local_time_is_too_late_for_that_recipient():
    late = due_at(local("09:00", "2026-03-20"), "Pacific/Auckland")
    assert late == BadTime("schedule.time", "this time has passed there", is_local=True)
