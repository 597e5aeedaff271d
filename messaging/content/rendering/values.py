"""The values of a template: plain and bounded copies of the caller's data.

No object with attributes reaches a template, so a path cannot leave the data. A text that is marked
as safe (`Markup`, Django's `SafeString`) is copied as an ordinary text.
"""

import re
from collections.abc import Mapping, Sequence, Set
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from liquid.undefined import Undefined
from markupsafe import Markup, escape

from messaging.content.rendering.errors import RenderFailed, RenderLimit
from messaging.content.rendering.limits import DATA_LIMIT, LIST_LIMIT, NUMBER_LIMIT
from messaging.domain.sentences import sentence

_DEPTH = 12
_EACH = 8
"""The weight of a value besides its characters."""
_ATOMS = frozenset({bool, type(None), float, datetime, date})
_SURROGATE = re.compile("[\ud800-\udfff]")


def snapshot(data: Mapping[str, Any], limit: int = DATA_LIMIT) -> dict[str, object]:
    """Return a copy of the caller's data in plain values.

    Mappings become dicts and sequences lists; a Decimal becomes text, so that 19.90 stays 19.90.
    Raises RenderFailed for other types, RenderLimit if the data weighs more than `limit`.
    """
    return _Copy(limit).mapping(data, 0)


class _Copy:
    __slots__ = ("left",)

    def __init__(self, limit: int) -> None:
        self.left = limit

    def _pay(self, weight: int) -> None:
        self.left -= weight
        if self.left < 0:
            raise RenderLimit(sentence("the data is too large"))

    def mapping(self, source: Mapping[Any, Any], depth: int) -> dict[str, object]:
        if depth > _DEPTH:
            raise RenderLimit(sentence("the data is nested too deep"))
        copied: dict[str, object] = {}
        weight = 0
        for name, value in source.items():
            key = name if type(name) is str else self._key(name)
            weight += len(key) + _EACH
            kind = type(value)
            if kind is str and value.isascii():
                weight += len(value)
                copied[key] = value
            elif kind in _ATOMS:
                copied[key] = value
            elif kind is dict:  # tested first: isinstance(…, Mapping) is slow
                copied[key] = self.mapping(value, depth + 1)
            else:
                copied[key] = self.value(value, depth + 1)
        self._pay(weight)
        return copied

    def value(self, value: object, depth: int) -> object:
        if type(value) in _ATOMS:
            return value
        if isinstance(value, str):
            self._pay(len(value))
            return _SURROGATE.sub("\ufffd", str.__str__(value))
        if isinstance(value, Mapping):
            return self.mapping(value, depth)
        if isinstance(value, Sequence | Set) and not isinstance(value, bytes | bytearray):
            return self._sequence(value, depth)
        return self._atom(value)

    def _sequence(self, source: Sequence[object] | Set[object], depth: int) -> list[object]:
        if depth > _DEPTH:
            raise RenderLimit(sentence("the data is nested too deep"))
        self._pay(len(source) * _EACH)
        return [self.value(item, depth + 1) for item in source]

    def _key(self, key: object) -> str:
        if isinstance(key, str | int):
            return str.__str__(key) if isinstance(key, str) else str(int(key))
        raise RenderFailed(
            sentence("a %(type)s cannot be a name in the data", type=type(key).__name__)
        )

    def _atom(self, value: object) -> object:
        if isinstance(value, int):
            if abs(value) > NUMBER_LIMIT:
                raise RenderLimit(sentence("a number in the data is too large"))
            return int(value)
        if isinstance(value, float):
            return float(value)
        if isinstance(value, datetime | date):
            return value
        if isinstance(value, Decimal | UUID | time):
            self._pay(40)
            return str(value)
        raise RenderFailed(
            sentence("a %(type)s cannot be used in a template", type=type(value).__name__)
        )


def weigh(value: object, limit: int) -> int:
    """Return the weight of a value: its characters, and a constant for each value in it.

    Raises RenderLimit above the limit. Shared parts count each time they occur, as each occurrence
    costs when it is written or compared. The limit also bounds this loop itself.
    """
    total = 0
    pending = [value]
    while pending:
        item = pending.pop()
        total += _EACH
        if isinstance(item, str):
            total += len(item)
        elif isinstance(item, list | tuple):
            total += len(item)
            pending.extend(item)
        elif isinstance(item, dict):
            total += len(item)
            pending.extend(item)
            pending.extend(item.values())
        if total > limit:
            raise RenderLimit(sentence("a value is too large"))
    return total


def text_of(value: object) -> str:
    """Return a value as Liquid writes it; a list is its items without a separator."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return joined(value, "")
    if isinstance(value, range):
        return f"{value.start}..{value.stop - 1}"
    return str(value)


def joined(items: Sequence[object], glue: str) -> str:
    """Join items as texts; the result is markup if the glue is. Raises RenderLimit."""
    room = DATA_LIMIT
    pieces = []
    for item in items:
        piece = text_of(item)
        room -= len(piece) + len(glue)
        if room < 0:
            raise RenderLimit(sentence("a list that joins to too long a text"))
        pieces.append(piece)
    return glue.join(pieces)


def html_of(value: object) -> str:
    """Return a value as Liquid writes it into HTML: escaped, except the template's own markup."""
    if isinstance(value, list | tuple):
        return joined(value, Markup(""))
    return str(escape(text_of(value)))


def flatten(value: object) -> list[object]:
    """Return the input of a list filter: a flat list, or one value as a list."""
    if isinstance(value, range):
        return list(value)
    if isinstance(value, Undefined):
        return list(value)
    if not isinstance(value, list | tuple):
        return [value]
    items: list[object] = []
    for item in value:
        if isinstance(item, list | tuple):
            items.extend(flatten(item))
        else:
            items.append(item)
        if len(items) > LIST_LIMIT:
            raise RenderLimit(sentence("a list of more than %(list_limit)s", list_limit=LIST_LIMIT))
    return items
