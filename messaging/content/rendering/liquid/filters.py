"""The filters of templates: Liquid's standard ones, each bounded.

Names and meanings follow the Liquid reference (https://shopify.dev/docs/api/liquid/filters). Most
are python-liquid's functions behind a guard. Those that cannot be bounded from outside are
implemented here: `join` (a list may repeat one long text), `split`, `strip_html` and `uniq`
(quadratic); and those that compute in decimals (`arithmetic`). There is no `safe` or `raw`: a
variable never becomes markup. Markup is only what the author writes, also in quotes
(`{{ "<br>" }}`) or between `capture` and `endcapture`.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from liquid.undefined import Undefined
from markupsafe import Markup, escape

from messaging.content.rendering.errors import RenderFailed, RenderLimit
from messaging.content.rendering.html.plain_text import strip_tags
from messaging.content.rendering.limits import (
    LIST_LIMIT,
    NUMBER_LIMIT,
    TEXT_LIMIT,
    WEIGHT_LIMIT,
)
from messaging.content.rendering.liquid import arithmetic
from messaging.content.rendering.meter import RenderMeter
from messaging.content.rendering.values import flatten, joined, text_of, weigh

Filter = Callable[..., object]

STANDARD = frozenset(
    [
        "abs",
        "append",
        "at_least",
        "at_most",
        "base64_decode",
        "base64_encode",
        "base64_url_safe_decode",
        "base64_url_safe_encode",
        "capitalize",
        "ceil",
        "compact",
        "concat",
        "date",
        "default",
        "divided_by",
        "downcase",
        "escape",
        "escape_once",
        "find",
        "find_index",
        "first",
        "floor",
        "has",
        "join",
        "last",
        "lstrip",
        "map",
        "minus",
        "modulo",
        "newline_to_br",
        "plus",
        "prepend",
        "reject",
        "remove",
        "remove_first",
        "remove_last",
        "replace",
        "replace_first",
        "replace_last",
        "reverse",
        "round",
        "rstrip",
        "size",
        "slice",
        "sort",
        "sort_natural",
        "split",
        "squish",
        "strip",
        "strip_html",
        "strip_newlines",
        "sum",
        "times",
        "truncate",
        "truncatewords",
        "uniq",
        "upcase",
        "url_decode",
        "url_encode",
        "where",
    ]
)
OPTIONS = {"default": frozenset({"allow_false"})}
"""Named arguments. Other filters take none: they would reach python-liquid's own parameters."""

_OF_TEXTS = frozenset({"append", "prepend", "remove", "remove_first", "remove_last"}) | {
    "replace",
    "replace_first",
    "replace_last",
}
"""Filters whose arguments are texts as well."""
_OF_TEXT = _OF_TEXTS | {
    *("base64_decode", "base64_encode", "base64_url_safe_decode", "base64_url_safe_encode"),
    *("capitalize", "downcase", "escape", "escape_once", "lstrip", "newline_to_br", "rstrip"),
    *("squish", "strip", "strip_newlines", "truncate", "truncatewords", "upcase"),
    *("url_decode", "url_encode"),
}
_OF_PROPERTIES = frozenset({"compact", "find", "find_index", "has", "map", "reject", "sort"}) | {
    *("sort_natural", "sum", "uniq", "where"),
}
"""Filters of lists whose argument names a property of the items."""
_DIGITS = 20
_DATE_LENGTH = 64
_FORMAT_LENGTH = 100
# Ruby's Date.parse reads the day first if the year has four digits, whatever the separator.
# One of two digits is the last part here, as in 05.01.26.
_DAY_FIRST = re.compile(
    r"(?<![\d/.:-])(?P<day>\d{1,2})(?P<mark>[/.-])(?P<month>\d{1,2})(?P=mark)"
    r"(?:(?P<year>\d{4})|(?<!-)(?P<short>\d{2}))(?![\d/.-])"
)


def bounded(filters: Mapping[str, Filter], *, html: bool) -> dict[str, Filter]:
    """Return python-liquid's standard filters behind their guards."""
    functions = {
        name: _textual(function, arguments=name in _OF_TEXTS) if name in _OF_TEXT else function
        for name, function in filters.items()
        if name in STANDARD
    }
    functions |= {"join": _join_html if html else _join_text}
    functions |= {"split": _split, "strip_html": _strip_html, "uniq": _uniq}
    functions["date"] = _dated(filters["date"])
    functions |= {
        "divided_by": arithmetic.divided_by,
        "modulo": arithmetic.modulo,
        "round": arithmetic.round_half_up,
    }
    if html:
        functions |= {name: _replacing(functions[name], cut) for name, cut in _CUTS.items()}
        for name in ("truncate", "truncatewords"):
            functions[name] = _ending(functions[name])
    return {name: _bounded(name, function) for name, function in functions.items()}


def _bounded(name: str, function: Filter) -> Filter:
    """Wrap a filter so that its input and result are checked and charged to the meter."""
    guard, extra_cost = _GUARDS.get(name), _EXTRA_COSTS.get(name)

    def call(meter: RenderMeter, value: object, *args: object, **options: object) -> object:
        meter.spend(2 + _cost(value) + (extra_cost(value) if extra_cost else 0))
        for argument in args:
            meter.spend(_cost(argument))
        if guard is not None:
            guard(value, *args)
        result = function(value, *args, **options)
        if type(result) is str:  # the usual case, and cheap to check
            if len(result) > TEXT_LIMIT:
                raise RenderLimit(f"a text of more than {TEXT_LIMIT} characters")
            return result
        meter.spend(_cost(result))
        return result

    return call


def _textual(function: Filter, *, arguments: bool) -> Filter:
    """Wrap a filter so that it gets texts as Liquid writes them: nil is empty, true is `true`."""

    def call(value: object, *args: object) -> object:
        texts = map(text_of, args) if arguments else args
        return function(text_of(value), *texts)

    return call


def _cost(value: object) -> int:
    """Return what a value may cost a filter, in fuel. Raises RenderLimit if it is too large."""
    if isinstance(value, str):
        if len(value) > TEXT_LIMIT:
            raise RenderLimit(f"a text of more than {TEXT_LIMIT} characters")
        return len(value) >> 5
    if isinstance(value, int | float):
        # Infinity compares too, and NaN never does: it passes and stays NaN.
        if abs(value) > NUMBER_LIMIT:
            raise RenderLimit("a number that is too great")
        return 0
    if isinstance(value, list | tuple):
        if len(value) > LIST_LIMIT:
            raise RenderLimit(f"a list of more than {LIST_LIMIT}")
        return weigh(value, WEIGHT_LIMIT) >> 6
    if isinstance(value, dict):
        return weigh(value, WEIGHT_LIMIT) >> 6
    return 1


def _guard_replace(value: object, old: object = "", new: object = "", *_: object) -> None:
    """Refuse a replacement that multiplies its text, before it is done."""
    _guard_text(value)
    text, part = text_of(value), text_of(old)
    times = text.count(part) if part else len(text) + 1
    if times * len(text_of(new)) > TEXT_LIMIT:
        raise RenderLimit("a replacement that grows too long")


def _guard_key(_: object, key: object = None, *__: object) -> None:
    """Refuse a list as the name of a property, which would be read as text for each item."""
    if isinstance(key, list | tuple | dict):
        raise RenderFailed("a list or mapping can't name a property")


def _guard_round(_: object, digits: object = 0, *__: object) -> None:
    if isinstance(digits, int | float) and abs(digits) > _DIGITS:
        raise RenderLimit("a number of too many digits")


def _guard_text(value: object, *_: object) -> None:
    """Refuse a list or mapping that would be a long text, which is how a text filter reads it."""
    if isinstance(value, list | tuple | dict):
        weigh(value, TEXT_LIMIT)


_GUARDS: dict[str, Callable[..., None]] = {
    **dict.fromkeys(_OF_TEXT | {"date", "slice", "split", "strip_html"}, _guard_text),
    **dict.fromkeys(_OF_PROPERTIES, _guard_key),
    "replace": _guard_replace,
    "round": _guard_round,
}


_EXTRA_COSTS: dict[str, Callable[[object], int]] = {
    "date": lambda _: 50,
    "strip_html": lambda value: len(value) >> 2 if isinstance(value, str) else 0,
}
"""What filters cost, in fuel, besides what their values do."""


def _cut_everywhere(text: str, part: str) -> list[str]:
    return text.split(part) if part else ["", *text, ""]


def _cut_first(text: str, part: str) -> list[str]:
    return text.split(part, 1) if part else ["", text]


def _cut_last(text: str, part: str) -> list[str]:
    return text.rsplit(part, 1) if part else [text, ""]


_CUTS = {
    "replace": _cut_everywhere,
    "replace_first": _cut_first,
    "replace_last": _cut_last,
}
"""How each replacing filter cuts a text."""


def _replacing(function: Filter, cut: Callable[[str, str], list[str]]) -> Filter:
    """Let the markup of a template replace parts of a variable, which is escaped around it, as
    `append` does.
    """

    def call(value: object, old: object = "", new: object = "") -> object:
        text, markup = text_of(value), text_of(new)
        is_markup = isinstance(markup, Markup) and escape(str(markup)) != markup
        if isinstance(text, Markup) or not is_markup:
            return function(value, old, new)
        assert isinstance(markup, Markup)
        return markup.join(cut(text, str(text_of(old))))

    return call


def _ending(function: Filter) -> Filter:
    """Let the markup of a template end a variable that is cut off."""

    def call(value: object, length: object = None, end: object = "...") -> object:
        text, cut_at = text_of(value), [] if length is None else [length]
        if isinstance(text, Markup) or not isinstance(end, Markup):
            return function(value, *cut_at, end) if cut_at else function(value)
        cut_text = str(function(text, *cut_at, str(end)))
        is_cut = cut_text != text and cut_text.endswith(str(end))
        return escape(cut_text[: len(cut_text) - len(end)]) + end if is_cut else cut_text

    return call


def _join_text(value: object, glue: object = " ") -> str:
    return joined(flatten(value), text_of(glue))


def _join_html(value: object, glue: object = None) -> str:
    """Join items. A glue from the template is markup, and then the items are escaped here."""
    return joined(flatten(value), Markup(" ") if glue is None else text_of(glue))


def _split(value: object, separator: object = None) -> list[str]:
    text, mark = text_of(value), text_of(separator)
    if mark == "":
        parts = list(text[: LIST_LIMIT + 1])
    elif not text or text == mark:
        return []
    else:
        parts = text.split(None if mark == " " else mark, LIST_LIMIT)
    if len(parts) > LIST_LIMIT:
        raise RenderLimit(f"a list of more than {LIST_LIMIT}")
    return parts


def _strip_html(value: object) -> str:
    """Remove tags. The rest of markup stays markup, since its text is still escaped."""
    text = text_of(value)
    stripped = strip_tags(str(text))
    return Markup(stripped) if isinstance(text, Markup) else stripped  # noqa: S704 - was markup


def _uniq(items: object, key: object = None) -> list[object]:
    """Keep the first of equal items, or of items with an equal property."""
    first: dict[Any, object] = {}
    for item in flatten(items):
        value = item.get(key) if key is not None and isinstance(item, dict) else item
        identity = value if isinstance(value, str | int | float | None) else repr(value)
        first.setdefault((type(identity) is bool, identity), item)
    return list(first.values())


def _year_first(text: str) -> str:
    """Return a text with its date as the reference reads it: 05/01/2026 is 5 January.

    Raises ValueError for a month or a day that doesn't exist.
    """
    match = _DAY_FIRST.search(text)
    if not match:
        return text
    day, year = int(match["day"]), int(match["year"] or match["short"])
    if match["short"]:
        year += 2000 if year < 69 else 1900
    return f"{text[: match.start()]}{date(year, int(match['month']), day)}{text[match.end() :]}"


def _dated(function: Filter) -> Filter:
    """Bound the input of the date parser and strftime. What is not a date is returned unchanged."""

    def format_date(moment: object, form: object = None) -> object:
        if moment is None or isinstance(moment, Undefined):
            return text_of(moment)
        if len(text_of(moment)) > _DATE_LENGTH or len(text_of(form)) > _FORMAT_LENGTH:
            raise RenderLimit("a date or its format is too long")
        try:
            if not text_of(form):
                return text_of(moment)
            date_value = _year_first(moment) if isinstance(moment, str) else moment
            # The library returns a text that it can't read unchanged.
            if date_value != moment and function(date_value, "%Y") == date_value:
                return moment
            return function(date_value, form)
        except (ArithmeticError, OSError, ValueError):
            return text_of(moment)  # the year 99999: the parser accepts it, but no date can hold it

    return format_date
