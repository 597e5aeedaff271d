"""Texts as SMSCs take them: alphabets (§5.2.19), and long texts in several messages.

| alphabet | data_coding | alone | each of several |
|---|---|---|---|
| GSM 03.38, a septet a byte | 0 | 160 | 153 |
| Latin-1 | 3 | 140 | 134 |
| UCS-2 | 8 | 70 UTF-16 units | 67 |

A character is never split: neither the escape of GSM 03.38 nor a surrogate pair. What an alphabet
does not have goes as UCS-2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from rme.core import gsm

UCS2 = 0x08
_BINARY = frozenset({0x02, 0x04})
_HEADED = 0x40
"""Of `esm_class`: the text begins with a user data header (§5.2.12)."""


class Alphabet(StrEnum):
    """What a text is written in where it can be."""

    GSM = "GSM"
    LATIN1 = "LATIN1"
    UCS2 = "UCS2"


CODINGS = {Alphabet.GSM: 0x00, Alphabet.LATIN1: 0x03, Alphabet.UCS2: UCS2}
_BYTES = {0x00: (160, 153), 0x03: (140, 134), UCS2: (140, 134)}


@dataclass(frozen=True, slots=True)
class Written:
    """An encoded text, character by character."""

    coding: int
    characters: Sequence[bytes]

    @property
    def whole(self) -> bytes:
        return b"".join(self.characters)

    def parts(self) -> list[bytes]:
        """Give the text as messages that can be sent, one if it fits."""
        alone, each = _BYTES[self.coding]
        if sum(map(len, self.characters)) <= alone:
            return [self.whole]
        parts = [bytearray()]
        for character in self.characters:
            if len(parts[-1]) + len(character) > each:
                parts.append(bytearray())
            parts[-1] += character
        return [bytes(part) for part in parts]


def write(text: str, alphabet: Alphabet) -> Written:
    """Encode a text in an alphabet, or as UCS-2; lone surrogates become question marks."""
    if alphabet is Alphabet.GSM and gsm.CHARACTERS.issuperset(text):
        return Written(CODINGS[alphabet], gsm.septets(text))
    if alphabet is Alphabet.LATIN1 and all(character <= "\xff" for character in text):
        return Written(CODINGS[alphabet], [character.encode("latin-1") for character in text])
    return Written(UCS2, [_utf16(character) for character in text])


def read(data: bytes, coding: int, alphabet: Alphabet, esm_class: int = 0) -> str:
    """Read what a person wrote; coding 0 is in the alphabet that the SMSC was set up with."""
    if esm_class & _HEADED and data:
        data = data[1 + data[0] :]
    if coding in _BINARY:
        return ""
    if coding == UCS2:
        return data.decode("utf-16-be", "replace")
    if coding == 0 and alphabet is Alphabet.GSM:
        return gsm.decode(data)
    return data.decode("latin-1")


def header(reference: int, total: int, number: int) -> bytes:
    """Write the user data header of one of several (3GPP TS 23.040 §9.2.3.24.1)."""
    return bytes([5, 0, 3, reference & 0xFF, total, number])


def _utf16(character: str) -> bytes:
    return character.encode("utf-16-be", "replace")
