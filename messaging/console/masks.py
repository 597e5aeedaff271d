"""Masks of addresses, for people who may not see them whole."""

import re

from rme.core.addresses import digits

# A part begins where a word does, and is not looked at again from within: linear in the text.
_PART = r"[^\s\"'<>()\[\],;:@]"
_ADDRESSES = re.compile(rf"(?<!{_PART}){_PART}++@{_PART}++|\+[1-9][0-9]{{6,14}}\b")
_NUMBER = re.compile(r"\+?[0-9](?:[ ()./-]{0,2}[0-9]){6,}")
_ENDING = 7
"""By how many of its last digits a number is recognized, whatever stands before them."""


def mask(address: str) -> str:
    """Return an address that is recognized by who knows it: `o…@example.com`, `+41…67`."""
    local, at, domain = address.partition("@")
    if at:
        return f"{local[:1]}…@{domain}"
    return f"{address[:3]}…{address[-2:]}" if len(address) > 7 else "…"


def mask_all_in(text: str) -> str:
    """Return a text in which all that looks like an email address or a phone number is masked."""
    return _ADDRESSES.sub(lambda match: mask(match[0]), text)


def mask_in(text: str, address: str) -> str:
    """Return a text in which an address is masked, also a number without its `+` or its country
    code, and all that looks like another.
    """
    if "@" in address or len(digits(address)) < _ENDING:
        masked = text.replace(address, mask(address)) if address else text
    else:
        ending = digits(address)[-_ENDING:]
        masked = _NUMBER.sub(
            lambda match: mask(address) if ending in digits(match[0]) else match[0], text
        )
    return mask_all_in(masked)
