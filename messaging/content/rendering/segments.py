"""The encoding of an SMS and the number of its segments (3GPP TS 23.038, TS 23.040 §9.2.3.24).

GSM-7: 160 septets in one segment, 153 in each of several; a character of the extension table takes
two septets, which stay together. UCS-2: 70 UTF-16 units in one, 67 in each of several; a surrogate
pair stays together. So a segment may have one unit less than it could.
"""

import re
from dataclasses import dataclass

from rme.transport import gsm

_GSM = re.compile(f"[{re.escape(gsm.BASIC + gsm.EXTENSION)}]*")
_ESCAPED = re.compile(f"[{re.escape(gsm.EXTENSION)}]")
_PAIRED = re.compile("[\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class SmsSize:
    """`units` are septets (GSM-7) or UTF-16 units (UCS-2)."""

    encoding: str
    characters: int
    units: int
    segments: int


def segments(text: str) -> SmsSize:
    """Return the encoding and the size of a text as an SMS."""
    if _GSM.fullmatch(text):
        return _count("GSM-7", text, _ESCAPED, single=160, part=153)
    return _count("UCS-2", text, _PAIRED, single=70, part=67)


def non_gsm_characters(text: str) -> list[str]:
    """Return the characters that require UCS-2, each once, in their order."""
    return list(dict.fromkeys(character for character in text if not _GSM.fullmatch(character)))


def _count(encoding: str, text: str, double: re.Pattern[str], *, single: int, part: int) -> SmsSize:
    units = len(text) + len(double.findall(text))
    if units <= single:
        return SmsSize(encoding, len(text), units, 1)
    # Units before each doubled character: its place in the text, the doubled ones before it, and
    # a unit left free in every segment whose last place it would not have fitted into.
    free = 0
    for index, match in enumerate(double.finditer(text)):
        if (match.start() + index + free) % part == part - 1:
            free += 1
    return SmsSize(encoding, len(text), units, -(-(units + free) // part))
