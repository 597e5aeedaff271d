"""The parts of pages, drawn from values."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from django.template import engines

from rme.components import tags

NOW = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)


def draw(source, **context):
    return engines["django"].from_string(source).render(context)


def entry(minutes, title, text=""):
    at = NOW - timedelta(minutes=minutes)
    return SimpleNamespace(at=at, title=title, text=text, colour="good", links=())


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "just now"),
        (29, "just now"),
        (-5, "in a moment"),
        (240, "4 min ago"),
        (-3600, "in 1 h"),
        (5 * 3600, "5 h ago"),
        (30 * 3600, "26 Nov, 06:00"),
        (400 * 86400, "23 Oct 2025"),
    ],
)
def test_distance_is_what_people_say(seconds, text):
    assert tags.distance(NOW - timedelta(seconds=seconds), NOW) == text


def test_equal_neighbours_of_a_timeline_are_one_group():
    entries = [entry(0, "Opened"), entry(3, "Opened"), entry(5, "Delivered"), entry(9, "Opened")]
    groups = tags.grouped(entries)
    assert [(each.first.title, each.count, each.first.at, each.last.at) for each in groups] == [
        ("Opened", 2, NOW, NOW - timedelta(minutes=3)),
        ("Delivered", 1, NOW - timedelta(minutes=5), NOW - timedelta(minutes=5)),
        ("Opened", 1, NOW - timedelta(minutes=9), NOW - timedelta(minutes=9)),
    ]


def test_values_in_parts_are_escaped():
    html = draw(
        '{% banner "warn" %}{{ text }}{% endbanner %}{% pill text %}'
        '{% facts %}{% fact text %}{{ text }}{% endfact %}{% endfacts %}{% code_block "a" text %}',
        text="<script>",
    )
    assert (html.count("&lt;script&gt;"), "<script>" in html) == (5, False)


def test_dialog_is_open_after_an_error_alone():
    source = '{% dialog "a" "Title" button="Open" is_open=errors %}form{% enddialog %}'
    assert '<dialog id="a" class="c-dialog" popover open ' in draw(source, errors=["wrong"])
    assert '<dialog id="a" class="c-dialog" popover aria' in draw(source, errors=[])
