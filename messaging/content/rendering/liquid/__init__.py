"""Liquid: one text and its partials, parsed and rendered within limits.

`parse` and `render` are what the packages outside use; `filters.STANDARD` names the filters.
"""

from messaging.content.rendering.liquid.text import Text, parse, render

__all__ = ["Text", "parse", "render"]
