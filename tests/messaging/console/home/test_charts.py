"""What charts tell of each hour, decided on values alone."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from messaging.console.home import charts

HOURS = [datetime(2026, 11, 27, 22, tzinfo=UTC) + timedelta(hours=place) for place in range(3)]
ZURICH = ZoneInfo("Europe/Zurich")


def test_lines_tell_each_hour_in_the_organizations_zone():
    drawn = charts.lines(HOURS, [0, 1200, 3], [0, 0, 0], ZURICH)
    assert drawn.texts.split("\n") == ["23:00: 0", "00:00: 1,200", "01:00: 3"]
    assert (drawn.current, drawn.before) == ("0,31.0 10,1.0 20,30.9", "")


def test_lines_tell_the_week_before_if_it_had_messages():
    drawn = charts.lines(HOURS, [1, 2, 3], [0, 4, 0], ZURICH)
    assert drawn.texts.split("\n")[1] == "00:00: 2, a week before 4"
    assert drawn.before == "0,31.0 10,1.0 20,31.0"


def test_lines_say_what_a_value_is():
    drawn = charts.lines(HOURS, [1, 1200, 0], [0, 0, 0], ZURICH, "%(value)s still waiting")
    assert drawn.texts.split("\n")[1] == "00:00: 1,200 still waiting"


def test_lines_of_a_week_tell_the_day():
    hours = [HOURS[0] + timedelta(hours=place) for place in range(168)]
    drawn = charts.lines(hours, [1] * 168, [0] * 168, ZURICH)
    assert drawn.texts.split("\n")[1] == "Sat 00:00: 1"
