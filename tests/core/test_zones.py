"""Quiet hours, where the recipient is."""

from datetime import UTC, datetime

import pytest

from rme.core.zones import quiet_until, zone

NIGHT = {"from": "21:00", "until": "08:00"}
NOON = {"from": "12:00", "until": "13:30"}


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


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
