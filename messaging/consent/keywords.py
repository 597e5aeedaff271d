"""SMS keywords: opting out (STOP), opting in again (START), and asking for help (HELP).

The English ones are those that carriers and the FCC (47 CFR 64.1200(a)(10)) require, and Twilio's
(https://help.twilio.com/articles/223134027). They count in every language; the others belong to one
language each, and the reply is in that language.
"""

import re
import unicodedata
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple


class Word(StrEnum):
    """What the sender of an SMS wants."""

    STOP = "STOP"
    START = "START"
    YES = "YES"
    """START if the sender wrote STOP before; otherwise the answer to an unrelated question."""
    HELP = "HELP"


class Keyword(NamedTuple):
    """A word, and its language (`de`), which is empty if it counts in several."""

    word: Word
    language: str


KEYWORDS: Mapping[str, Mapping[Word, str]] = {
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
    for language, lists in KEYWORDS.items()
    for word, texts in lists.items()
    for text in texts.split()
}
BY_PROVIDERS = {each.value: each for each in (Word.STOP, Word.START, Word.HELP)}
"""The keywords that providers may report for a message."""
_PUNCTUATION = re.compile(r"[\W_]+")
_ACCENTS = re.compile(r"[\u0300-\u036f]+")
_SENTENCE_END = re.compile(r"[.!?\n]")
_COURTESY_TEXT = (
    "PLEASE PLS PLZ THANK THANKS THX TY YOU BITTE DANKE VIELEN DANK MERCI S IL VOUS TE PLAIT "
    "SVP STP GRAZIE PER FAVORE GRACIAS POR FAVOR"
)
_COURTESY = frozenset(_COURTESY_TEXT.split())
_OFTEN_OTHERWISE = frozenset(
    {"END", "CANCEL", "QUIT", "REMOVE", "ALTO", "BAJA", "CANCELAR", "ANNULLA"}
)
"""Words that only count as STOP alone: as a first sentence, they often answer the message."""

REPLIES: dict[str, dict[Word, str]] = {
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


def find(text: str, taken_as: str = "") -> Keyword | None:
    """Return the keyword that a message consists of, or None.

    Case, accents and punctuation do not matter. STOP may have polite words around it, or be the
    first sentence: an opt-out must not be lost (47 CFR 64.1200(a)(10)). `taken_as` is the keyword
    that the provider recognized. It counts, except that it can't undo a STOP in the text.
    """
    unaccented = unicodedata.normalize("NFKD", text[:200]).upper()
    keyword = WORDS.get(_PUNCTUATION.sub("", unaccented)) or _polite_stop(unaccented)
    word = BY_PROVIDERS.get(taken_as.strip().upper())
    if word is None or (keyword and keyword.word is Word.STOP):
        return keyword
    return Keyword(word, keyword.language if keyword else "")


def _polite_stop(text: str) -> Keyword | None:
    """Return the STOP of a text in capitals: all of it but polite words, or its first sentence."""
    bare = _ACCENTS.sub("", text).strip()
    first_sentence = _without_courtesy(_SENTENCE_END.split(bare, maxsplit=1)[0])
    words = [_without_courtesy(bare)]
    if first_sentence not in _OFTEN_OTHERWISE:
        words.append(first_sentence)
    keywords = (WORDS.get(word) for word in words)
    return next((each for each in keywords if each and each.word is Word.STOP), None)


def _without_courtesy(text: str) -> str:
    return "".join(word for word in _PUNCTUATION.split(text) if word not in _COURTESY)


def evidence_text(text: str) -> str:
    """Return the first 200 characters of a message without punctuation, to be kept as evidence."""
    return _PUNCTUATION.sub(" ", text[:200]).strip()
