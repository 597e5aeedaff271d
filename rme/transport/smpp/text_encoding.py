"""Texts as SMSCs take them: alphabets (§5.2.19), and long texts in several messages.

| alphabet | data_coding | alone | each of several |
|---|---|---|---|
| GSM 03.38, a septet a byte | 0 | 160 | 153 |
| Latin-1 | 3 | 140 | 134 |
| UCS-2 | 8 | 70 UTF-16 units | 67 |

A character is never split: neither the escape of GSM 03.38 nor a surrogate pair. What an alphabet
does not have goes as UCS-2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from rme.transport import gsm
from rme.transport.smpp.pdu import Tag

UCS2 = 0x08
_BINARY = frozenset({0x02, 0x04})
_HEADED = 0x40
"""Of `esm_class`: the text begins with a user data header (§5.2.12)."""


class Alphabet(StrEnum):
    """What a text is written in where it can be."""

    GSM = "GSM"
    LATIN1 = "LATIN1"
    UCS2 = "UCS2"


class LongTextMethod(StrEnum):
    """How a long text goes: parts with headers, parts with parameters, or as one payload."""

    UDH = "UDH"
    SAR = "SAR"
    PAYLOAD = "PAYLOAD"


CODINGS = {Alphabet.GSM: 0x00, Alphabet.LATIN1: 0x03, Alphabet.UCS2: UCS2}
_BYTES = {0x00: (160, 153), 0x03: (140, 134), UCS2: (140, 134)}


@dataclass(frozen=True, slots=True)
class EncodedText:
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


def encode(text: str, alphabet: Alphabet) -> EncodedText:
    """Encode a text in an alphabet, or as UCS-2; lone surrogates become question marks."""
    if alphabet is Alphabet.GSM and gsm.CHARACTERS.issuperset(text):
        return EncodedText(CODINGS[alphabet], gsm.septets(text))
    if alphabet is Alphabet.LATIN1 and all(character <= "\xff" for character in text):
        return EncodedText(CODINGS[alphabet], [character.encode("latin-1") for character in text])
    return EncodedText(UCS2, [_utf16(character) for character in text])


def decode(data: bytes, coding: int, alphabet: Alphabet, esm_class: int = 0) -> str:
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


PartPosition = tuple[int, int, int]
"""The reference, how many parts there are, and which this is."""


def part_position(
    data: bytes, parameters: Mapping[int, bytes], esm_class: int = 0
) -> PartPosition | None:
    """Say which part of a long text a message is, by its header or else its parameters.

    None for a text that is alone, and for a place that cannot be: it is to be ignored then (3GPP TS
    23.040 §9.2.3.24.1).
    """
    found = _in_header(data[1 : 1 + data[0]]) if esm_class & _HEADED and data else None
    found = found or _in_parameters(parameters)
    return found if found and 1 <= found[2] <= found[1] > 1 else None


def _in_header(elements: bytes) -> PartPosition | None:
    """Read the header's elements: 0 has a reference of 8 bits, and 8 one of 16."""
    found = None
    while len(elements) >= 2:
        kind, length = elements[:2]
        value, elements = elements[2 : 2 + length], elements[2 + length :]
        if len(value) == length == {0x00: 3, 0x08: 4}.get(kind):
            found = int.from_bytes(value[:-2], "big"), value[-2], value[-1]
    return found


def _in_parameters(parameters: Mapping[int, bytes]) -> PartPosition | None:
    """Read `sar_msg_ref_num` and its like (§5.3.2.22 to 24): all three, or nothing."""
    tags = (Tag.SAR_MSG_REF_NUM, Tag.SAR_TOTAL_SEGMENTS, Tag.SAR_SEGMENT_SEQNUM)
    reference, total, number = (parameters.get(tag, b"") for tag in tags)
    if (len(reference), len(total), len(number)) != (2, 1, 1):
        return None
    return int.from_bytes(reference, "big"), total[0], number[0]


@dataclass(frozen=True, slots=True)
class TextPart:
    """What one `submit_sm` carries of a text."""

    text: bytes
    coding: int
    esm_class: int = 0
    parameters: Mapping[int, bytes] = field(default_factory=dict)
    payload: bool = False


def split(text: str, alphabet: Alphabet, way: LongTextMethod, reference: int) -> list[TextPart]:
    """Write a text as what is to be sent; `reference` holds parts together (16 bits).

    Raises ValueError for more than 255 parts or 65,535 bytes.
    """
    written = encode(text, alphabet)
    if len(written.whole) > 0xFFFF:
        raise ValueError("a text too long to be sent")
    if way is LongTextMethod.PAYLOAD:
        return [TextPart(written.whole, written.coding, payload=True)]
    parts = written.parts()
    if len(parts) > 255:
        raise ValueError("a text of too many parts")
    if len(parts) == 1:
        return [TextPart(parts[0], written.coding)]
    make = _headed if way is LongTextMethod.UDH else _numbered
    return [
        make(part, written.coding, (reference, len(parts), number))
        for number, part in enumerate(parts, start=1)
    ]


def _headed(part: bytes, coding: int, place: PartPosition) -> TextPart:
    """Begin a part with a user data header (3GPP TS 23.040 §9.2.3.24.1)."""
    reference, total, number = place
    header = bytes([5, 0, 3, reference & 0xFF, total, number])
    return TextPart(header + part, coding, esm_class=_HEADED)


def _numbered(part: bytes, coding: int, place: PartPosition) -> TextPart:
    reference, total, number = place
    parameters: dict[int, bytes] = {
        Tag.SAR_MSG_REF_NUM: reference.to_bytes(2, "big"),
        Tag.SAR_TOTAL_SEGMENTS: bytes([total]),
        Tag.SAR_SEGMENT_SEQNUM: bytes([number]),
    }
    return TextPart(part, coding, parameters=parameters)


def _utf16(character: str) -> bytes:
    return character.encode("utf-16-be", "replace")
