"""Header fields as they stand in HTTP/2 (HPACK, RFC 7541), without a table on either side.

What we write are literals that enter no table: some bytes more, and nothing that two sides must
agree about or that a guess could be measured against (§7.1). Servers are told to keep none for us
either, so that a block can be read by itself, when somebody asks.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from hpack import huffman_table
from hpack.table import HeaderTable

_SECRET = frozenset({"authorization", "cookie", "proxy-authorization"})
"""Never to enter a table on the way either (§7.1.3)."""
_TABLE = [(name.decode(), value.decode()) for name, value in HeaderTable.STATIC_TABLE]
_STATIC = {name: place for place, (name, _) in enumerate(_TABLE, 1)}
_LENGTHS = [bytes([length]) for length in range(127)]
_STATUS = {
    bytes([0x80 | place]): int(value)
    for place, (name, value) in enumerate(_TABLE, 1)
    if name == ":status"
}
_NO_TABLE = b"\x20"
"""What a server begins with that was told to keep no table (§6.3)."""

POST, HTTPS, PATH = b"\x83", b"\x87", b"\x04"
"""`:method: POST`, `:scheme: https`, and the name `:path`."""


class InvalidHeaderBlock(Exception):
    """A block that is none."""


def field(name: str, value: str) -> bytes:
    """Write a field. Its name may be in any case."""
    return _name(name) + text(value)


def block(fields: Iterable[tuple[str, str]]) -> bytes:
    """Write fields."""
    return b"".join([_name(name) + text(value) for name, value in fields])


def text(value: str) -> bytes:
    """Write a text (§5.2) of ASCII."""
    raw = value.encode("ascii")
    length = len(raw)
    return (_LENGTHS[length] if length < 127 else _integer(length, 7, 0)) + raw


@lru_cache(maxsize=512)
def _name(name: str) -> bytes:
    name = name.lower()
    kind = 0x10 if name in _SECRET else 0x00
    place = _STATIC.get(name)
    return _integer(place, 4, kind) if place else bytes([kind]) + text(name)


def _integer(value: int, bits: int, first: int) -> bytes:
    """Write an integer (§5.1) behind the first bits of a byte."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    written, value = bytearray([first | most]), value - most
    while value >= 128:
        written.append(value & 127 | 128)
        value >>= 7
    written.append(value)
    return bytes(written)


LENGTH = _name("content-length")
"""A name, to be followed by a text."""


def status(block: bytes) -> int:
    """Read the status of an answer. Raises Unreadable."""
    known = _STATUS.get(block.removeprefix(_NO_TABLE)[:1])
    if known is not None:
        return known
    name, value = next(_read(block), ("", ""))  # it has to come first (RFC 9113 §8.3)
    if name == ":status" and len(value) == 3 and value.isdecimal():
        return int(value)
    raise InvalidHeaderBlock


def _read(block: bytes) -> Iterator[tuple[str, str]]:
    """Read field by field (§6): with no table each stands for itself. Raises Unreadable."""
    place, begun = 0, False
    while place < len(block):
        first = block[place]
        if first & 0x80:
            number, place = _number(block, place, 7)
            yield _entry(number)
        elif first & 0xE0 == 0x20:  # what the server says of its table: that there is none
            number, place = _number(block, place, 5)
            if number or begun:
                raise InvalidHeaderBlock
            continue
        else:
            number, place = _number(block, place, 6 if first & 0x40 else 4)
            name, place = (_entry(number)[0], place) if number else _text(block, place)
            value, place = _text(block, place)
            yield name, value
        begun = True


def _entry(number: int) -> tuple[str, str]:
    if 0 < number <= len(_TABLE):
        return _TABLE[number - 1]
    raise InvalidHeaderBlock


def _number(block: bytes, place: int, bits: int) -> tuple[int, int]:
    """Read an integer (§5.1) in the last bits of a byte and what follows; say what is behind it."""
    most = (1 << bits) - 1
    part = block[place : place + 6]
    value = part[0] & most if part else most
    if value < most:
        return value, place + 1
    for count, byte in enumerate(part[1:]):
        value += (byte & 127) << 7 * count
        if byte < 128:
            return value, place + 2 + count
    raise InvalidHeaderBlock


def _text(block: bytes, place: int) -> tuple[str, int]:
    """Read a text (§5.2); say what is behind it."""
    length, begin = _number(block, place, 7)
    end = begin + length
    if end > len(block):
        raise InvalidHeaderBlock
    raw = block[begin:end]
    if block[place] & 0x80:
        raw = _known(raw) if length < 32 else _unpacked(raw)
    return raw.decode("latin-1"), end


def _unpacked(raw: bytes) -> bytes:
    """Undo the Huffman code (§5.2)."""
    state, complete, parts = 0, True, []
    for byte in raw:
        state, complete, part = _step(state, byte)
        parts.append(part)
    if not complete:
        raise InvalidHeaderBlock
    return b"".join(parts)


_known = lru_cache(maxsize=1024)(_unpacked)
"""The same, for short texts: what a server is and what day it is stands in every answer."""


# hpack reads half a byte at a time, which takes five times as long: with letters of push services,
# which name each message by a URL, as long as all else that is done for a message.
@lru_cache(maxsize=16_384)
def _step(state: int, byte: int) -> tuple[int, bool, bytes]:
    """Give the state after a byte, whether a text may end there, and the letters that it ended."""
    letters = bytearray()
    flags = 0
    for half in (byte >> 4, byte & 15):
        state, flags, letter = huffman_table.HUFFMAN_TABLE[state * 16 + half]
        if flags & huffman_table.HUFFMAN_FAIL:
            raise InvalidHeaderBlock
        if flags & huffman_table.HUFFMAN_EMIT_SYMBOL:
            letters.append(letter)
    return state, bool(flags & huffman_table.HUFFMAN_COMPLETE), bytes(letters)


class Fields(Mapping[str, str]):
    """The fields of an answer by their names, read when they are asked for: mostly nobody does.

    Of one given twice the last counts. A block that cannot be read has none.
    """

    __slots__ = ("_block", "_known")

    def __init__(self, block: bytes) -> None:
        self._block = block
        self._known: dict[str, str] | None = None

    def __getitem__(self, name: str) -> str:
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    @property
    def _fields(self) -> dict[str, str]:
        if self._known is None:
            try:
                found = dict(_read(self._block))
            except InvalidHeaderBlock:
                found = {}
            self._known = {name: value for name, value in found.items() if name[:1] != ":"}
        return self._known
