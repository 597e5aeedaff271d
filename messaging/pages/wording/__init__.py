"""The texts of recipients' pages and of their mails, in each language.

To add a language, write a module like `english` and name it in `LANGUAGES`.
"""

from collections.abc import Mapping

from messaging.pages.wording.english import ENGLISH
from messaging.pages.wording.french import FRENCH
from messaging.pages.wording.german import GERMAN
from messaging.pages.wording.italian import ITALIAN
from messaging.pages.wording.spanish import SPANISH
from messaging.pages.wording.texts import Wording

__all__ = ["DEFAULT_LANGUAGE", "LANGUAGES", "Wording"]

LANGUAGES: Mapping[str, Wording] = {
    "en": ENGLISH,
    "de": GERMAN,
    "fr": FRENCH,
    "it": ITALIAN,
    "es": SPANISH,
}
"""By ISO 639-1 code."""
DEFAULT_LANGUAGE = "en"
