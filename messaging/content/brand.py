"""An organization's colour on the pages of recipients, and what is readable with it.

Contrast is that of WCAG 2.2: text needs 4.5 to 1 (§1.4.3).
"""

import re
from dataclasses import dataclass

DEFAULT = "#1f4e79"
READABLE = 4.5
INK, PAPER = "#1b1b1b", "#ffffff"


@dataclass(frozen=True, slots=True)
class Brand:
    """A colour, the text that is readable on it, and its nearest that is readable on paper."""

    color: str
    on_color: str
    ink: str


def of(color: str) -> Brand:
    """Give what goes with a colour like `#1f4e79`; anything else counts as the default."""
    if not re.fullmatch("#[0-9a-fA-F]{6}", color):
        color = DEFAULT
    dark = contrast(color, INK) > contrast(color, PAPER)
    ink = color if contrast(color, PAPER) >= READABLE else INK
    return Brand(color, INK if dark else PAPER, ink)


def contrast(one: str, other: str) -> float:
    """Give the contrast of two colours, from 1 to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(color: str) -> float:
    channels = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
