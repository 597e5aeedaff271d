"""The parts of pages, drawn from values."""

import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from django.template import engines

from rme.components import tables, tags
from rme.components.tables import Cell, Column, Target

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
    assert [
        (each.first.title, len(each.entries), each.earliest, each.latest) for each in groups
    ] == [
        ("Opened", 2, NOW - timedelta(minutes=3), NOW),
        ("Delivered", 1, NOW - timedelta(minutes=5), NOW - timedelta(minutes=5)),
        ("Opened", 1, NOW - timedelta(minutes=9), NOW - timedelta(minutes=9)),
    ]


@pytest.mark.parametrize(
    ("addresses", "is_folded"), [(["/a", "/a", "/a"], False), (["/a", "/b", "/c"], True)]
)
def test_group_of_a_timeline_keeps_the_links_of_all_its_entries(addresses, is_folded):
    entries = [entry(minutes, "Opened") for minutes in range(3)]
    for each, address in zip(entries, addresses, strict=True):
        each.links = (SimpleNamespace(text="Open message", url=address),)
    html = draw("{% timeline entries %}", entries=entries)
    assert html.count('<li class="c-at-good">') == 1
    assert html.count("3 times") == 1
    assert ("<details" in html) is is_folded
    assert re.findall('href="(.*?)"', html) == list(dict.fromkeys(addresses))


def test_cells_that_are_empty_are_marked_for_a_phone():
    columns = [Column("name", "Name", Cell), Column("note", "Note", lambda line: Cell(line[:-3]))]
    table = tables.build("Words", columns, ["Ada", "Olga"], lambda line: Target("/", line))
    html = draw("{% data_table table %}", table=table)
    assert re.findall('data-label="Note" class="c-extra"(.*?)>(.*?)</td>', html) == [
        (" data-none", "–"), (' title="O"', "O")
    ]  # fmt: skip


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
