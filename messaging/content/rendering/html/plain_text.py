"""Plain text from HTML, for emails whose template has HTML only."""

import re

from rme.core.html_entities import unescape, unescape_attribute

# A tag with its attributes; quoted values may contain `>`. Possessive quantifiers (`*+`) prevent
# backtracking, and an unclosed tag matches too, so that no character is read twice.
_TAG = re.compile(
    r"""(?P<comment><!--)
      | <!(?:\[endif\])?[^>]*+>?
      | <(?P<end>/?)(?P<name>[a-zA-Z][a-zA-Z0-9:-]*+)
        (?P<rest>(?:[^"'>]++|"[^"]*+"|'[^']*+')*)(?P<close>>)?
      | (?P<open><[!/a-zA-Z])""",
    re.VERBOSE,
)
_ATTRIBUTE = r"""(?:^|\s){}\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))"""
_HREF = re.compile(_ATTRIBUTE.format("href"), re.IGNORECASE)
_ALT = re.compile(_ATTRIBUTE.format("alt"), re.IGNORECASE)
_HIDDEN = re.compile(r"display\s*:\s*none", re.IGNORECASE)
_SPACE = re.compile(r"[ \t\r\n\f]+")
_GAPS = re.compile(r"\n{3,}")

_WITHOUT_TEXT = frozenset({"style", "script", "head", "title", "template"})
_BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "div",
        "dl",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "table",
        "ul",
    ]
)
_LINE_BREAKS = frozenset({"br", "dd", "dt", "tr"})
_CELLS = frozenset({"td", "th"})
_VOID = frozenset({"br", "col", "hr", "img", "input", "link", "meta", "wbr"})
_REMOVED = {
    "<!--": re.compile("-->"),
    "<script": re.compile(r"</script\s*>", re.IGNORECASE),
    "<style": re.compile(r"</style\s*>", re.IGNORECASE),
}
"""Elements that `strip_tags` removes with their content, and the pattern of their end."""


def from_html(html: str) -> str:
    """Return the text of HTML: blocks apart, `- ` before items, links as `text (url)`."""
    reader = _TextBuilder()
    position = 0
    while tag := _TAG.search(html, position):
        reader.text(html[position : tag.start()])
        position = tag.end()
        if tag["comment"]:
            end = html.find("-->", position - 2)
            position = len(html) if end < 0 else end + 3
        elif tag["open"] or (tag["name"] and not tag["close"]):
            position = len(html)  # a tag that never ends: no browser would show what follows
        elif tag["name"]:
            reader.tag(tag["name"].lower(), tag["end"] == "/", tag["rest"])
    reader.text(html[position:])
    return reader.result()


class _TextBuilder:
    """Collects text. `silent` is the name of the element whose content is left out, or empty."""

    __slots__ = ("depth", "link", "parts", "silent")

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.link: tuple[str, int] | None = (
            None  # the open link: its URL, and the index of its first part
        )
        self.silent = ""
        self.depth = 0

    def text(self, text: str) -> None:
        if text and not self.silent:
            self.parts.append(unescape(_SPACE.sub(" ", text)))

    def tag(self, name: str, end: bool, attributes: str) -> None:
        if self.silent:
            if name == self.silent:
                self.depth += -1 if end else 1
                if not self.depth:
                    self.silent = ""
        elif name in _WITHOUT_TEXT or ("none" in attributes.lower() and _HIDDEN.search(attributes)):
            if not end and name not in _VOID and not attributes.endswith("/"):
                self.silent, self.depth = name, 1
        elif name in _BLOCKS:
            self.parts.append("\n\n")
        elif name in _LINE_BREAKS:
            self.parts.append("" if end else "\n")
        elif name in _CELLS:
            self.parts.append(" ")
        elif name == "li":
            self.parts.append("" if end else "\n- ")
        elif name == "a":
            self._link(end, attributes)
        elif name == "img" and (alt := _ALT.search(attributes)):
            self.parts.append(_SPACE.sub(" ", _value(alt)))

    def _link(self, end: bool, attributes: str) -> None:
        if self.link is not None:  # another `<a>` closes it, as in a browser: links are not nested
            (address, start), self.link = self.link, None
            address = address.removeprefix("mailto:").removeprefix("tel:")
            content = "".join(self.parts[start:])
            label = content.strip()
            if label and address and label != address and not address.startswith("#"):
                leading, _, trailing = content.partition(label)
                self.parts[start:] = [f"{leading}{label} ({address}){trailing}"]
        if not end:
            href = _HREF.search(attributes)
            self.link = (_value(href).strip() if href else "", len(self.parts))

    def result(self) -> str:
        text = "".join(self.parts).replace("\xa0", " ")
        lines = [_SPACE.sub(" ", line).strip() for line in text.split("\n")]
        return _GAPS.sub("\n\n", "\n".join(lines)).strip() + "\n"


def _value(attribute: re.Match[str]) -> str:
    """Return the value of an attribute, whatever its quotes."""
    return unescape_attribute(attribute[1] or attribute[2] or attribute[3] or "")


def strip_tags(text: str) -> str:
    """Remove tags, comments, and scripts and styles with their content, in one pass."""
    parts: list[str] = []
    position = 0
    endless: set[str] = set()
    while (start := text.find("<", position)) >= 0:
        end = -1
        opening = text[start : start + 7].lower()
        for mark, close in _REMOVED.items():
            if opening.startswith(mark) and mark not in endless:
                closing = close.search(text, start)
                end = closing.end() if closing else -1
                if not closing:
                    endless.add(mark)  # searched once only, so that the time stays linear
        if end < 0:
            end = text.find(">", start) + 1
        if end <= 0:
            break
        parts.append(text[position:start])
        position = end
    parts.append(text[position:])
    return "".join(parts)
