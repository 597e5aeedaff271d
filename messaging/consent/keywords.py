"""The words that people write by SMS to be left alone, to come back, or to ask who we are.

The English ones are those that carriers and the FCC (47 CFR 64.1200(a)(10)) want to be honoured,
and Twilio's (https://help.twilio.com/articles/223134027). They count everywhere; the others are of
one language each, in which the person is answered.
"""

import re
import unicodedata
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple


class Word(StrEnum):
    """What a person wants."""

    STOP = "STOP"
    START = "START"
    YES = "YES"
    """START, of somebody who wrote STOP; of anybody else the answer to some question."""
    HELP = "HELP"


class Keyword(NamedTuple):
    """A word, and the language that it is of alone (`de`); empty: it is of several."""

    word: Word
    language: str


LISTS: Mapping[str, Mapping[Word, str]] = {
    "": {
        Word.STOP: "STOP STOPALL UNSUBSCRIBE END QUIT CANCEL REVOKE OPTOUT REMOVE",
        Word.START: "START UNSTOP SUBSCRIBE",
        Word.YES: "YES SI",
        Word.HELP: "HELP INFO",
    },
    "de": {
        Word.STOP: "STOPP ABMELDEN ABBESTELLEN",
        Word.START: "ANMELDEN",
        Word.YES: "JA",
        Word.HELP: "HILFE",
    },
    "fr": {
        Word.STOP: "ARRET ARRETER DESABONNER",
        Word.START: "ABONNER",
        Word.YES: "OUI",
        Word.HELP: "AIDE",
    },
    "it": {Word.STOP: "BASTA FERMA ANNULLA", Word.START: "INIZIA", Word.HELP: "AIUTO"},
    "es": {Word.STOP: "BAJA ALTO CANCELAR", Word.START: "ALTA", Word.HELP: "AYUDA"},
}
WORDS: Mapping[str, Keyword] = {
    text: Keyword(word, language)
    for language, lists in LISTS.items()
    for word, texts in lists.items()
    for text in texts.split()
}
_SIGNS = re.compile(r"[\W_]+")

TEXTS: dict[str, dict[Word, str]] = {
    "en": {
        Word.STOP: "{name}: You will get no more text messages. Reply START to change that.",
        Word.START: "{name}: You will get our text messages again. Reply STOP to end them.",
        Word.HELP: "{name}: Reply STOP to get no more text messages, START to get them again.",
    },
    "de": {
        Word.STOP: "{name}: Sie erhalten keine SMS mehr von uns. Mit START ändern Sie das.",
        Word.START: "{name}: Sie erhalten wieder SMS von uns. Mit STOP beenden Sie das.",
        Word.HELP: "{name}: STOP beendet unsere SMS, mit START erhalten Sie sie wieder.",
    },
    "fr": {
        Word.STOP: "{name} : vous ne recevrez plus de SMS. Répondez START pour en recevoir.",
        Word.START: "{name} : vous recevrez à nouveau nos SMS. Répondez STOP pour arrêter.",
        Word.HELP: "{name} : répondez STOP pour ne plus recevoir de SMS, START pour en recevoir.",
    },
    "it": {
        Word.STOP: "{name}: non riceverà più SMS da noi. Risponda START per riceverli di nuovo.",
        Word.START: "{name}: riceverà di nuovo i nostri SMS. Risponda STOP per non riceverli più.",
        Word.HELP: "{name}: risponda STOP per non ricevere più SMS, START per riceverli di nuovo.",
    },
    "es": {
        Word.STOP: "{name}: no recibirá más SMS. Responda START para volver a recibirlos.",
        Word.START: "{name}: volverá a recibir SMS. Responda STOP para dejar de recibirlos.",
        Word.HELP: "{name}: responda STOP para no recibir más SMS, START para volver a recibirlos.",
    },
}


def find(text: str) -> Keyword | None:
    """Say which word a message is, in any case, with any signs and accents; None: it is none."""
    unaccented = unicodedata.normalize("NFKD", text[:200])
    return WORDS.get(_SIGNS.sub("", unaccented).upper())


def evidence_text(text: str) -> str:
    """Give the beginning of a message without signs, as evidence."""
    return _SIGNS.sub(" ", text[:200]).strip()
