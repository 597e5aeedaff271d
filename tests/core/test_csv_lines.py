"""Files of rows: what is exported no spreadsheet computes, and an import reads it as it was."""

import csv
import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rme.core import csv_lines

FORMULAS = [
    *("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "＝1+1", "＋1", "－1", "＠SUM(A1)", "﹦1"),
    *(" =1", "\xa0=1", "\u3000=1", "\ufeff=1", '"=1', "'=1", "''=1", "\x00=1", "'\u200b'=1"),
    *("a;=1+1", "a|=1", "a\t=1", "a; =1", 'a;"=1', "a;'=1", ";＝1", ";;=1", "a;=1;-2", "a;\t=1"),
    *("=cmd|' /C calc'!A0", 'a";=1;"', 'a,";=1', "+4915112345678"),
]
READERS = [
    {"delimiter": delimiter, "skipinitialspace": skip}
    for delimiter in (",", ";", "\t", "|")
    for skip in (False, True)
]
_TEXTS = st.text(st.sampled_from("=+-@＝;|\t ,'\"a1\ufeff\xa0\\"), max_size=12)


def computed(file: str) -> list[str]:
    """Return the cells that a spreadsheet would compute, whatever it takes for the separator."""
    cells = [
        cell for how in READERS for row in csv.reader(file.splitlines(), **how) for cell in row
    ]
    return [cell for cell in cells if cell.strip(' \t\xa0\u3000\ufeff\x00"')[:1] in SIGNS]


SIGNS = set("=+-@＝＋－＠﹢﹣﹦﹫")


@pytest.mark.parametrize("text", FORMULAS)
def test_formula_cell_is_exported_as_text(text: str) -> None:
    file = "".join(csv_lines.write_rows([["x", text, "y"], [text], ["x", text]]))
    assert computed(file) == []
    assert csv_lines.unguard(csv_lines.guard(text)) == text


@given(row=st.lists(_TEXTS, min_size=1, max_size=4))
@example(row=["a;=1+1"])
@example(row=["a;", "=1"])
def test_any_row_is_written_as_text_and_read_back(row: list[str]) -> None:
    (line,) = csv_lines.write_rows([row])
    assert computed(line) == []
    assert [csv_lines.unguard(cell) for cell in next(csv.reader([line]))] == row


@pytest.mark.parametrize("text", ["a b", "a, -b", "1-1", "a=b", "x@y.example", "it's", "a;b", ""])
def test_plain_cell_is_exported_unchanged(text: str) -> None:
    assert csv_lines.guard(text) == text


def records(data: bytes, limit: int = 100_000) -> list[str]:
    """Return the records of a file below its header, in batches of two lines."""
    reader = csv_lines.Reader(io.BytesIO(data), 2, limit)
    reader.read_header()
    lines: list[str] = []
    while batch := reader.read_batch()[1]:
        lines += batch
    return lines


@given(rows=st.lists(st.lists(_TEXTS | st.just("a\nb"), min_size=2, max_size=3), max_size=8))
def test_any_rows_are_read_as_they_were_written(rows: list[list[str]]) -> None:
    file = io.StringIO(newline="")
    csv.writer(file).writerows([["a", "b"], *rows])
    read = records(file.getvalue().encode())
    assert [csv_lines.cells(record, ",") for record in read] == rows


def test_lines_longer_than_a_block_are_read() -> None:
    long = "x" * 90_000
    data = f"a,b\n{long},1\n2,{long}\n".encode("utf-16")
    assert records(data) == [f"{long},1", f"2,{long}"]


def test_unterminated_cell_is_bounded_by_its_limit() -> None:
    data = b"a,b\n" + b'"x,1\n' + b"y,2\n" * 1000
    assert records(data, limit=1000) == ['"x,1', *["y,2"] * 1000]
