"""Days, weeks and months of partitions, and what their names say."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from rme.core.db import periods
from rme.core.db.periods import Period


@pytest.mark.parametrize(
    ("period", "start", "following", "suffix"),
    [
        (Period.DAY, (2032, 2, 29), (2032, 3, 1), "20320229"),
        (Period.WEEK, (2032, 2, 23), (2032, 3, 1), "2032w09"),
        (Period.MONTH, (2032, 2, 1), (2032, 3, 1), "203202"),
    ],
)
def test_leap_day_belongs_to_its_period(period, start, following, suffix):
    first = datetime(*start, tzinfo=UTC)
    assert period.start_of(datetime(2032, 2, 29, 23, 59, 59, tzinfo=UTC)) == first
    assert period.later(first) == datetime(*following, tzinfo=UTC)
    assert period.suffix(first) == suffix
    assert periods.of_suffix(suffix) == (period, first)


def test_week_belongs_to_the_year_of_its_thursday():
    assert Period.WEEK.suffix(datetime(2024, 12, 30, tzinfo=UTC)) == "2025w01"
    assert periods.of_suffix("2025w01") == (Period.WEEK, datetime(2024, 12, 30, tzinfo=UTC))


def test_periods_are_in_utc():
    moment = datetime(2032, 3, 1, 1, tzinfo=timezone(timedelta(hours=2)))
    assert Period.MONTH.start_of(moment) == datetime(2032, 2, 1, tzinfo=UTC)


def test_months_are_counted_over_the_end_of_a_year():
    assert Period.MONTH.later(datetime(2031, 11, 1, tzinfo=UTC), 3) == datetime(
        2032, 2, 1, tzinfo=UTC
    )
