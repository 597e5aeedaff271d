"""The words that stand in a template without being marked for translation."""

import re
from collections.abc import Iterator

from django.template.base import Lexer, Token, TokenType

from tests.words.brackets import WORD, Page

BLANK = "\ufffc"
"""Stands for what a variable or a tag puts there."""
LITERAL = re.compile(r"""(?<!_\()(["'])(.*?)\1""")
NAMED = re.compile(r"[A-Z][a-z]+( |$|[.:,])|[a-z]+( [a-z]+)+$")
"""Literals that are words for people; others are names, classes and addresses."""
WITHOUT_WORDS = {"translate", "trans", "blocktranslate", "load", "url", "extends", "static"}
"""Tags whose literals are no words, or are marked by the tag."""


def unmarked(source: str) -> list[str]:
    """Return the unmarked words of a template, in their order."""
    html, texts = [], []
    for token in _outside_blocks(Lexer(source).tokenize()):
        if token.token_type is TokenType.TEXT:
            html.append(token.contents)
        elif token.token_type in (TokenType.VAR, TokenType.BLOCK):
            html.append(BLANK)
            texts += _literals(token)
    return [text for text in Page("".join(html)).texts if WORD.search(text)] + texts


def _outside_blocks(tokens: list[Token]) -> Iterator[Token]:
    """Yield the tokens that stand outside of marked blocks and comments."""
    end = ""
    for token in tokens:
        tag = token.split_contents()[0] if token.token_type is TokenType.BLOCK else ""
        if end:
            end = "" if tag == end else end
        elif tag in ("blocktranslate", "blocktrans", "comment"):
            end = f"end{tag}"
        else:
            yield token


def _literals(token: Token) -> Iterator[str]:
    is_block = token.token_type is TokenType.BLOCK
    if is_block and token.split_contents()[0] in WITHOUT_WORDS:
        return
    if "|pluralize" in token.contents:
        yield token.contents
    for found in LITERAL.finditer(token.contents):
        if NAMED.match(found[2]):
            yield found[2]
