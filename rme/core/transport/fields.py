"""Header fields as they stand in HTTP/2 (HPACK, RFC 7541), without a table on either side.

What we write are literals that enter no table: some bytes more, and nothing that two sides must
agree about or that a guess could be measured against (§7.1). Servers are told to keep none for us
either, so that a block can be read by itself, when somebody asks.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import hpack
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


class Unreadable(Exception):
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
    for name, value in _read(block):
        if name == ":status" and len(value) == 3 and value.isdecimal():
            return int(value)
        break  # it has to come first (RFC 9113 §8.3)
    raise Unreadable


def _read(block: bytes) -> Iterable[tuple[str, str]]:
    decoder = hpack.Decoder(max_header_list_size=65_536)
    decoder.header_table_size = decoder.max_allowed_table_size = 0
    try:
        fields = decoder.decode(block, raw=True)
    except hpack.HPACKError as error:
        raise Unreadable from error
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in fields]


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
            except Unreadable:
                found = {}
            self._known = {name: value for name, value in found.items() if name[:1] != ":"}
        return self._known
