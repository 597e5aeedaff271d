"""The shapes of a page's elements: what axe's rules look at, without texts and addresses.

A part of a page all of whose shapes were on pages before has nothing that was not checked there.
"""

import re
from html.parser import HTMLParser

_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr")
)
_INERT = frozenset(("template", "noscript"))
"""Elements whose content is not in the document while scripts run."""
_NAMED_BY_MODEL = re.compile(r"(field|column|model|app)-")
_SEEN_BY_AXE = re.compile(r"role|type|aria-|href|tabindex|title|alt|scope|for|lang|hidden|disabled")
_FIELDS = frozenset(("input", "select", "textarea"))


class _Shapes(HTMLParser):
    def __init__(self, labels: set[str]) -> None:
        super().__init__()
        self.labels = labels
        self.elements: list[set[int]] = []
        """In the document's order: the shape of each element, and of a text in it."""
        self.open: list[tuple[str, int, set[int]]] = [("", 0, set())]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        around, outer, _ = self.open[-1]
        if around in _INERT:
            return
        given = dict(attrs)
        classes = [c for c in (given.get("class") or "").split() if not _NAMED_BY_MODEL.match(c)]
        names = sorted(name for name in given if _SEEN_BY_AXE.match(name))
        kind = (given.get("role"), given.get("type"), given.get("style"))
        labelled = tag in _FIELDS and (given.get("id") in self.labels or "aria-label" in given)
        shape = hash((outer, tag, *sorted(classes), *names, kind, labelled))
        self.elements.append({shape})
        if tag not in _VOID:
            self.open.append((tag, shape, self.elements[-1]))

    def handle_endtag(self, tag: str) -> None:
        if any(each == tag for each, *_ in self.open):
            while self.open.pop()[0] != tag:
                pass

    def handle_data(self, data: str) -> None:
        tag, shape, own = self.open[-1]
        if data.strip() and tag not in ("script", "style", "title", *_INERT):
            own.add(hash((shape, "text")))


def elements_of(html: str) -> list[set[int]]:
    """Return the shapes of a page's elements, in the document's order.

    A shape is one of all elements around it too. An element with a text has two.
    """
    parser = _Shapes(set(re.findall(r'for="([^"]+)"', html)))
    parser.feed(html)
    return parser.elements


def shapes_of(html: str) -> set[int]:
    """Return the shapes of all elements of a page."""
    return set().union(*elements_of(html))
