"""The table of a list: its columns, and rows that a screen reader tells apart."""

from datetime import UTC, datetime, timedelta

from rme.components import tables
from rme.components.tables import Cell, Choice, Column, Target

AT = datetime(2026, 11, 26, 14, 3, tzinfo=UTC)
COLUMNS = [
    Column("name", "Name", Cell),
    Column("length", "Length", lambda line: Cell(str(len(line)))),
    Column("first", "First letter", lambda line: Cell(line[0]), is_shown=False),
]


def names(table):
    return [each.name for each in table.columns]


def build(columns=COLUMNS, **options):
    return tables.build(
        "Words", columns, ["Ada", "Olga", "Ada"], lambda line: Target(f"/{line}/", line), **options
    )


def test_table_has_the_usual_columns_or_those_that_were_chosen():
    usual = build()
    assert names(usual) == ["name", "length"]
    assert [[cell.text for _, cell in row.cells] for row in usual.rows] == [
        ["Ada", "3"], ["Olga", "4"], ["Ada", "3"]
    ]  # fmt: skip
    assert usual.choices == [
        Choice("length", "Length", True), Choice("first", "First letter", False)
    ]  # fmt: skip
    assert names(build(chosen={"first", "unknown"})) == ["name", "first"]
    assert names(build(chosen=())) == ["name"]


def test_fixed_column_cannot_be_hidden():
    fixed = [*COLUMNS[:2], Column("at", "At", Cell, is_fixed=True)]
    table = build(fixed, chosen=())
    assert names(table) == ["name", "at"]
    assert [each.name for each in table.choices] == ["length"]


def test_rows_with_the_same_name_are_told_apart_by_their_times():
    hours = iter(range(3))
    table = tables.build(
        *("Words", COLUMNS, ["Ada", "Olga", "Ada"]),
        lambda line: Target("/", f"message to {line}", AT + timedelta(hours=next(hours))),
    )
    assert [row.name for row in table.rows] == [
        "message to Ada, 26 Nov 2026, 14:03:00 UTC",
        "message to Olga",
        "message to Ada, 26 Nov 2026, 16:03:00 UTC",
    ]


def test_page_of_a_line_has_its_columns_that_say_anything():
    columns = [*COLUMNS, Column("note", "Note", lambda line: Cell())]
    assert tables.facts(columns, "Ada") == [
        ("Name", Cell("Ada")), ("Length", Cell("3")), ("First letter", Cell("A"))
    ]  # fmt: skip
