"""A process without memory ends, and decides nothing about the messages that it has."""

import ast
from io import StringIO
from pathlib import Path

import pytest

from messaging.content.rendering.liquid.text import Text
from tests.service import ROOT

WORKERS = ("messaging/delivery", "messaging/store", "messaging/feedback", "messaging/webhooks")
WORKERS += ("messaging/content/rendering/liquid", "rme/core/provider", "push/providers")
"""What a worker executes for one message of many, and must not let fail all of them."""


def _handlers(path: Path) -> list[tuple[str, list[str]]]:
    """Return each try that catches Exception, by its place, with what it catches before."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Try):
            caught = [ast.unparse(each.type) if each.type else "" for each in node.handlers]
            if "Exception" in caught:
                place = f"{path.relative_to(ROOT)}:{node.lineno}"
                found.append((place, caught[: caught.index("Exception")]))
    return found


def test_memory_error_is_reraised_by_every_broad_handler():
    handlers = [
        handler
        for folder in WORKERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for handler in _handlers(path)
    ]
    assert len(handlers) >= 9
    assert [place for place, caught in handlers if "MemoryError" not in " ".join(caught)] == []


class Large:
    """A node of a template for which there is no memory."""

    def render(self, context: object, buffer: StringIO) -> None:
        bytearray(2**62)


def test_text_without_memory_is_no_failed_text():
    text = Text.__new__(Text)
    with pytest.raises(MemoryError):
        text.write_node(Large(), None, StringIO())
