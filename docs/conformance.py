"""`make conformance`: write into docs/conformance*.md which tests hold each promise.

The pages have the promises, each with an id. A test names those that it holds, by
`@pytest.mark.promise("tokens-3")`. This script reads the tests, and writes the last column.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs").glob("conformance*.md"))
ROW = re.compile(r"^\| ([a-z-]+-\d+) \| (.*) \| (.*) \|$", re.MULTILINE)
"""A promise: its id, what is promised, and the files of its tests."""


def promised() -> list[str]:
    """Return the ids of all promises, in the order of the pages."""
    return [found[1] for page in PAGES for found in ROW.finditer(page.read_text())]


def holders() -> dict[str, list[str]]:
    """Return the files that have a test of each promise, by its id."""
    files = defaultdict[str, list[str]](list)
    for path in sorted((ROOT / "tests").rglob("*.py")):
        text = path.read_text()
        if "mark.promise" in text:
            for promise in sorted(set(_marked(text))):
                files[promise].append(str(path.relative_to(ROOT)))
    return files


def _marked(text: str) -> Iterator[str]:
    """Yield the ids that the tests of a module name."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.promise":
                    yield from map(ast.literal_eval, mark.args)


def filled(page: str, files: Mapping[str, Sequence[str]]) -> str:
    """Return a page with the tests of each promise."""

    def row(found: re.Match[str]) -> str:
        tests = ", ".join(f"`{each}`" for each in files.get(found[1], ()))
        return f"| {found[1]} | {found[2]} | {tests} |"

    return ROW.sub(row, page)


def main() -> None:
    files = holders()
    for page in PAGES:
        page.write_text(filled(page.read_text(), files))


if __name__ == "__main__":
    main()
