"""Frames of HTTP/2 (RFC 9113 §4, §6): their encoding, not their meaning."""

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
DEFAULT_WINDOW = 65_535
"""The initial flow-control window in bytes (§6.9.2)."""
DEFAULT_SIZE = 16_384
"""The longest frame that the package accepts, and that every server accepts (§4.2)."""
MAX_SIZE = 2**24 - 1
"""The longest frame that a server may allow."""
MAX_VALUE = 2**31 - 1

_HEAD = struct.Struct(">HBBBI")
_SETTING = struct.Struct(">HI")


class ProtocolError(Exception):
    """What was received is not HTTP/2."""


class Frame(NamedTuple):
    """One frame. `stream` is 0 for the connection itself."""

    kind: int
    flags: int
    stream: int
    payload: bytes


def frame(kind: int, flags: int, stream: int, payload: bytes | memoryview = b"") -> bytes:
    """Return a frame, encoded."""
    length = len(payload)
    return _HEAD.pack(length >> 8, length & 255, kind, flags, stream) + payload


def number(kind: int, stream: int, value: int) -> bytes:
    """Return a frame whose payload is one number of 32 bits."""
    return frame(kind, 0, stream, value.to_bytes(4, "big"))


def settings(*pairs: tuple[int, int]) -> bytes:
    """Return a SETTINGS frame."""
    return frame(SETTINGS, 0, 0, b"".join(_SETTING.pack(*pair) for pair in pairs))


def read_settings(payload: bytes) -> Iterator[tuple[int, int]]:
    """Return the pairs of a SETTINGS payload. Raises ProtocolError."""
    if len(payload) % _SETTING.size:
        raise ProtocolError
    return _SETTING.iter_unpack(payload)


def read_number(payload: bytes) -> int:
    """Return a number of 31 bits. Raises ProtocolError."""
    if len(payload) < 4:
        raise ProtocolError
    return int.from_bytes(payload[:4], "big") & MAX_VALUE


def take(buffer: bytearray) -> Iterator[Frame]:
    """Remove the complete frames from a buffer. Raises ProtocolError for one that is too long."""
    start, end = 0, len(buffer)
    try:
        while end - start >= _HEAD.size:
            high, low, kind, flags, stream = _HEAD.unpack_from(buffer, start)
            length = high << 8 | low
            if length > DEFAULT_SIZE:
                raise ProtocolError
            payload = start + _HEAD.size
            if payload + length > end:
                return
            start = payload + length
            yield Frame(kind, flags, stream & MAX_VALUE, bytes(buffer[payload:start]))
    finally:
        del buffer[:start]


def unpadded(received: Frame) -> bytes:
    """Return a payload without padding and priority (§6.1, §6.2). Raises ProtocolError."""
    if not received.flags & (PADDED | PRIORITY):
        return received.payload
    start, end = 0, len(received.payload)
    if received.flags & PADDED:
        start, end = 1, end - (received.payload[0] if received.payload else 0)
    if received.kind == HEADERS and received.flags & PRIORITY:
        start += 5
    if start > end:
        raise ProtocolError
    return received.payload[start:end]
