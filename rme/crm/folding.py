"""What look-ups compare: the spellings of an address, and names without what varies in them."""

import re
import unicodedata

import idna

_FORMS = (
    "ab ag aps as asa bv co company corp corporation doo eg ek eood eurl ev gbr gmbh gmbhcokg "
    "inc incorporated kft kg kgaa kk lda limited llc llp lp ltd ltda mbh nv ohg ood oy oyj plc "
    "pte pty pvt sa sagl sarl sas sasu sc sca se sia sl slu spa spj spk spzoo sprl srl sro ug "
    "uab zrt"
)
LEGAL_FORMS = frozenset(_FORMS.split())
"""Company forms by their letters alone, as they end a name: `S.p.A.` is spa."""

LENGTH = 255
"""How much of a folded name is kept: some letters fold to many."""
READ = 1000
"""How much of a name is folded."""

_WORDS = re.compile(r"[^\W_]+")
_WORD_BREAKS = re.compile(r"[.\s]")
_INITIALS = re.compile(r"\b(?:\w\.\s?){2,}(?:\w\b)?")


def account_name(name: str) -> str:
    """Fold a company's name: case, accents, spaces, punctuation and its legal form do not count.

    Never empty where the name has a letter or a digit: a name that is a legal form stays.
    """
    # By way of capitals: the dotless i has one (I), and is left alone by `casefold`.
    # Cut first: to order many marks on one letter takes the square of their number.
    plain = unicodedata.normalize("NFKD", name[:READ].upper().casefold())
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    plain = plain.replace("'", "").replace("’", "")
    words = _WORDS.findall(_INITIALS.sub(_joined, plain))
    while len(words) > 1 and (count := _form(words)):
        del words[-count:]
    return ("".join(words) or plain.strip())[:LENGTH]


def _joined(found: re.Match[str]) -> str:
    """Write initials as one word: `s.p.a.` is `spa`."""
    return _WORD_BREAKS.sub("", found[0]) + " "


def _form(words: list[str]) -> int:
    """Say how many words at the end are a legal form (`sp z o o`, `pty`); never all of them."""
    for count in range(min(4, len(words) - 1), 0, -1):
        if "".join(words[-count:]) in LEGAL_FORMS:
            return count
    return 0


def spellings(email: str) -> list[str]:
    """Give the ways in which a folded address may be written in lower case: with its domain as
    IDN labels, and in letters.
    """
    local, _, domain = email.rpartition("@")
    if "xn--" not in domain:
        return [email]
    try:
        return [email, f"{local}@{idna.decode(domain)}"]
    except idna.IDNAError:
        return [email]
