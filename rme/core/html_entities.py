"""Character references of HTML (`&amp;`, `&#228;`) in texts from outside."""

import re
from html import unescape as _unescape
from html.entities import html5 as _CHARACTERS

# The largest code point has 7 digits, in hex 6, and zeros may lead. For more digits than Python
# reads as a number (4,300) the standard library raises ValueError.
_TOO_LONG = re.compile(r"&#(?:[0-9]{100}[0-9]*+|[xX][0-9a-fA-F]{100}[0-9a-fA-F]*+);?")
_LEGACY = frozenset(name for name in _CHARACTERS if not name.endswith(";"))
"""Names that are references even without `;`."""
_LEGACY_LENGTH = max(map(len, _LEGACY))
_NAMED = re.compile(r"&([0-9A-Za-z]++)(;?)")


def unescape(text: str) -> str:
    """Return a text with its references replaced by their characters; invalid ones by U+FFFD."""
    return _unescape(_TOO_LONG.sub("\N{REPLACEMENT CHARACTER}", text))


def unescape_attribute(value: str) -> str:
    """Return the value of an attribute with its references replaced, as `unescape` does for text.

    `&region=eu` stays: in an attribute, a name without `;` isn't a reference before `=`, a letter
    or a digit (https://html.spec.whatwg.org/multipage/parsing.html#named-character-reference-state).
    """
    return unescape(_NAMED.sub(_protect, value))


def _protect(reference: re.Match[str]) -> str:
    """Return a name, with its `&` escaped if the name isn't a reference here."""
    name, semicolon = reference.groups()
    if semicolon and f"{name};" in _CHARACTERS:
        return reference[0]
    lengths = range(min(len(name), _LEGACY_LENGTH), 0, -1)
    length = next((length for length in lengths if name[:length] in _LEGACY), None)
    if length is None:
        return reference[0]
    follows = reference.string[reference.start(1) + length : reference.start(1) + length + 1]
    is_text = follows == "=" or (follows.isascii() and follows.isalnum())
    return f"&amp;{reference[0][1:]}" if is_text else reference[0]
