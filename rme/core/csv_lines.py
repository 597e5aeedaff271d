"""Files of rows, as spreadsheets read and write them (CSV, RFC 4180): read line by line within
bounds, and written so that no spreadsheet computes them.
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

# Spreadsheets take a cell that begins so for a formula (OWASP, CSV Injection), full-width signs
# too, and behind blanks and quotes. Every E.164 number does. A `'` in front makes it text; one that
# stood there already gets another, so that exactly one can be taken away again. A program that
# reads the file with another separator than ours sees a cell behind each of these, too.
_SIGNS = "=+\\-@＝＋－＠﹢﹣﹦﹫\t\r"
_BEFORE = (  # blanks, controls, what is not seen, and quotes
    "'\"\\x00-\\x08\\n-\\x20\\x7f-\\xa0\\xad"
    "\\u2000-\\u200f\\u2028-\\u202f\\u205f\\u2060\\u3000\\ufeff"
)
_START = r"(?:^|(?<=[;|\t]))"
_FORMULA = re.compile(f"{_START}(?=[{_BEFORE}]*+[{_SIGNS}])")
_GUARDED = re.compile(f"{_START}'(?=[{_BEFORE}]*+[{_SIGNS}])")


class Unreadable(ValueError):
    """The file as a whole cannot be imported, and nothing of it was."""


# --- writing ------------------------------------------------------------------------------------
def guard(cell: str) -> str:
    """Return a cell with a `'` before all that a spreadsheet would compute."""
    return _FORMULA.sub("'", cell)


def bare(cell: str) -> str:
    """Return the cell that was guarded."""
    return _GUARDED.sub("", cell)


def lines(rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Write rows as CSV (RFC 4180), some hundred a block, each in a line of its own whatever
    stands in it.
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
    """Reads a file line by line, and holds no more than a part of it. `line_limit` is in bytes."""

    file: IO[bytes]
    part_lines: int
    line_limit: int
    line: int = 0
    size: int = 0
    rows: int = 0

    def next(self) -> str | None:
        """Give the next line without its end; None after the last. Raises Unreadable."""
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

    def part(self) -> tuple[int, list[str]]:
        """Give some lines and the number of the first; none after the last."""
        first = self.line + 1
        found: list[str] = []
        while len(found) < self.part_lines and (line := self.next()) is not None:
            found.append(line)
        self.rows += sum(not is_blank(line) for line in found)
        if self.rows > ROWS_LIMIT:
            raise Unreadable(f"The file has more than {ROWS_LIMIT:,} rows.")
        return first, found


def is_blank(line: str) -> bool:
    """Say whether a line has no row."""
    return not line.strip(",; \t\r")


def header(line: str, columns: Collection[str], more: Collection[str]) -> tuple[list[str], str]:
    """Read the first line: columns by the names that they have, in any case, and the delimiter.

    It may name `columns`, and `more`, which are passed over. Raises Unreadable.
    """
    delimiter = ";" if line.count(";") > line.count(",") else ","
    known = {name.lower(): name for name in (*columns, *more)}
    try:
        given = [cell.strip() for cell in cells(line, delimiter)]
    except csv.Error:
        raise Unreadable("The first line has quotes that do not match.") from None
    while given and not given[-1]:
        given.pop()
    unknown = [name for name in given if name.lower() not in known]
    named = [known[name.lower()] for name in given if name.lower() in known]
    if unknown:
        raise Unreadable(
            f"The first line may name {', '.join(columns)}; it names {unknown[0]!r:.60}."
        )
    if len(set(named)) < len(named):
        raise Unreadable("The first line names a column twice.")
    return named, delimiter


def cells(line: str, delimiter: str) -> list[str]:
    """Split a line. Raises csv.Error for quotes that do not match."""
    if '"' not in line:
        return line.split(delimiter)
    return next(csv.reader([line], delimiter=delimiter, strict=True))


def row(line: str, columns: list[str], delimiter: str) -> Mapping[str, str]:
    """Give the cells of a line by column, save empty ones. Raises ValueError, which says why."""
    try:
        found = cells(line, delimiter)
    except csv.Error:
        # A field may not go on in the next line: one quote too many would swallow the file.
        raise ValueError("quotes that do not match") from None
    if any(found[len(columns) :]):
        raise ValueError("more cells than the first line names")
    pairs = zip(columns, found, strict=False)
    return {name: text for name, cell in pairs if (text := bare(cell.strip()))}
