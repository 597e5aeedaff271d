"""The normal form of company names, which look-ups compare."""

import re
import unicodedata

_FORMS = (
    "ab ag aps as asa bv co company corp corporation doo eg ek eood eurl ev gbr gmbh gmbhcokg "
    "inc incorporated kft kg kgaa kk lda limited llc llp lp ltd ltda mbh nv ohg ood oy oyj plc "
    "pte pty pvt sa sagl sarl sas sasu sc sca se sia sl slu spa spj spk spzoo sprl srl sro ug "
    "uab zrt"
)
LEGAL_FORMS = frozenset(_FORMS.split())
"""Legal forms at the end of a company's name, letters only: `S.p.A.` is spa."""

LENGTH = 255
"""Maximum length of a folded name: some characters fold to several."""
MAX_INPUT = 1000
"""How many characters of a name are folded."""

_WORDS = re.compile(r"[^\W_]+")
_WORD_BREAKS = re.compile(r"[.\s]")
_INITIALS = re.compile(r"\b(?:\w\.\s?){2,}(?:\w\b)?")


def account_name(name: str) -> str:
    """Return a company's name without case, accents, spaces, punctuation and legal form.

    Not empty if the name has a letter or a digit: a name that is only a legal form is kept.
    """
    # Upper case first: it maps the dotless i to I, which `casefold` does not.
    # Cut first: ordering many combining marks on one letter takes quadratic time.
    plain = unicodedata.normalize("NFKD", name[:MAX_INPUT].upper().casefold())
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    plain = plain.replace("'", "").replace("’", "")
    words = _WORDS.findall(_INITIALS.sub(_join_initials, plain))
    while len(words) > 1 and (count := _legal_form_words(words)):
        del words[-count:]
    return ("".join(words) or plain.strip())[:LENGTH]


def _join_initials(match: re.Match[str]) -> str:
    """Return initials as one word: `s.p.a.` is `spa`."""
    return _WORD_BREAKS.sub("", match[0]) + " "


def _legal_form_words(words: list[str]) -> int:
    """Return how many words at the end are a legal form (`sp z o o`, `pty`); never all."""
    for count in range(min(4, len(words) - 1), 0, -1):
        if "".join(words[-count:]) in LEGAL_FORMS:
            return count
    return 0
