"""CSV files (RFC 4180): read line by line within limits, and written so that spreadsheets take no
cell for a formula.
"""

import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO

ROWS_LIMIT = 1_000_000
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


class Unreadable(ValueError):
    """The file cannot be imported at all."""


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
@dataclass(slots=True)
class Reader:
    """Reads a file line by line, `batch_lines` of them at a time. `line_limit` is in bytes."""

    file: IO[bytes]
    batch_lines: int
    line_limit: int
    line: int = 0
    size: int = 0
    rows: int = 0

    def read_line(self) -> str | None:
        """Return the next line without its end, or None at the end. Raises Unreadable."""
        raw = self.file.readline(self.line_limit + 1)
        if not raw:
            return None
        self.line += 1
        self.size += len(raw)
        if len(raw) > self.line_limit:
            raise Unreadable(f"Line {self.line} is longer than {self.line_limit:,} bytes.")
        if self.size > BYTES_LIMIT:
            raise Unreadable(f"The file is larger than {BYTES_LIMIT // 1024**2} MB.")
        try:
            return raw.decode("utf-8-sig" if self.line == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise Unreadable(f"Line {self.line} is not UTF-8: save the file as such.") from None

    def read_batch(self) -> tuple[int, list[str]]:
        """Return the number of the first line and the lines; an empty list at the end."""
        first = self.line + 1
        found: list[str] = []
        while len(found) < self.batch_lines and (line := self.read_line()) is not None:
            found.append(line)
        self.rows += sum(not is_blank(line) for line in found)
        if self.rows > ROWS_LIMIT:
            raise Unreadable(f"The file has more than {ROWS_LIMIT:,} rows.")
        return first, found


def is_blank(line: str) -> bool:
    """Return whether a line holds no row."""
    return not line.strip(",; \t\r")


def header(line: str, columns: Collection[str], more: Collection[str]) -> tuple[list[str], str]:
    """Parse the first line; return the names of the columns and the delimiter.

    It may name `columns`, and `more`, which are ignored, in upper or lower case. Raises Unreadable.
    """
    given, delimiter = titles(line)
    known = {name.lower(): name for name in (*columns, *more)}
    unknown = [name for name in given if name.lower() not in known]
    named = [known[name.lower()] for name in given if name.lower() in known]
    if unknown:
        raise Unreadable(
            f"The first line may name {', '.join(columns)}; it names {unknown[0]!r:.60}."
        )
    if len(set(named)) < len(named):
        raise Unreadable("The first line names a column twice.")
    return named, delimiter


def titles(line: str) -> tuple[list[str], str]:
    """Parse the first line, whatever it names; return its cells and the delimiter.

    Raises Unreadable.
    """
    delimiter = ";" if line.count(";") > line.count(",") else ","
    try:
        given = [cell.strip() for cell in cells(line, delimiter)]
    except csv.Error:
        raise Unreadable("The first line has quotes that do not match.") from None
    while given and not given[-1]:
        given.pop()
    return given, delimiter


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
        found = cells(line, delimiter)
    except csv.Error:
        # A field may not continue in the next line: one quote too many would swallow the file.
        raise ValueError("quotes that do not match") from None
    if any(found[len(columns) :]):
        raise ValueError("more cells than the first line names")
    pairs = zip(columns, found, strict=False)
    return {name: text for name, cell in pairs if (text := unguard(cell.strip()))}
