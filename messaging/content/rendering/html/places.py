"""Places of variables in HTML: escaping makes them safe only as text and between quotes.

A small state machine after the HTML standard's tokenizer
(https://html.spec.whatwg.org/multipage/parsing.html#tokenization) reads the markup between the
pieces of Liquid. Branches (`if`, `else`) are read one after the other, which is right if each ends
in the state in which it began; the template's author is responsible for that, as for all markup.
"""

import re
from collections.abc import Callable, Sequence
from enum import Enum

from messaging.content.rendering.source import Piece


class Place(Enum):
    """The context of a piece of Liquid in HTML."""

    CONTENT = "text"
    """Text between tags, where markup is allowed: escaping makes a value safe."""
    TEXT = "a comment, a style, or quotes"
    """The same, but markup would not be interpreted there."""
    ADDRESS = "address"
    """The beginning of an attribute that holds a URL."""
    BARE = "a tag, outside of quotes"
    """A value would become an attribute."""
    SCRIPT = "a script"
    """Escaping does not make a value safe."""


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

# Conditional comments contain HTML for Outlook, so their content is read.
_CONDITION = re.compile(r"<!--\s*\[if [^\]<>]*\]>(?:<!-->)?|(?:<!--)?<!\[endif\]-->")
_TAG = re.compile(r"</?([a-zA-Z][^\s/>]*)?")
_ATTRIBUTE = re.compile(r"""([^\s"'>/=][^\s>/=]*)(?:\s*=\s*)?|["'=]|/""")
_BLANK = re.compile(r"\s*")
_UNQUOTED = re.compile(r"[^\s>]*")


def places(source: str, liquid_pieces: Sequence[Piece]) -> list[Place]:
    """Return the place of each piece of Liquid, and last the place of the end of the source."""
    reader = _Tokenizer()
    result = []
    position = 0
    for piece in liquid_pieces:
        reader.read(source[position : piece.start])
        position = piece.end
        result.append(reader.place())
    reader.read(source[position:])
    return [*result, reader.place()]


class _Tokenizer:
    """Reads markup piece by piece. `state` is the method that reads the next piece."""

    def __init__(self) -> None:
        self.state: Callable[[str, int], int] = self._text
        self.tag = self.attribute = self.quote = self.until = ""
        self.begun = False
        """Whether the attribute's value begins with something other than Liquid."""

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
