"""Liquid: one text and its partials, parsed and rendered within limits.

`parse` and `render` are what the packages outside use, and `TAGS` and `FILTERS`, which are names.
"""

from messaging.content.rendering.liquid.environment import HTML, TAGS
from messaging.content.rendering.liquid.text import Text, parse, render

FILTERS = sorted(HTML.filters)

__all__ = ["FILTERS", "TAGS", "Text", "parse", "render"]
