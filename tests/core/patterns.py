"""All regular expressions of the code, and texts that would keep each busy."""

import ast
import importlib
import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from re import _compiler as compiler  # type: ignore[attr-defined]
from re import _constants as kinds  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGES = ("rme", "messaging", "push", "bot")
FUNCTIONS = frozenset(
    ["compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"]
)
ANCHORED = frozenset(["match", "fullmatch"])
"""What tries a pattern at one place alone; all else tries it at every place of a text."""
_REPEATS = (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT)
_SIGNS = " \n\t" + string.ascii_letters + string.digits + string.punctuation + "\0\x85é…😀\ud800"
_WIDTH = 4
"""How many neighbouring parts of a pattern make a pump together."""


@dataclass(frozen=True)
class Call:
    """A call of `re` in the code: where, what it does there, and with which pattern.

    `pattern` is None where only the running code knows it.
    """

    path: str
    source: str
    methods: frozenset[str]
    pattern: re.Pattern[Any] | None = field(repr=False)

    def __str__(self) -> str:
        return f"{self.path}: {self.source}"

    @property
    def anchored(self) -> bool:
        return bool(self.methods) and self.methods <= ANCHORED


def modules() -> Iterator[tuple[Path, ModuleType]]:
    """Go through the modules of the code that name `re`, imported.

    Others are not imported: `rme.asgi`, for example, bounds the process that imports it.
    """
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if re.search(r"\bre\b", path.read_text()):
                parts = path.relative_to(ROOT).with_suffix("").parts
                yield path, importlib.import_module(".".join(parts).removesuffix(".__init__"))


@cache
def calls() -> tuple[Call, ...]:
    """Return every call of `re` in the code."""
    return tuple(call for path, module in modules() for call in _calls(path, module))


def _calls(path: Path, module: ModuleType) -> Iterator[Call]:
    tree = ast.parse(path.read_text())
    named = {
        id(node.value): node.targets[0].id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module="re"):
                raise AssertionError(f"{path}: write re.…, so that its patterns are found")
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=function)):
                if function in FUNCTIONS:
                    methods = {function}
                    if function == "compile":
                        methods = _methods(tree, named.get(id(node), ""))
                    place, source = str(path.relative_to(ROOT)), ast.unparse(node)
                    yield Call(place, source, frozenset(methods), _pattern(node, module))


def _methods(tree: ast.Module, name: str) -> set[str]:
    """Return what a module does with the pattern of a name; nothing if that cannot be seen."""
    uses = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name]
    called = [
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == name
    ]
    return set(called) if len(called) == len(uses) - 1 else set()


def _pattern(call: ast.Call, module: ModuleType) -> re.Pattern[Any] | None:
    """Compile a call's pattern as its module would; None if it depends on more than that."""
    function = call.func.attr  # type: ignore[attr-defined]
    flags = [word.value for word in call.keywords if word.arg == "flags"]
    flags += call.args[1:2] if function == "compile" else []
    try:
        pattern, *flag = [
            eval(compile(ast.Expression(node), "pattern", "eval"), vars(module))
            for node in (call.args[0], *flags)
        ]
    except NameError:
        return None
    return re.compile(pattern, *flag)


def killers(pattern: re.Pattern[Any]) -> list[tuple[str, str, str]]:
    """Return (head, pump, tail): texts made of a pattern's own parts, the pump many times.

    Each part of the pattern is a pump, alone and with those after it, behind a text that leads to
    it, and before something that keeps the whole from matching. So is each character that one of
    its classes knows, one for all that the same classes know.
    """
    source = pattern.pattern
    source = source if isinstance(source, str) else source.decode("latin-1")
    flags = pattern.flags & ~(re.DEBUG | re.LOCALE)
    tree = parser.parse(source, flags)
    signs = _Signs(tree, flags)
    found = {("", sign): None for sign in signs.kinds}
    for head, pump in _pumps(tree, "", signs):
        found |= {(head, pump): None, ("", pump): None, (head, pump[:1]): None}
    return [(head, pump, tail) for head, pump in found if pump for tail in ("", "\0")]


class _Signs:
    """The characters that a pattern tells apart."""

    def __init__(self, tree: Any, flags: int) -> None:
        self.tree, self.flags = tree, flags
        tests = [self._test(node) for node in _nodes(tree) if not _inner(node)]
        tests = [test for test in tests if test is not None]
        found: dict[tuple[bool, ...], str] = {}
        for sign in _SIGNS:
            found.setdefault(tuple(bool(test.fullmatch(sign)) for test in tests), sign)
        self.kinds = list(found.values())

    def _test(self, node: tuple[Any, Any]) -> re.Pattern[str] | None:
        if node[0] not in (kinds.LITERAL, kinds.NOT_LITERAL, kinds.ANY, kinds.IN):
            return None
        made = compiler.compile(parser.SubPattern(self.tree.state, [node]), self.flags)
        assert isinstance(made, re.Pattern)
        return made

    def of(self, node: tuple[Any, Any]) -> str:
        """Return a character that a part of one character matches."""
        test = self._test(node)
        if test is None:
            return ""
        if node[0] is kinds.LITERAL:
            return chr(node[1])
        return next((sign for sign in _SIGNS if test.fullmatch(sign)), "")


def _nodes(tree: Any) -> Iterator[tuple[Any, Any]]:
    for node in tree:
        yield node
        for inner in _inner(node):
            yield from _nodes(inner)


def _inner(node: tuple[Any, Any]) -> Sequence[Any]:
    kind, value = node
    if kind is kinds.BRANCH:
        return list(value[1])
    if kind in _REPEATS:
        return [value[2]]
    if kind is kinds.SUBPATTERN:
        return [value[3]]
    if kind is kinds.ATOMIC_GROUP:
        return [value]
    if kind in (kinds.ASSERT, kinds.ASSERT_NOT):
        return [value[1]]
    return []


def _pumps(tree: Any, head: str, signs: _Signs) -> Iterator[tuple[str, str]]:
    units: list[tuple[str, list[Any]]] = []  # what each part matches; a word is one part
    for node in tree:
        text = _sample(node, signs)
        if node[0] is kinds.LITERAL and units and units[-1][1] == []:
            units[-1] = (units[-1][0] + text, [])
        else:
            units.append((text, [] if node[0] is kinds.LITERAL else [node]))
    parts = [text for text, _ in units]
    for start, (_, nodes) in enumerate(units):
        lead = head + "".join(parts[:start])
        for end in {*range(start + 1, min(start + _WIDTH, len(parts)) + 1), len(parts)}:
            yield lead, "".join(parts[start:end])
        for node in nodes:
            for inner in _inner(node):
                yield from _pumps(inner, lead, signs)


def _sample(node: tuple[Any, Any], signs: _Signs) -> str:
    """Return a short text that a part matches."""
    kind, value = node
    if kind in _REPEATS:
        low, high, inner = value
        return _text(inner, signs) * max(low, 1) if high else ""
    if kind in (kinds.ASSERT, kinds.ASSERT_NOT):
        return ""
    inner = _inner(node)
    return _text(inner[0], signs) if inner else signs.of(node)


def _text(tree: Any, signs: _Signs) -> str:
    return "".join(_sample(node, signs) for node in tree)
