"""Plain text from HTML: for mails whose template has no text of its own."""

import re
from html.parser import HTMLParser

_BREAKING = {"p", "div", "tr", "table", "ul", "ol", "h1", "h2", "h3", "h4", "blockquote", "hr"}
_SILENT = {"style", "script", "head", "title"}


class _Reader(HTMLParser):
    """Collects text: blocks on lines of their own, links as `text (address)`."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.links: list[str] = []
        self.silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT:
            self.silent += 1
        elif tag == "br":
            self.parts.append("\n")
        elif tag == "li":
            self.parts.append("\n- ")
        elif tag in _BREAKING:
            self.parts.append("\n\n")
        elif tag == "a":
            self.links.append(dict(attrs).get("href") or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self.silent = max(0, self.silent - 1)
        elif tag in _BREAKING:
            self.parts.append("\n\n")
        elif tag == "a" and self.links:
            address = self.links.pop()
            if address and not "".join(self.parts[-2:]).endswith(address):
                self.parts.append(f" ({address})")

    def handle_data(self, data: str) -> None:
        if not self.silent:
            self.parts.append(re.sub(r"\s+", " ", data))


def from_html(html: str) -> str:
    """Give the text of an HTML document."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    lines = [line.strip() for line in "".join(reader.parts).split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def strip_tags(text: str) -> str:
    """Take out what stands between `<` and `>`, in one pass."""
    kept: list[str] = []
    position = 0
    while (start := text.find("<", position)) >= 0:
        end = text.find(">", start)
        if end < 0:
            break
        kept.append(text[position:start])
        position = end + 1
    kept.append(text[position:])
    return "".join(kept)
