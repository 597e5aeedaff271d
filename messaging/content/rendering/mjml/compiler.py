"""MJML to HTML, with the Liquid in it left as it is.

MJML is XML to its compiler, so that a `<` or a quote in Liquid would end the text or attribute it
stands in. Each piece of Liquid is therefore replaced by a mark that is a name everywhere (in text,
attributes and CSS), and put back afterwards; one that the compiler lost is an error that names its
line, never a silent gap. Nothing is loaded: there is no loader for `mj-include`, no remote or local
style sheet, and no web font that the author did not ask for (`mj-font`).

The compiler recurses in native code, where deep markup overflows the stack and ends the process:
the depth is looked at first. What it costs is bounded by the length (0.1 s). The CSS inliner's cost
is not, so it has a process of its own (`inliner`). Workers never compile.
"""

import re
from collections.abc import Callable, Sequence
from hashlib import blake2b
from itertools import count

from messaging.content.rendering.errors import TemplateSyntax, syntax_at
from messaging.content.rendering.mjml.inliner import InlineFailed, inlined
from messaging.content.rendering.source import Piece, pieces

MJML_LIMIT = 300_000
INLINE_LIMIT = 30_000
"""Characters of CSS to be inlined: its cost is rules times elements."""
_DEPTH = 40
_HTML_DEPTH = 400

_VOID = re.compile("area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr")
_TAG = re.compile(
    r"""(?P<open><!--(?!\[if)|<!\[CDATA\[)|<[!?]
      | <(?P<end>/?)(?P<name>[a-zA-Z][^\s/<>]*+)(?:[^<>"']|"[^"]*+"|'[^']*+')*+(?P<close>>)?
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
    """Turn MJML into HTML. Raises TemplateSyntax."""
    if len(source) > MJML_LIMIT:
        raise TemplateSyntax(f"longer than {MJML_LIMIT} characters")
    marks = _Marks(source)
    _check_depth(marks.marked, _DEPTH, marks)
    markup, css = _inline_styles(marks)
    html = _native(lambda: _mjml2html(markup), marks)
    if css:
        html = _inlined(html, css)
    return marks.restored(html)


class _Marks:
    """A source with marks in place of its Liquid. Comments of Liquid are left out."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.found = [piece for piece in pieces(source) if piece.name != "comment"]
        self.sign = _sign(source)
        self._mark = re.compile(rf"{self.sign}(\d+)x")
        self.marked = self._replace(pieces(source))

    def _replace(self, found: Sequence[Piece]) -> str:
        parts = []
        position = number = 0
        for piece in found:
            parts.append(self.source[position : piece.start])
            position = piece.end
            if piece.name == "comment":
                parts.append("\n" * self.source.count("\n", piece.start, piece.end))
            else:
                parts.append(f"{self.sign}{number}x")
                number += 1
        return "".join([*parts, self.source[position:]])

    def restored(self, html: str) -> str:
        """Put the Liquid back. Raises TemplateSyntax if any was lost."""
        kept: set[int] = set()

        def liquid(match: re.Match[str]) -> str:
            number = int(match[1])
            kept.add(number)
            piece = self.found[number]
            return self.source[piece.start : piece.end]

        restored = self._mark.sub(liquid, html)
        for number, piece in enumerate(self.found):
            if number not in kept:
                raise syntax_at("MJML does not keep what stands here", self.source, piece.start)
        return restored

    def error(self, message: str, position: int) -> TemplateSyntax:
        """Make an error from a position among the marks."""
        before = self.marked[:position]
        done = len(self._mark.findall(before))
        hidden = sum(self.source.count("\n", p.start, p.end) for p in self.found[:done])
        line = before.count("\n") + hidden + 1
        return TemplateSyntax(message, line, position - before.rfind("\n"))


def _sign(source: str) -> str:
    """Give a name that does not occur in the source: it depends on all of it."""
    return f"lqd{blake2b(source.encode(errors='replace'), digest_size=8).hexdigest()}n"


def _check_depth(markup: str, limit: int, marks: _Marks) -> None:
    """Refuse markup that is nested too deep, or not markup. Raises TemplateSyntax.

    Counted as the compiler does, for which any end tag ends what is open, and as HTML does, where
    it ends what has its name. An error's place is one in the source: what came out of the compiler
    has none there.
    """
    position = level = 0
    within: list[str] = []
    while tag := _TAG.search(markup, position):
        position = tag.end()
        if tag["bare"] or (tag["name"] and not tag["close"]):
            raise marks.error("a tag that never ends", tag.start())
        if tag["open"]:
            # `<!-->` is a whole comment. What a condition for Outlook holds is no comment at all.
            position = markup.find("-->" if tag["open"] == "<!--" else "]]>", position - 2)
            if position < 0:
                raise marks.error("a comment that never ends", tag.start())
        name = tag["name"] or ""
        if tag["end"]:
            level = max(level - 1, 0)
            while name in within and within.pop() != name:
                pass  # what it leaves open ends with it
        elif name and not tag[0].endswith("/>") and not _VOID.fullmatch(name):
            level += 1
            within.append(name)
        if max(level, len(within)) > limit:
            raise marks.error(f"nested more than {limit} deep", tag.start())


def _inline_styles(marks: _Marks) -> tuple[str, str]:
    """Take out `<mj-style inline="inline">`, which the compiler leaves in the head."""
    markup, css = [], []
    position = 0
    for style in _STYLE.finditer(marks.marked):
        if style.start() < position or not _INLINE.search(style[1]):
            continue
        end = marks.marked.find("</mj-style>", style.end())
        if end < 0:
            break
        markup.append(marks.marked[position : style.start()])
        css.append(marks.marked[style.end() : end])
        position = end + len("</mj-style>")
        # A comment as long as it was, so that the compiler's positions stay those of the source.
        markup.append(f"<!--{' ' * (position - style.start() - 7)}-->")
    sheet = "\n".join(css)
    if len(sheet) > INLINE_LIMIT:
        raise TemplateSyntax(f"more than {INLINE_LIMIT} characters of CSS to put inline")
    return "".join([*markup, marks.marked[position:]]), sheet


def _mjml2html(markup: str) -> str:
    from mjml import mjml2html

    # In the head the compiler takes white space between tags only if it begins with a line break.
    start = max(markup.find("<mj-head>"), 0)
    end = max(markup.find("</mj-head>", start), start)
    head = _HEAD_SPACE.sub(">\n", markup[start:end])
    return str(mjml2html(markup[:start] + head + markup[end:], fonts={}))


def _inlined(html: str, css: str) -> str:
    """Put CSS into style attributes, and change nothing else.

    The inliner writes the whole document anew as a browser would read it, and moves what stands in
    a table but in no cell (as `mj-raw` and Liquid do) out of the table. So every tag gets a number,
    and only the styles are taken from what the inliner gives.
    """
    _check_depth(html, _HTML_DEPTH, _Marks(""))
    numbered = _each_tag(html, lambda number, tag: f'<{tag[1]} {_NUMBER}="{number}"{tag[2]}>')
    try:
        styled = inlined(numbered, css)
    except InlineFailed as error:
        raise TemplateSyntax(str(error)) from error
    styles: dict[int, str] = {}
    for attributes in re.findall(r"<[a-z][^<>]*>", styled):
        number, style = _NUMBERED.search(attributes), _STYLED.search(attributes)
        if number and style:
            styles.setdefault(int(number[1]), style[1])
    return _each_tag(html, lambda number, tag: _styled(tag, styles.get(number, "")))


def _each_tag(html: str, change: Callable[[int, re.Match[str]], str]) -> str:
    """Change every opening tag outside of comments; tags have numbers."""
    numbers = count()
    return _OPENING.sub(lambda tag: change(next(numbers), tag) if tag[1] else tag[0], html)


def _styled(tag: re.Match[str], style: str) -> str:
    before = _STYLED.search(tag[0])
    if not style or (before and before[1] == style):
        return tag[0]
    if before:
        return tag[0].replace(before[0], f' style="{style}"', 1)
    return f'<{tag[1]} style="{style}"{tag[2]}>'


def _native(call: Callable[[], str], marks: _Marks) -> str:
    """Call a native library; whatever it raises, a panic too, is a TemplateSyntax."""
    try:
        return call()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        found = _POSITION.search(str(error))
        position = int(found[1]) if found else 0
        position = len(marks.marked) - len(marks.marked[position:].lstrip())
        liquid = found and marks.marked.startswith(marks.sign, position)
        said = "no Liquid can stand here" if liquid else str(error)[:200]
        raise marks.error(f"MJML: {said}", position) from error
