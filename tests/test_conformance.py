"""The pages docs/conformance*.md name tests that exist, and for every sentence at least one."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROWS = [
    (claim.strip(), tuple(re.findall(r"`([^`]+)`", held)))
    for page in sorted((ROOT / "docs").glob("conformance*.md"))
    for claim, held in re.findall(
        r"^\| (?!claim \|)(.+) \| (.*)\|$", page.read_text(), re.MULTILINE
    )
]


@cache
def collected(path: str) -> frozenset[str]:
    """Collect the names of a file's tests: functions, and `Class::method`."""
    body = ast.parse((ROOT / path).read_text()).body
    classes = [node for node in body if isinstance(node, ast.ClassDef)]
    named = [("", node) for node in body]
    named += [(f"{each.name}::", node) for each in classes for node in each.body]
    return frozenset(
        prefix + node.name
        for prefix, node in named
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


def test_there_are_rows():
    assert len(ROWS) > 200


def test_no_row_is_without_a_test():
    assert [claim for claim, held in ROWS if not held] == []


def test_no_row_stands_twice():
    assert len(set(ROWS)) == len(ROWS)


@pytest.mark.parametrize("path", sorted({name.split("::")[0] for _, held in ROWS for name in held}))
def test_every_test_named_exists(path):
    named = {
        name.partition("::")[2] for _, held in ROWS for name in held if name.split("::")[0] == path
    }
    assert named - collected(path) == set()
