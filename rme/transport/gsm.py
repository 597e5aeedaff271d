"""The alphabet of SMS, GSM 03.38: the default table and its extension (3GPP TS 23.038 §6.2.1).

Each byte is one septet, unpacked, as SMSCs send and receive them.
"""

_ESCAPE = 0x1B
BASIC = (
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
"""The default table in its order, without the escape code."""
_EXTENDED = {
    0x0A: "\f",
    0x14: "^",
    0x28: "{",
    0x29: "}",
    0x2F: "\\",
    0x3C: "[",
    0x3D: "~",
    0x3E: "]",
    0x40: "|",
    0x65: "€",
}
EXTENSION = "".join(_EXTENDED.values())
CHARACTERS = frozenset(BASIC + EXTENSION)

_TABLE = f"{BASIC[:_ESCAPE]} {BASIC[_ESCAPE:]}"
_SEPTETS = {character: bytes([code]) for code, character in enumerate(_TABLE) if code != _ESCAPE}
_SEPTETS |= {character: bytes([_ESCAPE, code]) for code, character in _EXTENDED.items()}


def septets(text: str) -> list[bytes]:
    """Return the one or two septets of each character. Raises KeyError for others than these."""
    return [_SEPTETS[character] for character in text]


def decode(data: bytes) -> str:
    """Decode septets. Unknown codes become spaces, as the standard requires."""
    characters, escaped = [], False
    for code in data:
        if code == _ESCAPE and not escaped:
            escaped = True
            continue
        table = _TABLE[code] if code < len(_TABLE) else " "
        characters.append(_EXTENDED.get(code, table) if escaped else table)
        escaped = False
    return "".join(characters)
