"""The shapes of a page's elements: what axe's rules look at, without texts and addresses.

A page all of whose shapes were on pages before has nothing that was not checked there.
"""

import re
from html.parser import HTMLParser

_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr")
)
_NAMED_BY_MODEL = re.compile(r"(field|column|model|app)-")
_SEEN_BY_AXE = re.compile(r"role|type|aria-|href|tabindex|title|alt|scope|for|lang|hidden|disabled")
_FIELDS = frozenset(("input", "select", "textarea"))


class _Shapes(HTMLParser):
    def __init__(self, labels: set[str]) -> None:
        super().__init__()
        self.labels, self.found = labels, set[int]()
        self.open: list[tuple[str, int]] = [("", 0)]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        classes = [c for c in (given.get("class") or "").split() if not _NAMED_BY_MODEL.match(c)]
        names = sorted(name for name in given if _SEEN_BY_AXE.match(name))
        kind = (given.get("role"), given.get("type"), given.get("style"))
        labelled = tag in _FIELDS and (given.get("id") in self.labels or "aria-label" in given)
        shape = hash((self.open[-1][1], tag, *sorted(classes), *names, kind, labelled))
        self.found.add(shape)
        if tag not in _VOID:
            self.open.append((tag, shape))

    def handle_endtag(self, tag: str) -> None:
        if any(each == tag for each, _ in self.open):
            while self.open.pop()[0] != tag:
                pass

    def handle_data(self, data: str) -> None:
        if data.strip() and self.open[-1][0] not in ("script", "style", "title"):
            self.found.add(hash((self.open[-1][1], "text")))


def shapes_of(html: str) -> set[int]:
    """Return the shapes of the elements, each with those of all elements around it."""
    parser = _Shapes(set(re.findall(r'for="([^"]+)"', html)))
    parser.feed(html)
    return parser.found
