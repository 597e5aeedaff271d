"""Character references of HTML (`&amp;`, `&#228;`) in texts from outside."""

import re
from html import unescape as _unescape

# The largest code point has 7 digits, in hex 6, and zeros may lead. For more digits than Python
# reads as a number (4,300) the standard library raises ValueError.
_TOO_LONG = re.compile(r"&#(?:[0-9]{100}[0-9]*+|[xX][0-9a-fA-F]{100}[0-9a-fA-F]*+);?")


def unescape(text: str) -> str:
    """Return a text with its references replaced by their characters; invalid ones by U+FFFD."""
    return _unescape(_TOO_LONG.sub("\N{REPLACEMENT CHARACTER}", text))
