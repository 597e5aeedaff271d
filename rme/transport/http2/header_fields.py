"""Header fields of HTTP/2 (HPACK, RFC 7541), without a dynamic table on either side.

Requests use literals that enter no table: this takes some bytes more, but the two sides share no
state, and guesses cannot be measured against it (§7.1). The settings forbid servers a table too, so
that each block can be decoded alone, and only when its fields are needed.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from hpack import huffman_table
from hpack.table import HeaderTable

_SECRET = frozenset({"authorization", "cookie", "proxy-authorization"})
"""Fields that proxies must not index either (§7.1.3)."""
_TABLE = [(name.decode(), value.decode()) for name, value in HeaderTable.STATIC_TABLE]
_STATIC = {name: position for position, (name, _) in enumerate(_TABLE, 1)}
_LENGTHS = [bytes([length]) for length in range(127)]
_STATUS = {
    bytes([0x80 | position]): int(value)
    for position, (name, value) in enumerate(_TABLE, 1)
    if name == ":status"
}
_NO_TABLE = b"\x20"
"""The table size update (to 0) that a server without a table may begin with (§6.3)."""

METHOD_POST, SCHEME_HTTPS, PATH_NAME = b"\x83", b"\x87", b"\x04"
"""`:method: METHOD_POST`, `:scheme: https`, and the name `:path`."""


class InvalidHeaderBlock(Exception):
    """A block that cannot be decoded."""


def field(name: str, value: str) -> bytes:
    """Return a field, encoded. Its name may be in any case."""
    return _name(name) + text(value)


def block(fields: Iterable[tuple[str, str]]) -> bytes:
    """Return fields, encoded."""
    return b"".join([_name(name) + text(value) for name, value in fields])


def text(value: str) -> bytes:
    """Return an ASCII text, encoded (§5.2)."""
    raw = value.encode("ascii")
    length = len(raw)
    return (_LENGTHS[length] if length < 127 else _integer(length, 7, 0)) + raw


@lru_cache(maxsize=512)
def _name(name: str) -> bytes:
    name = name.lower()
    kind = 0x10 if name in _SECRET else 0x00
    position = _STATIC.get(name)
    return _integer(position, 4, kind) if position else bytes([kind]) + text(name)


def _integer(value: int, bits: int, first: int) -> bytes:
    """Return an integer, encoded after the first bits of a byte (§5.1)."""
    maximum = (1 << bits) - 1
    if value < maximum:
        return bytes([first | value])
    encoded, value = bytearray([first | maximum]), value - maximum
    while value >= 128:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


CONTENT_LENGTH_NAME = _name("content-length")
"""The encoded name; its value follows."""


def status(block: bytes) -> int:
    """Return the status of a response. Raises InvalidHeaderBlock."""
    common_status = _STATUS.get(block.removeprefix(_NO_TABLE)[:1])
    if common_status is not None:
        return common_status
    name, value = next(_read(block), ("", ""))  # it has to come first (RFC 9113 §8.3)
    if name == ":status" and len(value) == 3 and value.isdecimal():
        return int(value)
    raise InvalidHeaderBlock


def _read(block: bytes) -> Iterator[tuple[str, str]]:
    """Return field by field (§6), as far as they are needed. Raises InvalidHeaderBlock."""
    position, has_fields = 0, False
    while position < len(block):
        first = block[position]
        if first & 0x80:
            number, position = _number(block, position, 7)
            yield _entry(number)
        elif first & 0xE0 == 0x20:  # a table size update: it must be 0, and come first
            number, position = _number(block, position, 5)
            if number or has_fields:
                raise InvalidHeaderBlock
            continue
        else:
            number, position = _number(block, position, 6 if first & 0x40 else 4)
            name, position = (_entry(number)[0], position) if number else _text(block, position)
            value, position = _text(block, position)
            yield name, value
        has_fields = True


def _entry(number: int) -> tuple[str, str]:
    if 0 < number <= len(_TABLE):
        return _TABLE[number - 1]
    raise InvalidHeaderBlock


def _number(block: bytes, position: int, bits: int) -> tuple[int, int]:
    """Return an integer (§5.1) in the last bits of a byte and the next bytes, and its end."""
    maximum = (1 << bits) - 1
    part = block[position : position + 6]
    value = part[0] & maximum if part else maximum
    if value < maximum:
        return value, position + 1
    for count, byte in enumerate(part[1:]):
        value += (byte & 127) << 7 * count
        if byte < 128:
            return value, position + 2 + count
    raise InvalidHeaderBlock


def _text(block: bytes, position: int) -> tuple[str, int]:
    """Return a text (§5.2) and its end."""
    length, begin = _number(block, position, 7)
    end = begin + length
    if end > len(block):
        raise InvalidHeaderBlock
    raw = block[begin:end]
    if block[position] & 0x80:
        raw = _huffman_short(raw) if length < 32 else _huffman_decoded(raw)
    return raw.decode("latin-1"), end


def _huffman_decoded(raw: bytes) -> bytes:
    """Decode the Huffman code (§5.2)."""
    state, complete, parts = 0, True, []
    for byte in raw:
        state, complete, part = _step(state, byte)
        parts.append(part)
    if not complete:
        raise InvalidHeaderBlock
    return b"".join(parts)


_huffman_short = lru_cache(maxsize=1024)(_huffman_decoded)
"""The same for short texts, cached: the server's name and the date are in every response."""


# hpack decodes half a byte at a time, which takes five times as long. Push services return a URL
# for each message, and decoding it would take as long as everything else for a message.
@lru_cache(maxsize=16_384)
def _step(state: int, byte: int) -> tuple[int, bool, bytes]:
    """Return the state after a byte, whether a text may end there, and the decoded symbols."""
    decoded = bytearray()
    flags = 0
    for half in (byte >> 4, byte & 15):
        state, flags, symbol = huffman_table.HUFFMAN_TABLE[state * 16 + half]
        if flags & huffman_table.HUFFMAN_FAIL:
            raise InvalidHeaderBlock
        if flags & huffman_table.HUFFMAN_EMIT_SYMBOL:
            decoded.append(symbol)
    return state, bool(flags & huffman_table.HUFFMAN_COMPLETE), bytes(decoded)


class Fields(Mapping[str, str]):
    """The fields of a response by name, decoded on first use: most are never used.

    Of a repeated field the last counts. A block that cannot be decoded has no fields.
    """

    __slots__ = ("_block", "_parsed")

    def __init__(self, block: bytes) -> None:
        self._block = block
        self._parsed: dict[str, str] | None = None

    def __getitem__(self, name: str) -> str:
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    @property
    def _fields(self) -> dict[str, str]:
        if self._parsed is None:
            try:
                fields = dict(_read(self._block))
            except InvalidHeaderBlock:
                fields = {}
            self._parsed = {name: value for name, value in fields.items() if name[:1] != ":"}
        return self._parsed
