"""Conditions of a look-up, and patterns for the spellings of phone numbers and names."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import phonenumbers

from rme.core import addresses

Description = Mapping[str, Mapping[str, str] | None]
"""A platform's objects: by object its fields, and for each field the object that it refers to
("" if none). None: the platform has no such object.
"""

_ACCENTED = str.maketrans(dict.fromkeys("aceginosuyzlrtd", "_"))
"""Letters that carry a diacritic in some language."""


@dataclass(frozen=True, slots=True)
class Where:
    """A condition: one of the fields equals one of the values, or matches the pattern.

    `fold`: case does not count. `keys`: the values are ids. A pattern consists of letters, digits,
    `%` and `_` only. `since`: the field is a time, and not before this one.
    """

    paths: tuple[str, ...]
    equals: tuple[str, ...] = ()
    like: str = ""
    since: datetime | None = None
    fold: bool = False
    keys: bool = False


class PhoneDigits(NamedTuple):
    """The spellings of a phone number, as digits only."""

    international: str
    national: str
    """Without the country code."""
    dialled: str
    """As dialled within the country, with its trunk prefix if it has one."""


def phone_digits(phone: str) -> list[PhoneDigits]:
    """Return the digits of an E.164 number, and of its other spellings."""
    return [_digits(spelling) for spelling in addresses.phone_spellings(phone)]


def _digits(phone: str) -> PhoneDigits:
    number = phonenumbers.parse(phone)
    formatted = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL)
    return PhoneDigits(
        international=phone.lstrip("+"),
        national=phonenumbers.national_significant_number(number),
        dialled="".join(c for c in formatted if c.isascii() and c.isdigit()),
    )


def pattern(folded: str) -> str:
    """Return a LIKE pattern of names that fold to this: any characters between the letters.

    Return "" for a name with characters other than letters and digits.
    """
    if not folded.replace("_", "").isalnum():
        return ""
    return "%".join(folded) + "%"


def loose_pattern(folded: str) -> str:
    """Return a pattern that accepts diacritics too, or "" if it would match nearly all names."""
    loose = folded.translate(_ACCENTED)
    return pattern(loose) if len(loose) > 3 and loose.strip("_") else ""
