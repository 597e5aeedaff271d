"""No test asserts only inside a loop that may run zero times."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
_PASSING_ON = {"dict", "enumerate", "list", "reversed", "set", "sorted", "tuple", "zip"}
"""Functions whose result has items if their arguments have."""


def _name(node: ast.AST) -> str:
    """Return the last part of a name or attribute; empty for other nodes."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _has_items(node: ast.AST, known: set[str]) -> bool:
    """Tell whether an iterable is written out, or a constant or an enumeration."""
    match node:
        case ast.Tuple() | ast.List() | ast.Set():
            return bool(node.elts)
        case ast.Dict():
            return bool(node.keys)
        case ast.Constant():
            return bool(node.value)
        case ast.BinOp():
            return _has_items(node.left, known)
        case ast.Name():
            return node.id in known or node.id[0].isupper()
        case ast.Attribute():
            return node.attr.isupper() or _has_items(node.value, known)
        case ast.Call(func=ast.Name(id="range")):
            return True
        case ast.Call(func=ast.Name(id=name)) if name in _PASSING_ON:
            return all(_has_items(argument, known) for argument in node.args)
        case ast.Call(func=ast.Attribute(attr="items" | "keys" | "values" | "split")):
            return _has_items(node.func.value, known)
    return False


def _assertions(node: ast.AST, loops: tuple[ast.For, ...] = ()) -> Iterator[tuple[ast.For, ...]]:
    """Return the loops around each assertion of a function, its own helpers included."""
    if isinstance(node, ast.Assert) or (
        isinstance(node, ast.Call)
        and _name(node.func).startswith(("assert", "check", "raises", "wait_for"))
    ):
        yield loops
    for child in ast.iter_child_nodes(node):
        inside = isinstance(node, ast.For) and child in node.body
        yield from _assertions(child, (*loops, node) if inside else loops)


def _known(body: list[ast.stmt]) -> set[str]:
    """Return the names that are assigned something with items, or asserted to have some."""
    known: set[str] = set()
    for node in body:
        for each in ast.walk(node):
            match each:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    if _has_items(value, known):
                        known.add(name)
                case ast.Assert(test=ast.Name(id=name)):
                    known.add(name)
    return known


def hollow_tests(source: str) -> list[str]:
    """Return the tests of a module whose only assertions are in loops that may not run."""
    module = ast.parse(source)
    tests = [
        node
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    ]
    return [
        test.name
        for test in tests
        if (assertions := list(_assertions(test)))
        and all(
            any(not _has_items(loop.iter, _known(test.body)) for loop in loops)
            for loops in assertions
        )
    ]


@pytest.mark.parametrize("folder", sorted(path.name for path in TESTS.iterdir() if path.is_dir()))
def test_assertions_run(folder: str) -> None:
    paths = sorted((TESTS / folder).rglob("test_*.py"))
    hollow = [f"{path.name}::{name}" for path in paths for name in hollow_tests(path.read_text())]
    assert hollow == []


def test_assertions_run_in_top_level_tests() -> None:
    paths = sorted(TESTS.glob("test_*.py"))
    assert paths
    hollow = [f"{path.name}::{name}" for path in paths for name in hollow_tests(path.read_text())]
    assert hollow == []


@pytest.mark.parametrize(
    ("body", "hollow"),
    [
        ("for row in rows(): assert row", True),
        ("for row in sorted(rows()): assert row", True),
        ("for row in rows():\n        for n in (1, 2): assert row", True),
        ("for row in ROWS: assert row", False),
        ("for row in Status: assert row", False),
        ("for row in (1, 2): assert row", False),
        ("rows = read()\n    assert rows\n    for row in rows: assert row.ok", False),
        ("for row in rows(): assert row\n    assert done", False),
    ],
)
def test_hollow_test_is_recognized(body: str, hollow: bool) -> None:
    for kind in ("def", "async def"):
        source = f"{kind} test_x():\n    {body}\n"
        assert hollow_tests(source) == (["test_x"] if hollow else [])
