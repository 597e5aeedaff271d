"""What is searched for: conditions, and the ways in which people write numbers and names."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import phonenumbers

Description = Mapping[str, Mapping[str, str] | None]
"""By object, its fields, and the object that each refers to (or nothing); None: no such object."""

_ACCENTED = str.maketrans(dict.fromkeys("aceginosuyzlrtd", "_"))
"""Letters of which languages have others with a mark."""


@dataclass(frozen=True, slots=True)
class Where:
    """A condition: one of the fields equals one of the values, or is like the pattern.

    `fold`: case does not count. `keys`: the values are ids. A pattern has letters, digits, `%`
    and `_` and nothing else. `since`: the field is a time, and not before that.
    """

    paths: tuple[str, ...]
    equals: tuple[str, ...] = ()
    like: str = ""
    since: datetime | None = None
    fold: bool = False
    keys: bool = False


def digits_of(phone: str) -> list[str]:
    """Give the ways in which people write an E.164 number, by their digits: whole, national."""
    number = phonenumbers.parse(phone)
    national = phonenumbers.national_significant_number(number)
    dialled = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL)
    inland = "".join(letter for letter in dialled if letter.isascii() and letter.isdigit())
    return list(dict.fromkeys([phone.lstrip("+"), national, inland]))


def pattern(folded: str) -> str:
    """Give a pattern of names that fold to this: anything may stand between the letters."""
    if not folded.replace("_", "").isalnum():
        return ""
    return "%".join(folded) + "%"


def loose_pattern(folded: str) -> str:
    """Give a pattern that lets marks on letters differ too; nothing where it would let all pass."""
    loose = folded.translate(_ACCENTED)
    return pattern(loose) if len(loose) > 3 and loose.strip("_") else ""
