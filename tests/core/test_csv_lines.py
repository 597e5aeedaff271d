"""Files of rows: what is exported no spreadsheet computes, and an import reads it as it was."""

import csv

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
def test_cell_that_is_a_formula_is_text_in_the_file(text: str) -> None:
    file = "".join(csv_lines.write_rows([["x", text, "y"], [text], ["x", text]]))
    assert computed(file) == []
    assert csv_lines.unguard(csv_lines.guard(text)) == text


@given(row=st.lists(_TEXTS, min_size=1, max_size=4))
@example(row=["a;=1+1"])
@example(row=["a;", "=1"])
def test_row_of_any_cells_is_text_and_is_read_as_it_was(row: list[str]) -> None:
    (line,) = csv_lines.write_rows([row])
    assert computed(line) == []
    assert [csv_lines.unguard(cell) for cell in next(csv.reader([line]))] == row


@pytest.mark.parametrize("text", ["a b", "a, -b", "1-1", "a=b", "x@y.example", "it's", "a;b", ""])
def test_cell_that_is_no_formula_stays(text: str) -> None:
    assert csv_lines.guard(text) == text
