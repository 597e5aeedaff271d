"""Encoding of texts for SMSCs: alphabets (§5.2.19), and long texts in several messages.

| alphabet | data_coding | alone | each of several |
|---|---|---|---|
| GSM 03.38, a septet a byte | 0 | 160 | 153 |
| Latin-1 | 3 | 140 | 134 |
| UCS-2 | 8 | 70 UTF-16 units | 67 |

A character is never split: neither the escape of GSM 03.38 nor a surrogate pair. A text with other
characters than the alphabet's is sent as UCS-2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from rme.transport import gsm
from rme.transport.smpp.pdu import Tag

UCS2 = 0x08
_BINARY = frozenset({0x02, 0x04})
_HEADED = 0x40
"""The flag in `esm_class` of a text that begins with a user data header (§5.2.12)."""


class Alphabet(StrEnum):
    """The alphabet that a text is encoded in if possible."""

    GSM = "GSM"
    LATIN1 = "LATIN1"
    UCS2 = "UCS2"


class LongTextMethod(StrEnum):
    """How a long text is sent: in parts with headers or with parameters, or as one payload."""

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
    def data(self) -> bytes:
        return b"".join(self.characters)

    def parts(self) -> list[bytes]:
        """Return the text as one message if it fits, else as several."""
        single_size, part_size = _BYTES[self.coding]
        if sum(map(len, self.characters)) <= single_size:
            return [self.data]
        parts = [bytearray()]
        for character in self.characters:
            if len(parts[-1]) + len(character) > part_size:
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
    """Return the text of an inbound SMS; coding 0 is the alphabet configured for the SMSC."""
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
"""The reference, the number of parts, and the number of this one."""


def part_position(
    data: bytes, parameters: Mapping[int, bytes], esm_class: int = 0
) -> PartPosition | None:
    """Return which part of a long text a message is, by its header or else its parameters.

    Returns None for a text in one part, and for an impossible position, which is to be ignored
    (3GPP TS 23.040 §9.2.3.24.1).
    """
    position = _in_header(data[1 : 1 + data[0]]) if esm_class & _HEADED and data else None
    position = position or _in_parameters(parameters)
    return position if position and 1 <= position[2] <= position[1] > 1 else None


def _in_header(elements: bytes) -> PartPosition | None:
    """Parse the header's elements: 0 has a reference of 8 bits, and 8 one of 16."""
    position = None
    while len(elements) >= 2:
        kind, length = elements[:2]
        value, elements = elements[2 : 2 + length], elements[2 + length :]
        if len(value) == length == {0x00: 3, 0x08: 4}.get(kind):
            position = int.from_bytes(value[:-2], "big"), value[-2], value[-1]
    return position


def _in_parameters(parameters: Mapping[int, bytes]) -> PartPosition | None:
    """Parse `sar_msg_ref_num` and the two others (§5.3.2.22 to 24); None unless all are valid."""
    tags = (Tag.SAR_MSG_REF_NUM, Tag.SAR_TOTAL_SEGMENTS, Tag.SAR_SEGMENT_SEQNUM)
    reference, total, number = (parameters.get(tag, b"") for tag in tags)
    if (len(reference), len(total), len(number)) != (2, 1, 1):
        return None
    return int.from_bytes(reference, "big"), total[0], number[0]


@dataclass(frozen=True, slots=True)
class TextPart:
    """The part of a text that one `submit_sm` carries."""

    text: bytes
    coding: int
    esm_class: int = 0
    parameters: Mapping[int, bytes] = field(default_factory=dict)
    payload: bool = False


def split(text: str, alphabet: Alphabet, method: LongTextMethod, reference: int) -> list[TextPart]:
    """Encode and split a text; all its parts carry `reference` (16 bits).

    Raises ValueError for more than 255 parts or 65,535 bytes.
    """
    encoded = encode(text, alphabet)
    if len(encoded.data) > 0xFFFF:
        raise ValueError("a text too long to be sent")
    if method is LongTextMethod.PAYLOAD:
        return [TextPart(encoded.data, encoded.coding, payload=True)]
    parts = encoded.parts()
    if len(parts) > 255:
        raise ValueError("a text of too many parts")
    if len(parts) == 1:
        return [TextPart(parts[0], encoded.coding)]
    make = _headed if method is LongTextMethod.UDH else _numbered
    return [
        make(part, encoded.coding, (reference, len(parts), number))
        for number, part in enumerate(parts, start=1)
    ]


def _headed(part: bytes, coding: int, position: PartPosition) -> TextPart:
    """Return a part with a user data header (3GPP TS 23.040 §9.2.3.24.1)."""
    reference, total, number = position
    header = bytes([5, 0, 3, reference & 0xFF, total, number])
    return TextPart(header + part, coding, esm_class=_HEADED)


def _numbered(part: bytes, coding: int, position: PartPosition) -> TextPart:
    reference, total, number = position
    parameters: dict[int, bytes] = {
        Tag.SAR_MSG_REF_NUM: reference.to_bytes(2, "big"),
        Tag.SAR_TOTAL_SEGMENTS: bytes([total]),
        Tag.SAR_SEGMENT_SEQNUM: bytes([number]),
    }
    return TextPart(part, coding, parameters=parameters)


def _utf16(character: str) -> bytes:
    return character.encode("utf-16-be", "replace")
