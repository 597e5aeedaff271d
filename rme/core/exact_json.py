"""JSON from other systems, with whole numbers that are never rounded.

orjson reads a whole number of more than 64 bits as a float: an id of 30 digits would become another
one. Such a number is returned as a text of its digits, which any column and any JSON can hold.
"""

import json
import re

import orjson

_MANY_DIGITS = re.compile(rb"[0-9]{19}")
"""A whole number of 64 bits has 19 or 20 digits."""
_DIGIT = re.compile(rb"[0-9]")


def has_many_digits(body: bytes) -> bool:
    """Return whether a JSON text may hold a whole number of more than 64 bits."""
    # Such a number covers one of each 19 bytes: in most texts none of those is a digit.
    return bool(_DIGIT.search(body[18::19])) and _MANY_DIGITS.search(body) is not None


def fitting(digits: str) -> int | None:
    """Return a whole number, or None if it has more than 64 bits."""
    if len(digits) > 20:  # the length of the least number with its sign, and of the greatest
        return None
    number = int(digits)
    return number if -(1 << 63) <= number < 1 << 64 else None


def loads(body: bytes | str) -> object:
    """Return the value of a JSON text, with longer whole numbers as texts.

    Raises orjson.JSONDecodeError, also for long numbers in a text that nests too deep to read them.
    """
    value: object = orjson.loads(body)
    if has_many_digits(body.encode() if isinstance(body, str) else body):
        try:
            value = json.loads(body, parse_int=_number_or_text)
        except RecursionError as error:
            raise orjson.JSONDecodeError("nests too deep", "", 0) from error
    return value


def _number_or_text(digits: str) -> int | str:
    number = fitting(digits)
    return digits if number is None else number
