"""Splitting a template's source into markup and Liquid, by the rules of python-liquid's lexer.

This runs before the lexer, whose regular expressions search for the end again at each opening:
`{% raw %}` repeated a hundred thousand times would take it hours. Here the end of each opening is
searched once, and one without an end is refused. The positions of Liquid are also needed for
HTML (`html/places.py`) and MJML (`mjml/compiler.py`).
"""

import re
from typing import NamedTuple

from messaging.content.rendering.errors import syntax_at
from messaging.content.rendering.limits import SOURCE_LIMIT
from messaging.domain.sentences import sentence

PIECE_LIMIT = 5_000
"""Liquid tags and outputs in one source."""
EXPRESSION_LIMIT = 4_000
"""Characters of one tag or output, and of one line in a `liquid` tag."""
LIQUID_LIMIT = 20_000
"""Characters of a `liquid` tag."""
TOTAL_LIMIT = 100_000
"""Characters of all Liquid in one source: parsing takes some microseconds a word."""

_OPEN = re.compile(r"\{[{%]")
_NAME = re.compile(r"-?\s*(#|\w+)")
_RAW = re.compile(r"-?\s*raw\s*-?\Z")
_END_RAW = re.compile(r"\{%-?\s*endraw\s*-?%\}")
_GAP = re.compile(r"\s{100}")


_CALL = re.compile(r"""\brender\s+(?:'([^']{1,64})'|"([^"]{1,64})")""")


class Piece(NamedTuple):
    """A piece of Liquid. `name` is that of a tag, `{{` for an output, `comment` for a comment."""

    start: int
    end: int
    name: str


def calls(source: str) -> set[str]:
    """Return the names of the partials that a source uses, and possibly some more."""
    return (
        {single_quoted or two for single_quoted, two in _CALL.findall(source)}
        if "render" in source
        else set()
    )


def pieces(source: str) -> list[Piece]:
    """Return all pieces of Liquid in a source.

    Raises TemplateSyntax for what would take the lexer long.
    """
    if len(source) > SOURCE_LIMIT:
        raise syntax_at(
            sentence("longer than %(source_limit)s characters", source_limit=SOURCE_LIMIT),
            source,
            0,
        )
    result: list[Piece] = []
    position = comments = comment = total = 0
    while opening := _OPEN.search(source, position):
        piece = _piece(source, opening.start())
        position = piece.end
        if piece.name == "raw":
            position = _end_of_raw(source, piece)
        if piece.name == "comment":
            comment = comment if comments else piece.start
            comments += 1
        elif piece.name == "endcomment" and comments:
            comments -= 1
            if not comments:
                result.append(Piece(comment, piece.end, "comment"))
        elif not comments:
            result.append(piece)
            total += piece.end - piece.start
        if len(result) > PIECE_LIMIT or total > TOTAL_LIMIT:
            raise syntax_at(sentence("too much Liquid in one text"), source, piece.start)
    if comments:
        raise syntax_at(sentence("'{%% comment %%}' is never closed"), source, comment)
    return result


def _piece(source: str, start: int) -> Piece:
    output = source[start + 1] == "{"
    close = source.find("}}" if output else "%}", start + 2)
    if close < 0:
        raise syntax_at(
            sentence("'%(source)s' is never closed", source=source[start : start + 2]),
            source,
            start,
        )
    inside = source[start + 2 : close]
    match = _NAME.match(inside)
    if not output and not match:
        raise syntax_at(sentence("a tag without a name"), source, start)
    name = "{{" if output or not match else match[1]
    _check_length(source, start, inside, name)
    if name == "raw" and not _RAW.match(inside):
        raise syntax_at(sentence("'raw' takes no arguments"), source, start)
    if name == "doc":  # python-liquid's own tag, whose end its lexer would look for
        raise syntax_at(sentence("unexpected tag 'doc'"), source, start)
    return Piece(start, close + 2, name)


def _check_length(source: str, start: int, inside: str, name: str) -> None:
    lines = inside.split("\n") if name == "liquid" else [inside]
    if len(inside) > LIQUID_LIMIT or max(map(len, lines)) > EXPRESSION_LIMIT:
        raise syntax_at(
            sentence(
                "more than %(expression_limit)s characters in one tag",
                expression_limit=EXPRESSION_LIMIT,
            ),
            source,
            start,
        )
    if len(inside) >= 100 and _GAP.search(inside):
        raise syntax_at(sentence("a hundred spaces in a tag"), source, start)


def _end_of_raw(source: str, piece: Piece) -> int:
    end = _END_RAW.search(source, piece.end)
    if end is None:
        raise syntax_at(sentence("'{%% raw %%}' is never closed"), source, piece.start)
    return end.end()
