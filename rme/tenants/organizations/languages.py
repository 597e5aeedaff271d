"""Languages of people and templates, like `en_GB` or `de`: ISO 639, with a country (ISO 3166)."""

import re
from functools import cache

from babel import Locale, localedata

from rme.tenants.organizations.records import OrganizationRecord

_LANGUAGE = re.compile(r"([a-z]{2,3})(?:_([A-Z]{2}))?")

# CLDR also names what stands for none, for several, or for a test.
_NO_LANGUAGES = frozenset({"mis", "mul", "und", "zxx"})
_NO_COUNTRIES = frozenset({"EU", "EZ", "QO", "UN", "XA", "XB", "ZZ"})
_COUNTRY = re.compile(r"(?!EU|EZ|QO|UN|XA|XB|ZZ)[A-Z]{2}")


@cache
def _names() -> Locale:
    """Return the locale whose data (CLDR) names all languages and countries."""
    return Locale("en")


def is_language(text: str) -> bool:
    """Return whether a text names a language that exists."""
    match = _LANGUAGE.fullmatch(text)
    if match is None:
        return False
    language, country = match.groups()
    names = _names()
    if language not in names.languages or language in _NO_LANGUAGES:
        return False
    return not country or (country in names.territories and country not in _NO_COUNTRIES)


@cache
def choices() -> list[tuple[str, str]]:
    """Return the languages that CLDR has data for, by name: a code, and its name in English."""
    names = _names()
    labels = []
    for code in filter(is_language, localedata.locale_identifiers()):
        language, _, country = code.partition("_")
        place = f" ({names.territories[country]})" if country else ""
        labels.append((code, f"{names.languages[language]}{place}"))
    return sorted(labels, key=lambda choice: choice[1])


def offered(organization: OrganizationRecord, *others: str) -> list[tuple[str, str]]:
    """Return the languages that an organization's forms offer, by name: all if it chose none."""
    if not organization.languages:
        return choices()
    codes = {organization.language, *organization.languages, *filter(None, others)}
    return sorted(((code, name(code)) for code in codes), key=lambda choice: choice[1])


@cache
def countries() -> list[tuple[str, str]]:
    """Return the countries by name: the ISO 3166 code, and the name in English."""
    territories = _names().territories.items()
    return sorted(
        ((code, name) for code, name in territories if _COUNTRY.fullmatch(code)),
        key=lambda choice: choice[1],
    )


def name(code: str) -> str:
    """Return the name of a language in English, or the code of one without data in CLDR."""
    return _names_by_code().get(code, code)


@cache
def _names_by_code() -> dict[str, str]:
    return dict(choices())
