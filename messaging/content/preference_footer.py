"""The link to the preference page at the end of a mail that doesn't show it."""

import re
from collections.abc import Mapping
from html import escape

LABELS: Mapping[str, str] = {
    "en": "Unsubscribe or choose what you get",
    "de": "Abbestellen oder auswählen, was Sie erhalten",
    "fr": "Se désabonner ou choisir ce que vous recevez",
    "it": "Annulla l'iscrizione o scegli cosa ricevere",
    "es": "Cancelar la suscripción o elegir qué recibir",
}
"""By ISO 639-1 code."""
DEFAULT_LANGUAGE = "en"
_ENDS = re.compile(r"<!--.*?(?P<closed>-->|\Z)|</(?:body|html)\b", re.IGNORECASE | re.DOTALL)
"""Comments, and the tags before which the body ends."""


def label(*languages: str | None) -> str:
    """Return the label of the link in the first of these languages that has one."""
    codes = [(language or "")[:2].lower() for language in languages]
    return LABELS[next((code for code in codes if code in LABELS), DEFAULT_LANGUAGE)]


def add_to_text(text: str, url: str, words: str) -> str:
    """Return a plain text with the link at its end, unless it has it."""
    if not text.strip() or url in text:
        return text
    return f"{text.rstrip()}\n\n{words}: {url}\n"


def add_to_html(html: str, url: str, words: str) -> str:
    """Return HTML with the link at the end of its body, unless it has it."""
    if not html.strip() or url in html:
        return html
    link = f'<p style="font-size:12px"><a href="{escape(url)}">{escape(words)}</a></p>'
    end = _end_of_body(html)
    return html[:end] + link + html[end:]


def _end_of_body(html: str) -> int:
    """Return where the visible part of an HTML document ends."""
    for match in _ENDS.finditer(html):
        if match["closed"] != "-->":  # an end tag, or a comment that never ends
            return match.start()
    return len(html)
