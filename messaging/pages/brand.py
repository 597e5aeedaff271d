"""An organization's brand colour on recipients' pages, with readable text colours.

Contrast is computed as in WCAG 2.2, by which text needs 4.5 to 1 (§1.4.3).
"""

import re
from dataclasses import dataclass

DEFAULT = "#1f4e79"
MIN_CONTRAST = 4.5
DARK_TEXT, PAGE = "#1b1b1b", "#ffffff"


@dataclass(frozen=True, slots=True)
class Brand:
    """A colour, the text colour that is readable on it, and a text colour for a white page."""

    color: str
    on_color: str
    ink: str


def of(color: str) -> Brand:
    """Return the colours for a brand colour like `#1f4e79`; an invalid one is the default."""
    if not re.fullmatch("#[0-9a-fA-F]{6}", color):
        color = DEFAULT
    dark = contrast(color, DARK_TEXT) > contrast(color, PAGE)
    ink = color if contrast(color, PAGE) >= MIN_CONTRAST else DARK_TEXT
    return Brand(color, DARK_TEXT if dark else PAGE, ink)


def contrast(colour: str, background: str) -> float:
    """Return the contrast ratio of two colours, from 1 to 21."""
    low, high = sorted((_luminance(colour), _luminance(background)))
    return (high + 0.05) / (low + 0.05)


def _luminance(color: str) -> float:
    channels = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
