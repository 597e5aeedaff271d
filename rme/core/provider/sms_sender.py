"""The sender's name of an SMS: alphanumeric or a number (3GPP TS 23.040 §9.1.2.5)."""

import re

from rme.transport import gsm

ALPHANUMERIC_LIMIT = 11
RULE = (
    f"An SMS shows up to {ALPHANUMERIC_LIMIT} characters of the GSM alphabet, a letter among them, "
    "or up to 15 digits"
)
ASCII_RULE = "Your SMS providers show letters and signs of ASCII only"
_NUMBER = re.compile(r"\+?[0-9]{1,15}")
_CHARACTERS = frozenset(gsm.BASIC) - {"\n", "\r"}


def is_valid(name: str) -> bool:
    """Return whether an SMS can show a sender's name."""
    if _NUMBER.fullmatch(name):
        return True
    return (
        len(name) <= ALPHANUMERIC_LIMIT
        and name == name.strip()
        and _CHARACTERS.issuperset(name)
        and any(map(str.isalpha, name))
    )
