"""Parameters of actions: parsing and validation."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from bot.envelope import invalid
from bot.forms import Parameters
from rme.core import addresses, ids

LENGTH_LIMIT = 255


class ParameterKind(Enum):
    """The type of a parameter."""

    TEXT = auto()
    EMAIL = auto()
    PHONE = auto()


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter and its name in the API. `limit` is in characters."""

    name: str
    kind: ParameterKind = ParameterKind.TEXT
    required: bool = True
    limit: int = LENGTH_LIMIT


def read(
    schema: Sequence[Parameter], parameters: Parameters, *, region: str, lenient: bool
) -> dict[str, str]:
    """Return the values of an action's parameters; a missing optional one is an empty text.

    Email addresses are case-folded. Phone numbers are E.164, unless they may be two; `region`
    supplies a missing country code. `lenient` is for queries, where an unencoded plus sign has
    become a space. Raise BotFailure for an invalid or missing parameter.
    """
    return {each.name: _read(each, parameters, region, lenient) for each in schema}


def _read(parameter: Parameter, parameters: Parameters, region: str, lenient: bool) -> str:
    texts = parameters.all(parameter.name)
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
        case ParameterKind.EMAIL:
            return _email(parameter.name, text, lenient)
        case ParameterKind.PHONE:
            return _phone(parameter.name, texts[0], region, lenient)
    return ids.record_id(text) if parameter.name.endswith("ID") else text


def _email(name: str, text: str, lenient: bool) -> str:
    folded = addresses.email(text.replace(" ", "+") if lenient else text)
    if folded is None:
        raise invalid(name, "is not an email address", "invalid_email")
    return folded


def _phone(name: str, text: str, region: str, lenient: bool) -> str:
    """Return a number as E.164; ambiguous digits stay, since both numbers are looked up."""
    lost_plus = lenient and text[0] == " " and text[1:2].isdigit()
    readings = addresses.phone_readings(f"+{text.strip()}", region) if lost_plus else ()
    readings = readings or addresses.phone_readings(text, region)
    if not readings:
        raise invalid(name, "is not a phone number", "invalid_phone")
    return readings[0] if len(readings) == 1 else addresses.cleaned(text)
