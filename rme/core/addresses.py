"""Normal forms of addresses: these are compared, stored and passed to providers."""

import re

import idna
import phonenumbers
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

_PRINTABLE_ASCII = re.compile(r"^[\x21-\x7e]+$")
_PLAIN = re.compile(
    r"[a-z0-9_+-]++(?:\.[a-z0-9_+-]++)*@(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}"
)
"""Most addresses: Django's validator accepts them, at five times the cost."""
_WORD = re.compile(r"\S++")


def email(text: str) -> str | None:
    """Return an email address in lower case with an IDNA domain (RFC 5891, UTS 46), or None.

    The local part is lowered too: RFC 5321 lets a host distinguish case, and none in use does.
    """
    folded = text.lower()
    if (
        len(text) <= 254
        and text.isascii()
        and _PLAIN.fullmatch(folded)
        and "xn--" not in folded  # an IDNA domain, which has to be valid
    ):
        return folded
    local, _, domain = text.strip().rpartition("@")
    if not local or not domain or len(text) > 254:
        return None
    try:
        if not domain.isascii() or "xn--" in domain:
            domain = idna.encode(domain.rstrip("."), uts46=True).decode()
        folded = f"{local}@{domain.rstrip('.')}".lower()
        if not _PRINTABLE_ASCII.match(folded):
            return None
        validate_email(folded)
    except (idna.IDNAError, UnicodeError, ValidationError):
        return None
    return folded


def redacted(text: str) -> str:
    """Return a text with each word that holds an email address as `…`."""
    # Matches whole words and searches `@` in each: `\S+@\S+` would be quadratic.
    return _WORD.sub(lambda word: "…" if "@" in word[0][1:-1] else word[0], text)


def phone(text: str, region: str | None) -> str | None:
    """Return a phone number as E.164, or None if it is not one.

    Numbers without a country code are read as numbers of `region` (ISO 3166, like `US`).
    """
    if len(text) > 64:
        return None
    try:
        number = phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException:
        return None
    if not phonenumbers.is_possible_number(number):
        return None
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def valid_phone(text: str, region: str | None) -> str | None:
    """Return a phone number as E.164 if its country has such numbers, or None.

    `phone` accepts every number of a possible length, which reads a national number of another
    country as one of `region`. What a person types is checked by this.
    """
    number = phone(text, region)
    if number is None or not phonenumbers.is_valid_number(phonenumbers.parse(number)):
        return None
    return number


def domain(text: str) -> str | None:
    """Return a domain name in lower case, as IDNA and without a final dot, or None."""
    folded = email(f"a@{text}")
    return folded.partition("@")[2] if folded else None
