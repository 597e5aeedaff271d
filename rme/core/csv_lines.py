"""CSV files (RFC 4180): read record by record within limits, and written so that spreadsheets take
no cell for a formula.

A file may be UTF-8, UTF-16 or Windows-1252 (`csv_encoding`), with commas, semicolons or tabs
between cells.
"""

import csv
import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

from django.utils.translation import gettext as _

from rme.core.csv_encoding import LineSource, Unreadable

__all__ = ["Unreadable"]

ROWS_LIMIT = 1_000_000
COLUMNS_LIMIT = 300
BYTES_LIMIT = 100 * 1024 * 1024
BLOCK = 32 * 1024

# Spreadsheets take a cell that begins with one of these for a formula (OWASP, CSV Injection), also
# after blanks and quotes. Every E.164 number does. A `'` in front makes it text; a cell that has
# one already gets another, so that exactly one can be removed again. A program that splits at
# another separator than ours sees a cell after each of `;`, `|` and tab, too.
_FORMULA_STARTS = "=+\\-@＝＋－＠﹢﹣﹦﹫\t\r"
_IGNORED = (  # blanks, control and invisible characters, and quotes
    "'\"\\x00-\\x08\\n-\\x20\\x7f-\\xa0\\xad"
    "\\u2000-\\u200f\\u2028-\\u202f\\u205f\\u2060\\u3000\\ufeff"
)
_CELL_START = r"(?:^|(?<=[;|\t]))"
_FORMULA = re.compile(f"{_CELL_START}(?=[{_IGNORED}]*+[{_FORMULA_STARTS}])")
_GUARDED = re.compile(f"{_CELL_START}'(?=[{_IGNORED}]*+[{_FORMULA_STARTS}])")


# --- writing ------------------------------------------------------------------------------------
def guard(cell: str) -> str:
    """Return a cell with a `'` before everything that a spreadsheet would take for a formula."""
    return _FORMULA.sub("'", cell)


def unguard(cell: str) -> str:
    """Return a cell without what `guard` added."""
    return _GUARDED.sub("", cell)


def write_rows(rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield rows as CSV (RFC 4180) in blocks of about `BLOCK` characters, one row a line: line
    ends in cells become spaces.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    for row in rows:
        writer.writerow([guard(" ".join(cell.splitlines())) for cell in row])
        if buffer.tell() > BLOCK:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()


# --- reading ------------------------------------------------------------------------------------
DELIMITERS = ",;\t"
_SEPARATOR = re.compile(r'\s*"?sep=([^"\0])"?\s*', re.IGNORECASE)
"""The line that tells Excel the separator."""
_CLOSING = re.compile(r'[^"]*+(?:""[^"]*+)*"(?!")')
"""The rest of a quoted field, with the quote that closes it."""


@dataclass(slots=True)
class Records:
    """Joins lines into records: a quoted cell may continue on the next line (RFC 4180 §2.6)."""

    next_line: Callable[[], str | None]
    """Returns the next line without its end, or None at the end."""
    limit: int
    """Characters of one record."""
    delimiter: str = ","
    line: int = 0
    """The number of the line that was read last, from 1."""
    _unread: list[str] = field(default_factory=list)
    """Lines to read again, the next one last."""

    def read(self) -> str | None:
        """Return the next record without its end, or None at the end.

        If quotes don't match, only the first line is a bad row; the lines after it are read again.
        """
        lines: list[str] = []
        length, inside = 0, False
        while (line := self.read_line()) is not None:
            lines.append(line)
            length += len(line) + 1
            state = _quoted_after(line, self.delimiter, inside=inside)
            if state is False:
                return "\n".join(lines)
            if state is None or length > self.limit:
                break
            inside = True
        if not lines:
            return None
        self.unread(lines[1:])
        return lines[0]

    def read_line(self) -> str | None:
        """Return the next line, or None at the end."""
        line = self._unread.pop() if self._unread else self.next_line()
        self.line += line is not None
        return line

    def unread(self, lines: Sequence[str]) -> None:
        """Take back the lines that were read last."""
        self._unread += reversed(lines)
        self.line -= len(lines)


class Reader:
    """Reads a file record by record, about `batch_lines` lines at a time. `line_limit` is in bytes,
    and bounds a record too.
    """

    def __init__(self, file: IO[bytes], batch_lines: int, line_limit: int) -> None:
        self.batch_lines, self.line_limit = batch_lines, line_limit
        self.rows = 0
        self._source = LineSource(file)
        self._records = Records(self._next_line, line_limit)
        self._size = 0
        self._line = 0

    @property
    def delimiter(self) -> str:
        """Return the character between cells; known once the header was read."""
        return self._records.delimiter

    @property
    def encoding(self) -> str:
        """Return the name of the file's encoding; known once the whole file was read."""
        return self._source.encoding

    def read_header(self) -> str:
        """Return the first record, and find the delimiter. Raises Unreadable."""
        first = self._records.read_line() or ""
        if separator := _SEPARATOR.fullmatch(first):
            self._records.delimiter = separator[1]
        else:
            self._records.delimiter = _delimiter_of(first)
            self._records.unread([first])
        return self._records.read() or ""

    def read_batch(self) -> tuple[int, list[str]]:
        """Return the number of the first line and the records; an empty list at the end."""
        first = self._records.line + 1
        records: list[str] = []
        while self._records.line - first + 1 < self.batch_lines:
            record = self._records.read()
            if record is None:
                break
            records.append(record)
        self.rows += sum(not is_blank(record) for record in records)
        if self.rows > ROWS_LIMIT:
            raise Unreadable(
                _("The file has more than %(limit)s rows.") % {"limit": f"{ROWS_LIMIT:,}"}
            )
        return first, records

    def _next_line(self) -> str | None:
        raw = self._source.readline(self.line_limit + 1)
        if not raw:
            return None
        self._line += 1
        self._size += len(raw)
        if len(raw) > self.line_limit:
            raise Unreadable(
                _("Line %(line)s is longer than %(limit)s bytes.")
                % {"line": self._line, "limit": f"{self.line_limit:,}"}
            )
        if self._size > BYTES_LIMIT:
            raise Unreadable(
                _("The file is larger than %(limit)s MB.") % {"limit": BYTES_LIMIT // 1024**2}
            )
        return self._source.decode(raw, self._line).rstrip("\r\n")


def numbered_records(
    text: str, first_line: int, delimiter: str, limit: int
) -> Iterator[tuple[int, str]]:
    """Yield the records of joined lines, each with the number of its first line.

    `limit` is that of the `Reader` whose lines they are: with another one quotes that don't match
    would swallow rows.
    """
    lines = iter(text.split("\n"))
    records = Records(lambda: next(lines, None), limit, delimiter, line=first_line - 1)
    while True:
        number = records.line + 1
        record = records.read()
        if record is None:
            return
        yield number, record


def _delimiter_of(line: str) -> str:
    """Return the delimiter that a first line has most often outside quotes; else a comma."""
    bare = re.sub(r'"[^"]*+"?', "", line)
    return max(DELIMITERS, key=bare.count)


def _quoted_after(line: str, delimiter: str, *, inside: bool) -> bool | None:
    """Return whether a quoted field is open at the end of a line; None if its quotes don't match.

    `inside`: whether one is open at its beginning.
    """
    if '"' not in line:
        return inside
    position = 0
    while True:
        if inside or line[position : position + 1] == '"':
            closing = _CLOSING.match(line, position + (not inside))
            if not closing:
                return True
            inside, position = False, closing.end()
            if position == len(line):
                return False
            if line[position] != delimiter:
                return None
        else:
            position = line.find(delimiter, position)
            if position < 0:
                return False
        position += 1


def is_blank(line: str) -> bool:
    """Return whether a line holds no row."""
    return not line.strip(",; \t\r")


def header(
    line: str, columns: Collection[str], ignored: Collection[str], delimiter: str
) -> list[str]:
    """Parse the first line; return the names of the columns.

    It may name `columns` and `ignored`, in upper or lower case. Raises Unreadable.
    """
    names = titles(line, delimiter)
    names_by_lower = {name.lower(): name for name in (*columns, *ignored)}
    unknown = [name for name in names if name.lower() not in names_by_lower]
    column_names = [
        names_by_lower[name.lower()] for name in names if name.lower() in names_by_lower
    ]
    if unknown:
        raise Unreadable(
            _("The first line may name %(columns)s; it names %(unknown)s.")
            % {"columns": ", ".join(columns), "unknown": f"{unknown[0]!r:.60}"}
        )
    if len(set(column_names)) < len(column_names):
        raise Unreadable(_("The first line names a column twice."))
    return column_names


def titles(line: str, delimiter: str) -> list[str]:
    """Parse the first line, and return its cells, whatever they name. Raises Unreadable."""
    try:
        # PostgreSQL stores no NUL in a text.
        names = [" ".join(cell.replace("\0", " ").split()) for cell in cells(line, delimiter)]
    except csv.Error:
        raise Unreadable(_("The first line has quotes that do not match.")) from None
    while names and not names[-1]:
        names.pop()
    if len(names) > COLUMNS_LIMIT:  # a page has a field for each
        raise Unreadable(
            _("The first line names more than %(limit)s columns.") % {"limit": COLUMNS_LIMIT}
        )
    return names


def sample_cells(line: str, delimiter: str) -> list[str]:
    """Return the cells of a line as they are shown to a person, whatever its quotes."""
    try:
        return [unguard(cell.strip()) for cell in cells(line, delimiter)]
    except csv.Error:
        return [line]


def cells(line: str, delimiter: str) -> list[str]:
    """Return the cells of a line. Raises csv.Error for quotes that do not match."""
    if '"' not in line:
        return line.split(delimiter)
    return next(csv.reader([line], delimiter=delimiter, strict=True))


def row(line: str, columns: list[str], delimiter: str) -> Mapping[str, str]:
    """Return the cells of a line by column, without empty ones. Raises ValueError with a reason."""
    try:
        values = cells(line, delimiter)
    except csv.Error:
        raise ValueError(_("quotes that do not match")) from None
    if any(values[len(columns) :]):
        raise ValueError(_("more cells than the first line names"))
    pairs = zip(columns, values, strict=False)
    return {name: text for name, cell in pairs if (text := unguard(cell.strip()))}
