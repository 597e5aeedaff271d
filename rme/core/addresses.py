"""Normal forms of addresses, in which rme compares, stores and sends them.

Every email address, phone number and domain passes through here, whether it comes from a caller, a
file, a person, a platform or a provider.
"""

import re
from collections.abc import Iterable
from enum import StrEnum

import idna
import phonenumbers
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.translation import gettext
from phonenumbers import CountryCodeSource, PhoneNumberFormat

# --- texts ----------------------------------------------------------------------------------------
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Unicode's Default_Ignorable_Code_Point, without the two joiners."""
_INVISIBLE = re.compile(
    # Joiners (ZWNJ, ZWJ) count between letters of some scripts, in domains too (RFC 5892 A.1).
    f"[{_IGNORABLE}]|(?<![^\\x00-\\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\\x00-\\x7f])"
)
_LONGEST = 1000
"""The longest text that is read."""


def cleaned(text: str) -> str:
    """Return a text without invisible characters, and without spaces at its ends."""
    return text.strip() if text.isascii() else _INVISIBLE.sub("", text.strip()).strip()


def with_plus(text: str) -> str:
    """Restore the plus signs of an address in a query, where they became spaces if unencoded."""
    if "@" in text:
        return text.strip().replace(" ", "+")
    return f"+{text[1:]}" if re.match(r" \d", text) else text


# --- email ----------------------------------------------------------------------------------------
_PRINTABLE_ASCII = re.compile(r"^[\x21-\x7e]+$")
_PLAIN = re.compile(
    r"[a-z0-9_+-]++(?:\.[a-z0-9_+-]++)*@(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}"
)
"""Most addresses: Django's validator accepts them, at five times the cost."""
_WORD = re.compile(r"\S++")
_RECIPIENT_LINK = re.compile(r"/[pt]/(?:[uco]/)?[A-Za-z0-9_-]{40}")
"""A link that only its recipient may have: it begins a token of the preference page or tracking."""
_ATEXT = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"
DOT_ATOM = rf"^{_ATEXT}+(\.{_ATEXT}+)*$"
"""The local part of an address that needs no quotes (RFC 5322 §3.2.3)."""
_DOT_ATOM = re.compile(DOT_ATOM)
_QUOTED = re.compile(r'"((?:[\x21\x23-\x5b\x5d-\x7e]|\\[\x21-\x7e])*)"')
_MOBILE_CARRIERS = frozenset({"docomo.ne.jp", "ezweb.ne.jp"})
"""Japanese carriers that gave out addresses with dots at the end or in a row."""
_DOTS = re.compile(r"\.+")
MAX_EMAIL = 254
MAX_LOCAL_PART = 64


def email(text: str) -> str | None:
    """Return an email address in lower case with an IDNA domain (RFC 5891, UTS 46), or None.

    The local part is lowered too: RFC 5321 lets a host distinguish case, and none in use does. Only
    ASCII letters are: a local part beyond ASCII is another mailbox (RFC 6531), and is refused.
    """
    if len(text) > _LONGEST:
        return None
    folded = text.lower()
    if (
        len(text) <= MAX_EMAIL
        and text.isascii()
        and _PLAIN.fullmatch(folded)
        and "xn--" not in folded  # an IDNA domain, which has to be valid
    ):
        return folded
    local, _, host = cleaned(text).rpartition("@")
    # Before any folding: lower case makes a `k` of the Kelvin sign.
    if not local or not host or not local.isascii():
        return None
    try:
        name = _host(host)
        folded = f"{_unquoted(local)}@{name}".lower()
        if len(folded) > MAX_EMAIL or not _PRINTABLE_ASCII.match(folded):
            return None
        # Only the dots of such carriers are unusual, so check the rest without them.
        validate_email(_without_odd_dots(folded) if name in _MOBILE_CARRIERS else folded)
    except (idna.IDNAError, UnicodeError, ValidationError):
        return None
    return folded


def _host(host: str) -> str:
    """Return a domain in lower case, with its labels as IDNA writes them. Raises IDNAError."""
    if host.isascii() and "xn--" not in host.lower():
        return host.rstrip(".").lower()
    name = host.lower() if host.isascii() else host
    return idna.encode(name.rstrip("."), uts46=True).decode().lower()


def _unquoted(local: str) -> str:
    """Return a local part without needless quotes: both are one mailbox (RFC 5321)."""
    quoted = _QUOTED.fullmatch(local)
    if quoted is None:
        return local
    plain = re.sub(r"\\(.)", r"\1", quoted[1])
    return plain if _DOT_ATOM.fullmatch(plain) else local


def _without_odd_dots(folded: str) -> str:
    local, _, host = folded.rpartition("@")
    return f"{_DOTS.sub('.', local).rstrip('.')}@{host}"


def spellings(folded: str) -> list[str]:
    """Return the spellings of a folded address: its domain as IDN labels, and decoded."""
    local, _, name = folded.rpartition("@")
    unicode_name = shown_domain(name)
    return [folded] if unicode_name == name else [folded, f"{local}@{unicode_name}"]


def typed_email(text: str) -> str | None:
    """Return an email address as a record keeps it, or None if it is not one.

    It stays as typed, without invisible characters; a domain beyond ASCII becomes lower case.
    Look-ups compare the lower case of the stored address with `spellings`.
    """
    folded = email(text)
    if folded is None:
        return None
    typed, variants = cleaned(text), spellings(folded)
    return typed if typed.isascii() and typed.lower() in variants else variants[-1]


def redacted(text: str) -> str:
    """Return a text with each word that holds an email address or a recipient's link as `…`.

    Servers repeat both in their refusals, and many people and programs see those.
    """
    # Matches whole words and searches `@` in each: `\S+@\S+` would be quadratic.
    return _WORD.sub(lambda word: "…" if _is_private(word[0]) else word[0], text)


def _is_private(word: str) -> bool:
    return "@" in word[1:-1] or _RECIPIENT_LINK.search(word) is not None


def domain(text: str) -> str | None:
    """Return a domain name in lower case, as IDNA and without a final dot, or None.

    An address in brackets, which an email address may have instead of a domain, is no name.
    """
    if "@" in text or "[" in text:
        return None
    folded = email(f"a@{cleaned(text)}")
    return folded.partition("@")[2] if folded else None


def shown_domain(name: str) -> str:
    """Return a normal domain name in the form that people read (U-labels, RFC 5890)."""
    if "xn--" not in name:
        return name
    try:
        return idna.decode(name)
    except idna.IDNAError:
        return name


def is_local_part(text: str) -> bool:
    """Return whether a sender's address may have this local part: a dot-atom, which is ASCII."""
    return len(text) <= MAX_LOCAL_PART and _DOT_ATOM.fullmatch(text) is not None


# --- phone numbers --------------------------------------------------------------------------------
class Digits(StrEnum):
    """How to read digits without `+` and `00`."""

    UNSAID = "UNSAID"
    """A number of the region, unless they are valid only with a `+`."""
    NATIONAL = "NATIONAL"
    INTERNATIONAL = "INTERNATIONAL"
    """With the country code, as Vonage, Infobip and Kannel write them."""


_OLD_MEXICAN = re.compile(r"1\d{10}")
_BRAZILIAN_MOBILE = re.compile(r"\+55([1-9][1-9])(9?)([6-9]\d{7})")
"""A mobile that had eight digits, with or without the ninth digit in front."""
_LETTER = re.compile(r"[^\W\d_]")
_BRACKETS = re.compile(r"[(（]")
_TRUNK_IN_BRACKETS = re.compile(r"\(0\)")


def phone_readings(
    text: str, region: str | None, digits: Digits = Digits.UNSAID
) -> tuple[str, ...]:
    """Return the numbers that a text may mean, as E.164; empty if it is not a phone number.

    There are two if digits are valid both as a number of `region` (ISO 3166, like `US`) and with a
    `+` before them. The first is then the region's.
    """
    if len(text) > _LONGEST:
        return ()
    text = cleaned(text)
    if text.startswith("+0"):  # no country code begins with 0: somebody added the plus
        text = text[1:]
    if len(text) > 64:
        return ()
    parsed = _parse(text, region)
    bare = phonenumbers.normalize_digits_only(text)
    source = parsed.country_code_source if parsed else None
    if source == CountryCodeSource.FROM_NUMBER_WITH_PLUS_SIGN or (
        # Other prefixes for calls abroad, like Finland's 994, begin numbers of other countries.
        source == CountryCodeSource.FROM_NUMBER_WITH_IDD and bare.startswith("0")
    ):
        return _possible(parsed)
    if bare.startswith("00") and (foreign := _possible(_parse(f"+{bare[2:]}", None))):
        return foreign
    if digits is Digits.INTERNATIONAL:
        return _possible(_parse(f"+{bare}", None))
    national = _possible(parsed)
    if digits is Digits.NATIONAL or not _may_have_country_code(text):
        return national
    without_trunk = _parse(f"+{_TRUNK_IN_BRACKETS.sub('', text).lstrip('+')}", None)
    if without_trunk is None or not phonenumbers.is_valid_number(without_trunk):
        return national
    international = _possible(without_trunk)
    if parsed is None or not national or not phonenumbers.is_valid_number(parsed):
        return international
    return tuple(dict.fromkeys((*national, *international)))


def digits(text: str) -> str:
    """Return the digits of a text, in ASCII."""
    return phonenumbers.normalize_digits_only(text)


def phone_beginnings(text: str, region: str) -> tuple[str, ...]:
    """Return the beginnings of E.164 numbers that the first digits of a number may mean."""
    text = _TRUNK_IN_BRACKETS.sub("", cleaned(text))
    typed = digits(text)
    if text.startswith("+"):
        return (f"+{typed}",)
    if typed.startswith("00"):
        return (f"+{typed[2:]}",)
    code = phonenumbers.country_code_for_region(region)
    trunk = phonenumbers.ndd_prefix_for_region(region, True) or ""
    # Italy has no trunk prefix: the 0 belongs to the number. No country code begins with one.
    readings = [f"+{code}{typed.removeprefix(trunk)}", f"+{code}{typed}"]
    return tuple(dict.fromkeys(readings if typed.startswith("0") else [*readings, f"+{typed}"]))


def _may_have_country_code(text: str) -> bool:
    """Return whether digits may begin with a country code; not with an area code in brackets."""
    if _LETTER.search(text):  # a word for digits, or an extension
        return False
    return not _BRACKETS.search(text) or _TRUNK_IN_BRACKETS.search(text) is not None


def _parse(text: str, region: str | None) -> phonenumbers.PhoneNumber | None:
    """Parse a number, without the 1 that mobiles of Mexico had until 2019."""
    try:
        number = phonenumbers.parse(text, region, keep_raw_input=True)
    except phonenumbers.NumberParseException:
        return None
    if number.country_code == 52 and _OLD_MEXICAN.fullmatch(str(number.national_number)):
        number.national_number = int(str(number.national_number)[1:])
    return number


def _possible(number: phonenumbers.PhoneNumber | None) -> tuple[str, ...]:
    """Return a number as E.164, if its country may have numbers of this length."""
    if number is None or not phonenumbers.is_possible_number(number):
        return ()
    return (phonenumbers.format_number(number, PhoneNumberFormat.E164),)


def phone(text: str, region: str | None, digits: Digits = Digits.UNSAID) -> str | None:
    """Return a phone number as E.164, or None if it is not one, or could be two.

    Numbers without a country code are read as numbers of `region` (ISO 3166, like `US`).
    """
    readings = phone_readings(text, region, digits)
    return readings[0] if len(readings) == 1 else None


def valid_phone(text: str, region: str | None, digits: Digits = Digits.UNSAID) -> str | None:
    """Return a phone number as E.164 if its country has such numbers, or None.

    `phone` accepts every number of a possible length, which reads a national number of another
    country as one of `region`. What a person types is checked by this.
    """
    number = phone(text, region, digits)
    if number is None or not phonenumbers.is_valid_number(phonenumbers.parse(number)):
        return None
    return number


def platform_phone(text: str, region: str) -> str | None:
    """Return a number that a CRM holds as E.164, or None if it is not one, or could be two.

    In regions without a trunk prefix, like North America, people type valid national digits, so
    these are always read as the region's.
    """
    readings = phone_readings(text, region)
    if len(readings) > 1 and not _has_trunk_prefix(region):
        return readings[0]
    return readings[0] if len(readings) == 1 else None


def _has_trunk_prefix(region: str) -> bool:
    metadata = phonenumbers.PhoneMetadata.metadata_for_region(region)
    if metadata is None or metadata.country_code == 1:
        return False
    return bool(metadata.national_prefix)


def phone_problem(text: str, region: str | None, digits: Digits = Digits.UNSAID) -> str:
    """Return why `phone` or `valid_phone` rejects a text, as the end of a sentence about it."""
    readings = phone_readings(text, region, digits)
    if len(readings) > 1:
        national, international = readings
        return gettext(
            "may be %(national)s or %(international)s: write it with + and the country code, like "
            "%(international)s"
        ) % {"national": national, "international": international}
    if digits is Digits.INTERNATIONAL:
        return gettext("is not a phone number with its country code")
    return gettext("is not a phone number")


def phone_spellings(number: str) -> tuple[str, ...]:
    """Return an E.164 number and its other spellings in networks: they all reach one phone.

    Mexican mobiles had a 1 after the country code until 2019. Mobiles of Argentina have a 9 there
    in calls from abroad, and SMS come from them with it or without. Brazil put a 9 before the eight
    digits of all mobiles from 2012 to 2016 (Anatel, resolution 553). They began with 6 to 9; other
    mobiles with nine digits never had eight, and eight digits from 2 to 5 are a landline.
    """
    if not number.startswith("+5"):
        return (number,)
    if brazilian := _BRAZILIAN_MOBILE.fullmatch(number):
        area, ninth, digits = brazilian.groups()
        return number, f"+55{area}{'' if ninth else '9'}{digits}"
    if number.startswith("+549") and len(number) == 14:
        return number, f"+54{number[4:]}"
    if number.startswith("+54") and len(number) == 13:
        return number, f"+549{number[3:]}"
    if number.startswith("+521") and len(number) == 14:
        return number, f"+52{number[4:]}"
    if number.startswith("+52") and len(number) == 13:
        return number, f"+521{number[3:]}"
    return (number,)


def all_spellings(addresses: Iterable[str]) -> list[str]:
    """Return the spellings of addresses, each once."""
    spellings: dict[str, None] = {}
    for address in addresses:
        if address.startswith("+5"):
            spellings.update(dict.fromkeys(phone_spellings(address)))
        else:  # nearly all, and the call would cost more than the rest
            spellings[address] = None
    return list(spellings)


def same_phones(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Return whether two lists of numbers in E.164 have a phone in common."""
    variants = {spelling for number in first for spelling in phone_spellings(number)}
    return not variants.isdisjoint(second)
