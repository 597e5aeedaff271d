"""Character references of HTML (`&amp;`, `&#228;`), as texts from outside have them."""

import re
from html import unescape as _unescape

# The largest code point has 7 digits, in hex 6; zeros may lead. Beyond what Python reads as a
# number (4,300 digits) the standard library raises ValueError.
_TOO_LONG = re.compile(r"&#(?:[0-9]{100}[0-9]*+|[xX][0-9a-fA-F]{100}[0-9a-fA-F]*+);?")


def unescape(text: str) -> str:
    """Return a text with its references as characters; what is no character is U+FFFD."""
    return _unescape(_TOO_LONG.sub("\N{REPLACEMENT CHARACTER}", text))
