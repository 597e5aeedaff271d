"""The parameters of actions: how each is read, and what is refused."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from bot.envelope import invalid
from bot.forms import Parameters
from rme.core import addresses

LENGTH_LIMIT = 255


class Kind(Enum):
    """What a parameter is."""

    TEXT = auto()
    EMAIL = auto()
    PHONE = auto()


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter by the name that the interface gives it. `limit` is in characters."""

    name: str
    kind: Kind = Kind.TEXT
    required: bool = True
    limit: int = LENGTH_LIMIT


def read(
    known: Sequence[Parameter], given: Parameters, *, region: str, lenient: bool
) -> dict[str, str]:
    """Read the parameters of an action; optional ones that are missing are empty texts.

    Emails are folded, and phones are E.164, read with the region where they have no country code.
    `lenient` is for queries, in which a plus sign that was not encoded has become a space. Raises
    Failure.
    """
    return {each.name: _read(each, given, region, lenient) for each in known}


def _read(parameter: Parameter, given: Parameters, region: str, lenient: bool) -> str:
    texts = given.all(parameter.name)
    if len(texts) > 1:
        raise invalid(parameter.name, "is given more than once")
    text = texts[0].strip() if texts else ""
    if not text:
        if parameter.required:
            raise invalid(parameter.name, "is missing", "missing_parameter")
        return ""
    if "\0" in text:
        raise invalid(parameter.name, "must not contain NUL characters")
    if len(text) > parameter.limit:
        raise invalid(parameter.name, f"is longer than {parameter.limit:,} characters")
    match parameter.kind:
        case Kind.EMAIL:
            return _email(parameter.name, text, lenient)
        case Kind.PHONE:
            return _phone(parameter.name, texts[0], region, lenient)
    return text


def _email(name: str, text: str, lenient: bool) -> str:
    folded = addresses.email(text.replace(" ", "+") if lenient else text)
    if folded is None:
        raise invalid(name, "is not an email address", "invalid_email")
    return folded


def _phone(name: str, text: str, region: str, lenient: bool) -> str:
    lost_plus = lenient and text[0] == " " and text[1:2].isdigit()
    number = addresses.phone(f"+{text.strip()}" if lost_plus else text.strip(), region)
    if number is None and lost_plus:
        number = addresses.phone(text.strip(), region)
    if number is None:
        raise invalid(name, "is not a phone number", "invalid_phone")
    return number
