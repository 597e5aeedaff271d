"""YAML front matter: values between two lines of `---`, and a body after them.

Scalars are those of JSON, as in YAML 1.2's core schema: `no` and `2026-01-01` are texts. Anchors,
tags and repeated keys are refused. What is written is read back as it was.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import yaml
from django.utils.translation import gettext as _

_FENCE = re.compile(r"^---[ \t]*$", re.MULTILINE)
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,3})?")
_WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None, "": None}
LENGTH = 600_000
"""The most characters of a front matter."""
DEPTH = 30
_TEXT = "tag:yaml.org,2002:str"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The parser of libyaml, where it was built with PyYAML: thirty times as fast."""


class FrontMatterError(Exception):
    """What is no front matter, with its line in the file."""

    def __init__(self, message: str, line: int = 1, name: str = "") -> None:
        self.message, self.line, self.name = message, line, name
        super().__init__(message, line, name)


@dataclass(slots=True)
class Document:
    """The values and the body of a file."""

    values: dict[str, object]
    body: str
    body_line: int
    lines: dict[str, int] = field(default_factory=dict)
    """The first line of each value, by its names with points between."""
    blocks: set[str] = field(default_factory=set)
    """The texts whose lines are lines of the file."""


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, and no references."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def text(self, text: str) -> yaml.ScalarNode:
        return self.represent_scalar(_TEXT, text, style="|" if "\n" in text else None)


class _QuotedDumper(_Dumper):
    """Writes texts between quotes, with an escape for each character that is not ASCII."""

    def text(self, text: str) -> yaml.ScalarNode:
        return self.represent_scalar(_TEXT, text, style='"')


for _each in (_Dumper, _QuotedDumper):
    _each.add_representer(str, _each.text)


def write(values: Mapping[str, object], body: str) -> str:
    """Return the text of a file. The body ends with a line break, which `parse` takes away."""
    text = _head(values, _Dumper, is_unicode=True)
    try:
        is_exact = parse(text).values == values
    except FrontMatterError:
        is_exact = False
    if not is_exact:  # a character that a block does not keep
        text = _head(values, _QuotedDumper, is_unicode=False)
    return text + (f"{body}\n" if body else "")


def _head(values: Mapping[str, object], dumper: type[_Dumper], *, is_unicode: bool) -> str:
    head = yaml.dump(
        dict(values), Dumper=dumper, sort_keys=False, allow_unicode=is_unicode, width=10**9
    )
    return f"---\n{head}---\n"


def parse(text: str) -> Document:
    """Return the values and the body of a file. Raise FrontMatterError."""
    opening = _FENCE.match(text)
    closing = _FENCE.search(text, opening.end() + 1) if opening else None
    if opening is None or closing is None:
        raise FrontMatterError(_("does not begin with front matter between two lines of ---"))
    head = text[opening.end() + 1 : closing.start()]
    if len(head) > LENGTH:
        raise FrontMatterError(
            _("the front matter is longer than %(length)s characters") % {"length": f"{LENGTH:,}"}
        )
    body = text[closing.end() + 1 :].removesuffix("\n")
    document = Document({}, body, text.count("\n", 0, closing.end()) + 2)
    try:
        _Reader(document, yaml.parse(head, Loader=_LOADER)).read()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else 1
        raise FrontMatterError(error.problem or _("is not YAML"), line) from error
    except yaml.YAMLError as error:  # a character that YAML does not have
        raise FrontMatterError(
            _("is not YAML: %(problem)s") % {"problem": str(error).splitlines()[0]}
        ) from error
    return document


class _Reader:
    """Reads the events of a front matter into the values of a document."""

    def __init__(self, document: Document, events: Iterator[yaml.Event]) -> None:
        self.document, self.events = document, events

    def read(self) -> None:
        """Read the values. Raise FrontMatterError."""
        for event in self.events:
            if isinstance(event, yaml.MappingStartEvent) and not self.document.values:
                self.document.values = self._mapping("", 0)
            elif isinstance(event, yaml.NodeEvent):
                raise FrontMatterError(
                    _("the front matter must be names with values"), _line(event)
                )

    def _mapping(self, path: str, depth: int) -> dict[str, object]:
        values: dict[str, object] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent) or event.anchor or event.tag:
                raise FrontMatterError(_("a name is not a plain text"), _line(event), path)
            name = f"{path}.{event.value}" if path else event.value
            if event.value in values:
                raise FrontMatterError(_("appears twice"), _line(event), name)
            values[event.value] = self._value(next(self.events), name, depth + 1)
        return values

    def _value(self, event: yaml.Event, path: str, depth: int) -> object:
        line = _line(event)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise FrontMatterError(_("anchors and references are not supported"), line, path)
        if getattr(event, "tag", None):
            raise FrontMatterError(_("tags are not supported"), line, path)
        if depth > DEPTH:
            raise FrontMatterError(
                _("is nested deeper than %(depth)s") % {"depth": DEPTH}, line, path
            )
        self.document.lines[path] = line
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(path, depth)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[object] = []
            while not isinstance(item := next(self.events), yaml.SequenceEndEvent):
                items.append(self._value(item, f"{path}.{len(items)}", depth + 1))
            return items
        assert isinstance(event, yaml.ScalarEvent)  # the last kind of value
        if event.style in ("|", ">"):
            self.document.lines[path] = line + 1
            if event.style == "|":
                self.document.blocks.add(path)
        return event.value if event.style else _scalar(event.value)


def _line(event: yaml.Event) -> int:
    """Return the line of an event in the file: the first one is the fence."""
    return event.start_mark.line + 2 if event.start_mark else 1


def _scalar(text: str) -> object:
    """Return the value of a plain scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text
