"""A list of a page: columns that its person may choose, and rows that lead to their pages."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.timezone import localtime

Line = TypeVar("Line")


@dataclass(frozen=True, slots=True)
class Cell:
    """What a row has in one column; all of it may be empty."""

    text: str = ""
    note: str = ""
    """What stands behind the text, in a quieter colour."""
    colour: str = ""
    """The colour of the pill that the text is in; empty for plain text."""
    at: datetime | None = None
    """A time, which a list shows by its distance from now."""
    pills: Sequence[tuple[str, str]] = ()
    """Further states: their words and colours."""

    @property
    def is_plain(self) -> bool:
        """Return whether it is a text and nothing else, as most cells are: it is drawn at once."""
        return not (self.note or self.colour or self.at or self.pills)

    @property
    def hint(self) -> str:
        """Return the whole text: a list cuts what is too long for its column."""
        return " ".join(filter(None, [self.text, self.note]))


@dataclass(frozen=True, slots=True)
class Column(Generic[Line]):
    """A column, and what a line has in it. The first column of a table is its rows' link."""

    name: str
    title: str | Promise
    cell: Callable[[Line], Cell]
    size: str = ""
    """How wide it is: `small`, `medium`, `wide`, or empty for an equal share; where there is little
    room, on a phone and beside the panel, those with an equal share are hidden.
    """
    is_shown: bool = True
    """Whether it is shown to people who have chosen no columns."""
    is_fixed: bool = False
    """Whether nobody can hide it."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a row leads."""

    url: str
    name: str
    """Its page in words, with the text of the first cell, such as `message to Olivia Reyes`."""
    at: datetime | None = None
    """What tells rows with the same name apart."""
    key: str = ""
    """What its box stands for in a form, in a list whose rows can be ticked."""
    peek_url: str = ""
    """The part of its page that the panel beside the list shows; empty: that of the page itself."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row as a page shows it."""

    target: Target
    name: str
    cells: Sequence[tuple[Column[Any], Cell]]


@dataclass(frozen=True, slots=True)
class Choice:
    """A column that may be shown or not."""

    name: str
    title: str | Promise
    is_shown: bool


@dataclass(frozen=True, slots=True)
class Table:
    """Rows in their columns."""

    title: str
    columns: Sequence[Column[Any]]
    rows: Sequence[Row]
    choices: Sequence[Choice] = ()
    ticks: str = ""
    """The field of the rows' boxes; empty for rows that can't be ticked."""
    peeks: bool = True
    """Whether rows are shown in the panel beside the list."""


def build(
    title: str,
    columns: Sequence[Column[Line]],
    lines: Iterable[Line],
    target: Callable[[Line], Target],
    *,
    chosen: Collection[str] | None = None,
    ticks: str = "",
    peeks: bool = True,
) -> Table:
    """Return the table of lines with the columns that a person has chosen, or the usual ones."""
    first, *others = columns
    shown = [each for each in others if _is_shown(each, chosen)]
    pairs = [(line, target(line)) for line in lines]
    counts = Counter(each.name for _, each in pairs)
    rows = [
        Row(
            each,
            _told_apart(each) if counts[each.name] > 1 else each.name,
            [(column, column.cell(line)) for column in (first, *shown)],
        )
        for line, each in pairs
    ]
    choices = [Choice(each.name, each.title, each in shown) for each in others if not each.is_fixed]
    return Table(title, [first, *shown], rows, choices, ticks, peeks)


def _is_shown(column: Column[Line], chosen: Collection[str] | None) -> bool:
    if column.is_fixed or chosen is None:
        return column.is_fixed or column.is_shown
    return column.name in chosen


def _told_apart(target: Target) -> str:
    if not target.at:
        return target.name
    return f"{target.name}, {date_format(localtime(target.at), 'DATETIME_FORMAT')}"


def facts(columns: Sequence[Column[Line]], line: Line) -> list[tuple[str | Promise, Cell]]:
    """Return all columns of one line that say anything, for its page."""
    cells = [(each.title, each.cell(line)) for each in columns]
    return [(title, cell) for title, cell in cells if cell != Cell()]
