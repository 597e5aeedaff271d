"""Frames of HTTP/2 (RFC 9113 §4, §6): what is on the wire, and nothing of what it means."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

DATA, HEADERS, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    0, 1, 3, 4, 5, 6, 7, 8, 9,
)  # fmt: skip

END_STREAM = ACK = 0x1
END_HEADERS, PADDED, PRIORITY = 0x4, 0x8, 0x20

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE = (
    1, 2, 3, 4, 5,
)  # fmt: skip

NO_ERROR, CANCEL, REFUSED_STREAM = 0x0, 0x8, 0x7

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
WINDOW = 65_535
"""The bytes that may be on their way before anybody says otherwise (§6.9.2)."""
SIZE = 16_384
"""The longest frame that we take, and that every server takes (§4.2)."""
LONGEST = 2**24 - 1
"""The longest frame that there can be."""
GREATEST = 2**31 - 1

_HEAD = struct.Struct(">HBBBI")
_SETTING = struct.Struct(">HI")


class ProtocolError(Exception):
    """What came is not HTTP/2."""


class Frame(NamedTuple):
    """One frame. `stream` 0: the connection's."""

    kind: int
    flags: int
    stream: int
    payload: bytes


def frame(kind: int, flags: int, stream: int, payload: bytes | memoryview = b"") -> bytes:
    """Write a frame."""
    length = len(payload)
    return _HEAD.pack(length >> 8, length & 255, kind, flags, stream) + payload


def number(kind: int, stream: int, value: int) -> bytes:
    """Write a frame whose payload is one number of 32 bits."""
    return frame(kind, 0, stream, value.to_bytes(4, "big"))


def settings(*pairs: tuple[int, int]) -> bytes:
    """Write a frame of settings."""
    return frame(SETTINGS, 0, 0, b"".join(_SETTING.pack(*pair) for pair in pairs))


def read_settings(payload: bytes) -> Iterator[tuple[int, int]]:
    """Read the pairs of a frame of settings. Raises Broken."""
    if len(payload) % _SETTING.size:
        raise ProtocolError
    return _SETTING.iter_unpack(payload)


def read_number(payload: bytes, start: int = 0) -> int:
    """Read a number of 31 bits. Raises Broken."""
    if len(payload) < start + 4:
        raise ProtocolError
    return int.from_bytes(payload[start : start + 4], "big") & GREATEST


def take(buffer: bytearray) -> Iterator[Frame]:
    """Take the whole frames out of a buffer. Raises Broken for one that is too long."""
    start, end = 0, len(buffer)
    try:
        while end - start >= _HEAD.size:
            high, low, kind, flags, stream = _HEAD.unpack_from(buffer, start)
            length = high << 8 | low
            if length > SIZE:
                raise ProtocolError
            payload = start + _HEAD.size
            if payload + length > end:
                return
            start = payload + length
            yield Frame(kind, flags, stream & GREATEST, bytes(buffer[payload:start]))
    finally:
        del buffer[:start]


def unpadded(one: Frame) -> bytes:
    """Give what a frame holds, without padding and priority (§6.1, §6.2). Raises Broken."""
    if not one.flags & (PADDED | PRIORITY):
        return one.payload
    start, end = 0, len(one.payload)
    if one.flags & PADDED:
        start, end = 1, end - (one.payload[0] if one.payload else 0)
    if one.kind == HEADERS and one.flags & PRIORITY:
        start += 5
    if start > end:
        raise ProtocolError
    return one.payload[start:end]
