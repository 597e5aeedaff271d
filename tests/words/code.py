"""The sentences of a module that are not marked for translation."""

import ast
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from docs import words

SENTENCE = re.compile(r"[A-Za-z][a-z’']*[,;:]? [a-z]")
STRING = ast.Constant | ast.JoinedStr
FOR_PROGRAMS = {
    "AssertionError", "ImproperlyConfigured", "RuntimeError", "cast", "compile", "debug", "error",
    "exception", "info", "warning",
}  # fmt: skip
"""Functions whose texts go to logs and developers; the last ones are methods of loggers."""
FOR_THE_AUDIT = {"NewEntry", "about", "about_person", "note", "reset_credentials"}
"""Functions whose texts the audit stores, in English."""


class _Sentences(ast.NodeVisitor):
    def __init__(self, marks: Collection[str]) -> None:
        self.marks, self.texts = {*marks}, list[str]()

    def _visit_body(self, node: Any) -> None:
        """Visit a body without its docstrings."""
        for each in node.body:
            if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)):
                self.visit(each)

    visit_Module = visit_ClassDef = _visit_body

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for each in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(each)
        self._visit_body(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        called = ast.unparse(node.func)
        name = called.rpartition(".")[2]
        if name in self.marks | FOR_THE_AUDIT:
            return
        if name in FOR_PROGRAMS and not called.startswith("messages."):
            return
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self._add(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self._add(
            "".join(str(v.value) if isinstance(v, ast.Constant) else "{}" for v in node.values)
        )
        for each in node.values:
            if isinstance(each, ast.FormattedValue):
                self.visit(each.value)

    def _add(self, text: str) -> None:
        if SENTENCE.match(text):
            self.texts.append(text)


def unmarked(path: Path) -> list[str]:
    """Return the unmarked sentences of a module, in their order."""
    source = path.read_text()
    found = _Sentences(words.keywords(source))
    found.visit(ast.parse(source))
    return found.texts


SCRIPT_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`|\'((?:[^\'\\\n]|\\.)*)\'')
SCRIPT_WORDS = re.compile(r"[A-Z][a-z]+([ .:]|$)|.*\b[a-z]{2,} [a-z]+ [a-z]{2,}\b")
KEYS = {"Backspace", "Ctrl K", "Delete", "End", "Enter", "Escape", "Home", "Tab"}
"""Keys of a keyboard."""


def in_script(source: str) -> list[str]:
    """Return the words for people in a script."""
    code = re.sub(r"(^|\s)//.*", "", source)
    texts = (next(filter(None, found.groups()), "") for found in SCRIPT_STRING.finditer(code))
    return [text for text in texts if SCRIPT_WORDS.match(text) and text not in KEYS]
