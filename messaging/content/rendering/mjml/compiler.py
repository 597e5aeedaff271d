"""The MJML compiler, which leaves Liquid unchanged.

MJML is XML to its compiler, so a `<` or a quote in Liquid would end the text or attribute it is in.
Therefore each piece of Liquid is replaced by a placeholder, which is a valid name in text,
attributes and CSS, and restored afterwards. If the compiler drops one, that is an error with its
line. Nothing is loaded: there is no loader for `mj-include`, no remote or local style sheet, and no
web font unless the author names one (`mj-font`).

The compiler recurses in native code, where deep markup overflows the stack and ends the process. So
the depth is checked first. Its cost is bounded by the length of the source (0.1 s); the cost of the
CSS inliner is not, so it runs in a process of its own (`inliner`). Workers never compile.
"""

import re
from collections.abc import Callable, Sequence
from hashlib import blake2b
from itertools import count

from mjml import mjml2html

from messaging.content.rendering.errors import TemplateSyntax, syntax_at
from messaging.content.rendering.limits import SOURCE_LIMIT
from messaging.content.rendering.mjml.inliner import InlineFailed, inlined
from messaging.content.rendering.source import Piece, pieces

MJML_LIMIT = 300_000
INLINE_LIMIT = 30_000
"""Characters of CSS to inline: the cost is rules times elements."""
HTML_LIMIT = SOURCE_LIMIT
"""The most characters of the HTML: a longer one can't be an email."""
_DEPTH = 40
_HTML_DEPTH = 400

_VOID = re.compile("area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr")
_TAG = re.compile(
    r"""(?P<open><!--(?!\[if)|<!\[CDATA\[)|<[!?]
      | <(?P<end>/?)(?P<name>[a-zA-Z][^\s/<>]*+)(?:[^<>"']++|"[^"]*+"|'[^']*+')*(?P<close>>)?
      | (?P<bare><)""",
    re.VERBOSE,
)
_STYLE = re.compile(r"<mj-style([^<>]*)>")
_INLINE = re.compile(r"""\sinline\s*=\s*["']inline["']""")
_OPENING = re.compile(r"<!--(?>.*?(?:-->|\Z))|<([a-zA-Z][^\s/<>]*+)([^<>]*+)>", re.DOTALL)
_NUMBER = "data-rme"
_NUMBERED = re.compile(rf'\s{_NUMBER}="(\d+)"')
_STYLED = re.compile(r'\sstyle="([^"]*)"')
_HEAD_SPACE = re.compile(r">[ \t](?=\s*<)")
_POSITION = re.compile(r"position (\d+)")


def compile_mjml(source: str) -> str:
    """Return the HTML of an MJML source. Raises TemplateSyntax."""
    if len(source) > MJML_LIMIT:
        raise TemplateSyntax(f"longer than {MJML_LIMIT} characters")
    placeholders = _Placeholders(source)
    _check_depth(placeholders.text, _DEPTH, placeholders)
    markup, css = _inline_styles(placeholders)
    html = _native(lambda: _mjml2html(markup), placeholders)
    _check_length(html)
    if css:
        html = _inlined(html, css)
        _check_length(html)
    return placeholders.restored(html)


def _check_length(html: str) -> None:
    if len(html) > HTML_LIMIT:
        raise TemplateSyntax(f"compiles to more than {HTML_LIMIT} characters of HTML")


class _Placeholders:
    """A source with placeholders for its Liquid. Liquid comments are removed."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.found = [piece for piece in pieces(source) if piece.name != "comment"]
        self.prefix = _unused_prefix(source)
        self._pattern = re.compile(rf"{self.prefix}(\d+)x")
        self.text = self._replace(pieces(source))

    def _replace(self, liquid_pieces: Sequence[Piece]) -> str:
        parts = []
        position = number = 0
        for piece in liquid_pieces:
            parts.append(self.source[position : piece.start])
            position = piece.end
            if piece.name == "comment":
                parts.append("\n" * self.source.count("\n", piece.start, piece.end))
            else:
                parts.append(f"{self.prefix}{number}x")
                number += 1
        return "".join([*parts, self.source[position:]])

    def restored(self, html: str) -> str:
        """Return HTML with the Liquid restored. Raises TemplateSyntax if a piece is missing."""
        numbers: set[int] = set()

        def liquid(match: re.Match[str]) -> str:
            number = int(match[1])
            numbers.add(number)
            piece = self.found[number]
            return self.source[piece.start : piece.end]

        restored = self._pattern.sub(liquid, html)
        for number, piece in enumerate(self.found):
            if number not in numbers:
                raise syntax_at("MJML does not keep what stands here", self.source, piece.start)
        return restored

    def error(self, message: str, position: int) -> TemplateSyntax:
        """Return the error for a position in the source with placeholders."""
        preceding = self.text[:position]
        placeholder_count = len(self._pattern.findall(preceding))
        hidden = sum(
            self.source.count("\n", p.start, p.end) for p in self.found[:placeholder_count]
        )
        line = preceding.count("\n") + hidden + 1
        return TemplateSyntax(message, line, position - preceding.rfind("\n"))


def _unused_prefix(source: str) -> str:
    """Return a name that does not occur in the source: a digest of it."""
    return f"lqd{blake2b(source.encode(errors='replace'), digest_size=8).hexdigest()}n"


def _check_depth(markup: str, limit: int, placeholders: _Placeholders) -> None:
    """Check the nesting of markup. Raises TemplateSyntax if it is too deep, or not markup.

    Depth is counted both as the compiler does (any end tag closes the open element) and as HTML
    does (it closes the element of its name). Errors name a position in the source; markup from
    the compiler has no position there.
    """
    position = level = 0
    within: list[str] = []
    while tag := _TAG.search(markup, position):
        position = tag.end()
        if tag["bare"] or (tag["name"] and not tag["close"]):
            raise placeholders.error("a tag that never ends", tag.start())
        if tag["open"]:
            # `<!-->` is a complete comment. The content of a condition for Outlook is markup.
            position = markup.find("-->" if tag["open"] == "<!--" else "]]>", position - 2)
            if position < 0:
                raise placeholders.error("a comment that never ends", tag.start())
        name = tag["name"] or ""
        if tag["end"]:
            level = max(level - 1, 0)
            while name in within and within.pop() != name:
                pass  # elements that were left open end with it
        elif name and not tag[0].endswith("/>") and not _VOID.fullmatch(name):
            level += 1
            within.append(name)
        if max(level, len(within)) > limit:
            raise placeholders.error(f"nested more than {limit} deep", tag.start())


def _inline_styles(placeholders: _Placeholders) -> tuple[str, str]:
    """Remove `<mj-style inline="inline">`, which the compiler would leave in the head.

    Returns the markup without it, and the CSS.
    """
    markup, css = [], []
    position = 0
    for style in _STYLE.finditer(placeholders.text):
        if style.start() < position or not _INLINE.search(style[1]):
            continue
        end = placeholders.text.find("</mj-style>", style.end())
        if end < 0:
            break
        markup.append(placeholders.text[position : style.start()])
        css.append(placeholders.text[style.end() : end])
        position = end + len("</mj-style>")
        # Replaced by a comment of the same length, so that positions stay those of the source.
        markup.append(f"<!--{' ' * (position - style.start() - 7)}-->")
    sheet = "\n".join(css)
    if len(sheet) > INLINE_LIMIT:
        raise TemplateSyntax(f"more than {INLINE_LIMIT} characters of CSS to put inline")
    return "".join([*markup, placeholders.text[position:]]), sheet


def _mjml2html(markup: str) -> str:
    # In the head the compiler accepts white space between tags only if it begins with a line break.
    start = max(markup.find("<mj-head>"), 0)
    end = max(markup.find("</mj-head>", start), start)
    head = _HEAD_SPACE.sub(">\n", markup[start:end])
    return str(mjml2html(markup[:start] + head + markup[end:], fonts={}))


def _inlined(html: str, css: str) -> str:
    """Put CSS into style attributes, and change nothing else.

    The inliner rewrites the whole document as a browser would parse it, and moves content of a
    table that is in no cell (as with `mj-raw` and Liquid) out of the table. So every tag gets a
    number, and only the styles are taken from the inliner's result.
    """
    _check_depth(html, _HTML_DEPTH, _Placeholders(""))
    numbered = _each_tag(html, lambda number, tag: f'<{tag[1]} {_NUMBER}="{number}"{tag[2]}>')
    try:
        styled = inlined(numbered, css, HTML_LIMIT + len(numbered))
    except InlineFailed as error:
        raise TemplateSyntax(str(error)) from error
    styles: dict[int, str] = {}
    for attributes in re.findall(r"<[a-z][^<>]*>", styled):
        number, style = _NUMBERED.search(attributes), _STYLED.search(attributes)
        if number and style:
            styles.setdefault(int(number[1]), style[1])
    return _each_tag(html, lambda number, tag: _styled(tag, styles.get(number, "")))


def _each_tag(html: str, change: Callable[[int, re.Match[str]], str]) -> str:
    """Replace every opening tag outside comments by the result of `change(number, tag)`."""
    numbers = count()
    return _OPENING.sub(lambda tag: change(next(numbers), tag) if tag[1] else tag[0], html)


def _styled(tag: re.Match[str], style: str) -> str:
    current = _STYLED.search(tag[0])
    if not style or (current and current[1] == style):
        return tag[0]
    if current:
        return tag[0].replace(current[0], f' style="{style}"', 1)
    return f'<{tag[1]} style="{style}"{tag[2]}>'


def _native(call: Callable[[], str], placeholders: _Placeholders) -> str:
    """Call a native library. Any exception, even a panic, becomes a TemplateSyntax."""
    try:
        return call()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        match = _POSITION.search(str(error))
        position = int(match[1]) if match else 0
        position = len(placeholders.text) - len(placeholders.text[position:].lstrip())
        liquid = match and placeholders.text.startswith(placeholders.prefix, position)
        message = "no Liquid can stand here" if liquid else str(error)[:200]
        raise placeholders.error(f"MJML: {message}", position) from error
