"""Where in HTML a variable stands: escaping makes it safe as text and between quotes only.

A small state machine after the HTML standard's tokenizer
(https://html.spec.whatwg.org/multipage/parsing.html#tokenization) reads the markup between the
pieces of Liquid. Branches are read one after the other, which is right as long as each leaves the
markup in the state it found it; one that does not is its author's own making, as all markup is.
"""

import re
from collections.abc import Callable, Sequence
from enum import Enum

from messaging.content.rendering.source import Piece


class Place(Enum):
    """What a piece of Liquid stands in."""

    CONTENT = "text"
    """Text between tags, where more markup may stand: escaping is all a value needs."""
    TEXT = "a comment, a style, or quotes"
    """The same, but markup there would not be read as such."""
    ADDRESS = "address"
    """The beginning of an attribute that holds an address."""
    BARE = "a tag, outside of quotes"
    """A value would be a new attribute."""
    SCRIPT = "a script"
    """Escaping does not help there."""


_ADDRESSES = frozenset(
    [
        "action",
        "background",
        "cite",
        "data",
        "formaction",
        "href",
        "longdesc",
        "manifest",
        "poster",
        "src",
        "xlink:href",
    ]
)
_RAW_TEXT = frozenset({"script", "style"})
_ENDS = {
    "script": re.compile("</script", re.IGNORECASE),
    "style": re.compile("</style", re.IGNORECASE),
    "-->": re.compile("-->"),
    ">": re.compile(">"),
}

# Conditional comments hold HTML that Outlook reads, so they are stepped into.
_CONDITION = re.compile(r"<!--\s*\[if [^\]<>]*\]>(?:<!-->)?|(?:<!--)?<!\[endif\]-->")
_TAG = re.compile(r"</?([a-zA-Z][^\s/>]*)?")
_ATTRIBUTE = re.compile(r"""([^\s"'>/=][^\s>/=]*)(?:\s*=\s*)?|["'=]|/""")
_BLANK = re.compile(r"\s*")
_UNQUOTED = re.compile(r"[^\s>]*")


def places(source: str, found: Sequence[Piece]) -> list[Place]:
    """Say for each piece of Liquid where it stands, and last, where the source ends."""
    reader = _Reader()
    result = []
    position = 0
    for piece in found:
        reader.read(source[position : piece.start])
        position = piece.end
        result.append(reader.place())
    reader.read(source[position:])
    return [*result, reader.place()]


class _Reader:
    """Reads markup bit by bit. `state` is the method that reads on."""

    def __init__(self) -> None:
        self.state: Callable[[str, int], int] = self._text
        self.tag = self.attribute = self.quote = self.until = ""
        self.begun = False
        """Whether the attribute's value has begun with something that is not Liquid."""

    def read(self, markup: str) -> None:
        position = 0
        while position < len(markup):
            position = self.state(markup, position)

    def place(self) -> Place:
        if self.state in (self._in_tag, self._unquoted):
            return Place.BARE
        if self.state == self._value:
            if self.attribute.startswith("on"):
                return Place.SCRIPT
            if self.attribute in _ADDRESSES and not self.begun:
                return Place.ADDRESS
        if self.state == self._until and self.until == "script":
            return Place.SCRIPT
        return Place.CONTENT if self.state == self._text else Place.TEXT

    def _text(self, markup: str, position: int) -> int:
        position = markup.find("<", position)
        if position < 0:
            return len(markup)
        if condition := _CONDITION.match(markup, position):
            return condition.end()
        if markup.startswith("<!--", position):
            self.state, self.until = self._until, "-->"
            return position + 4
        if markup.startswith(("<!", "<?"), position):
            self.state, self.until = self._until, ">"
            return position + 2
        tag = _TAG.match(markup, position)
        assert tag is not None  # it begins with `<`
        if not tag[1] and tag.end() < len(markup):
            return tag.end()  # a bare `<`
        self.tag = (tag[1] or "").lower() if not markup.startswith("</", position) else ""
        self.state = self._in_tag
        return tag.end()

    def _in_tag(self, markup: str, position: int) -> int:
        blank = _BLANK.match(markup, position)
        position = blank.end() if blank else position
        if markup.startswith(">", position):
            raw = self.tag in _RAW_TEXT
            self.state, self.until = (self._until, self.tag) if raw else (self._text, "")
            return position + 1
        attribute = _ATTRIBUTE.match(markup, position)
        if attribute is None:
            return position + 1
        self.attribute = (attribute[1] or "").lower()
        position = attribute.end()
        if attribute[0].rstrip().endswith("="):
            self.begun = False
            self.quote = markup[position : position + 1]
            self.state = self._value if self.quote in ('"', "'") and self.quote else self._unquoted
            return position + 1 if self.state == self._value else position
        return position

    def _value(self, markup: str, position: int) -> int:
        end = markup.find(self.quote, position)
        if end < 0:
            self.begun = self.begun or bool(markup[position:].strip())
            return len(markup)
        self.state = self._in_tag
        return end + 1

    def _unquoted(self, markup: str, position: int) -> int:
        value = _UNQUOTED.match(markup, position)
        end = value.end() if value else position
        if end < len(markup):
            self.state = self._in_tag
        return end

    def _until(self, markup: str, position: int) -> int:
        """Skip a comment, a declaration, a script or a style."""
        end = _ENDS[self.until].search(markup, position)
        if end is None:
            return len(markup)
        self.state = self._text
        return end.start() if self.until in _RAW_TEXT else end.end()
