"""Addresses as people see them who may not see whole ones."""

import re
from collections.abc import Iterable


def mask(address: str) -> str:
    """Return an address that is recognized by who knows it: `o…@example.com`, `+41…67`."""
    local, at, domain = address.partition("@")
    if at:
        return f"{local[:1]}…@{domain}"
    return f"{address[:3]}…{address[-2:]}" if len(address) > 7 else "…"


def masked_in(value: object, addresses: Iterable[str]) -> object:
    """Return a value in which these addresses are masked, if it is a text that has them."""
    if isinstance(value, str):
        for address in addresses:
            value = value.replace(address, mask(address)) if address else value
    return value


# A part begins where a word does, and is not looked at again from within: linear in the text.
_PART = r"[^\s\"'<>()\[\],;:@]"
_ADDRESSES = re.compile(rf"(?<!{_PART}){_PART}++@{_PART}++|\+[1-9][0-9]{{6,14}}\b")


def mask_all_in(text: str) -> str:
    """Return a text in which all that looks like an email address or a phone number is masked."""
    return _ADDRESSES.sub(lambda found: mask(found[0]), text)
