"""The part of SOQL and SOSL that a stub needs: parsed, and answered from rows.

https://developer.salesforce.com/docs/atlas.en-us.soql_sosl.meta/soql_sosl/
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_TOKEN = re.compile(
    r"\s+|(?P<text>'(?:[^'\\\n]|\\.)*')|(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)"
    r"|(?P<number>-?\d+(?:\.\d+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_.]*)|(?P<mark><=|>=|!=|[=<>(),])"
)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_SOSL = re.compile(r"FIND \{((?:[^{}\\]|\\.)*)\} IN PHONE FIELDS RETURNING (\w+)\((.*)\)\Z", re.S)

Row = Mapping[str, Any]
Test = Callable[[Callable[[str], Any]], bool]
"""Returns whether a row matches; the argument reads the row's fields."""


class Malformed(ValueError):
    """What is no query."""


@dataclass
class Query:
    """A query that was read."""

    fields: list[str]
    object: str
    test: Test
    paths: list[str]
    """All fields that it names, wherever."""
    order: list[tuple[str, bool]]
    """Fields, and whether the greatest comes first."""
    limit: int


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if not found:
            raise Malformed(f"unexpected at {at}: {text[at : at + 20]!r}")
        if found.lastgroup:
            tokens.append((found.lastgroup, found[0]))
        at = found.end()
    return [*tokens, ("end", "")]


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.paths: list[str] = []

    def peek(self) -> str:
        return self.tokens[0][1].upper()

    def take(self, *wanted: str) -> tuple[str, str]:
        _kind, text = self.tokens[0]
        if wanted and text.upper() not in wanted:
            raise Malformed(f"expected {wanted}, found {text!r}")
        return self.tokens.pop(0)

    def name(self) -> str:
        kind, text = self.take()
        if kind != "name":
            raise Malformed(f"expected a name, found {text!r}")
        return text

    def path(self) -> str:
        self.paths.append(self.name())
        return self.paths[-1]

    def fields(self) -> list[str]:
        found = [self.path()]
        while self.peek() == ",":
            self.take()
            found.append(self.path())
        return found

    def tail(self, fields: list[str], name: str) -> Query:
        test: Test = lambda read: True
        order: list[tuple[str, bool]] = []
        limit = 2000
        if self.peek() == "WHERE":
            self.take()
            test = self.any()
        if self.peek() == "ORDER":
            self.take()
            self.take("BY")
            order = self.order()
        if self.peek() == "LIMIT":
            self.take()
            limit = int(self.take()[1])
        if self.tokens[0][0] != "end":
            raise Malformed(f"unexpected {self.tokens[0][1]!r}")
        return Query(fields, name, test, self.paths, order, limit)

    def order(self) -> list[tuple[str, bool]]:
        found: list[tuple[str, bool]] = []
        while True:
            path = self.path()
            falling = self.peek() == "DESC"
            if self.peek() in ("ASC", "DESC"):
                self.take()
            if self.peek() == "NULLS":
                self.take()
                self.take("LAST")
            found.append((path, falling))
            if self.peek() != ",":
                return found
            self.take()

    def any(self) -> Test:
        tests = [self.all()]
        while self.peek() == "OR":
            self.take()
            tests.append(self.all())
        return lambda read: any(test(read) for test in tests)

    def all(self) -> Test:
        tests = [self.one()]
        while self.peek() == "AND":
            self.take()
            tests.append(self.one())
        return lambda read: all(test(read) for test in tests)

    def one(self) -> Test:
        if self.peek() == "(":
            self.take()
            inner = self.any()
            self.take(")")
            return inner
        path = self.path()
        operator = self.take("=", "!=", ">=", "LIKE", "IN")[1].upper()
        if operator == "IN":
            wanted = self.list()
            return lambda read: _fold(read(path)) in wanted
        value = self.value()
        match operator:
            case "=":
                return lambda read: _fold(read(path)) == _fold(value)
            case "!=":
                return lambda read: _fold(read(path)) != _fold(value)
            case ">=":
                return lambda read: bool(read(path)) and str(read(path))[:19] >= str(value)[:19]
        like = _like(str(value))
        return lambda read: bool(like.fullmatch(str(read(path) or "")))

    def list(self) -> list[Any]:
        self.take("(")
        found = [_fold(self.value())]
        while self.peek() == ",":
            self.take()
            found.append(_fold(self.value()))
        self.take(")")
        return found

    def value(self) -> Any:
        kind, text = self.take()
        match kind, text.lower():
            case "text", _:
                return re.sub(r"\\(.)", lambda f: _ESCAPES.get(f[1], f[1]), text[1:-1])
            case "time", _:
                return text
            case "number", _:
                return float(text)
            case "name", "true" | "false":
                return text.lower() == "true"
            case "name", "null":
                return None
        raise Malformed(f"not a value: {text!r}")


def _fold(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _like(pattern: str) -> re.Pattern[str]:
    """`%` and `_` are wild unless a backslash stands before them."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    return re.compile("".join(wild.get(p, re.escape(p[-1])) for p in parts), re.I | re.S)


def query(text: str) -> Query:
    """Read a SOQL query. Raises Malformed."""
    parser = _Parser(text)
    parser.take("SELECT")
    fields = parser.fields()
    parser.take("FROM")
    return parser.tail(fields, parser.name())


def search(text: str) -> tuple[list[str], Query]:
    """Read a SOSL search of phones: its terms, and what is to be returned. Raises Malformed."""
    found = _SOSL.match(text)
    if not found:
        raise Malformed("not a search")
    terms = found[1].split(" OR ")
    if not all(re.fullmatch(r"\w+", term) and len(term) > 1 for term in terms):
        raise Malformed("a term that is not escaped, or too short")
    parser = _Parser(found[3])
    return terms, parser.tail(parser.fields(), found[2])
