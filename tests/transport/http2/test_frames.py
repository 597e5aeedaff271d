"""Frames and header fields of HTTP/2, compared with hpack."""

import struct
from contextlib import suppress
from itertools import pairwise

import hpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rme.transport import Request
from rme.transport.http2 import frames, header_fields
from rme.transport.http2.frames import Frame, ProtocolError
from rme.transport.http2.stream import head

PRINTABLE = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=5000)
TOKEN = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_.!#$%&'*+^`|~", min_size=1, max_size=5000)
SOME_FRAME = st.builds(
    Frame,
    kind=st.integers(0, 255),
    flags=st.integers(0, 255),
    stream=st.integers(0, frames.MAX_VALUE),
    payload=st.binary(max_size=200),
)


def taken(parts: list[bytes]) -> list[Frame]:
    buffer, found = bytearray(), []
    for part in parts:
        buffer += part
        found += list(frames.take(buffer))
    assert buffer == b""
    return found


# Frames


@given(given_frames=st.lists(SOME_FRAME, max_size=20), cuts=st.lists(st.integers(0, 4500)))
def test_frames_cut_anywhere_are_the_same_frames(
    given_frames: list[Frame], cuts: list[int]
) -> None:
    stream = b"".join(frames.frame(*one) for one in given_frames)
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    parts = [stream[start:end] for start, end in pairwise(places)]
    assert taken(parts) == given_frames


@pytest.mark.parametrize("size", [0, 1, 255, 256, frames.DEFAULT_SIZE])
def test_frame_of_any_accepted_length_is_read(size: int) -> None:
    one = Frame(frames.DATA, 0, 1, bytes(size))
    assert taken([frames.frame(*one)]) == [one]


def test_reserved_bit_is_ignored() -> None:
    assert taken([struct.pack(">HBBBI", 0, 0, 6, 0, 0x8000_0003)]) == [Frame(6, 0, 3, b"")]


def test_too_long_frame_is_an_error_after_the_frames_before_it() -> None:
    whole = Frame(frames.PING, 0, 0, bytes(8))
    buffer = bytearray(
        frames.frame(*whole) + frames.frame(0, 0, 1, bytes(frames.DEFAULT_SIZE + 1))[:9]
    )
    found = frames.take(buffer)
    assert next(found) == whole
    with pytest.raises(ProtocolError):
        next(found)


def test_settings_are_pairs() -> None:
    (one,) = taken([frames.settings((3, 100), (4, 2**32 - 1))])
    assert list(frames.read_settings(one.payload)) == [(3, 100), (4, 2**32 - 1)]
    with pytest.raises(ProtocolError):
        frames.read_settings(one.payload[:-1])


@pytest.mark.parametrize(
    ("value", "read"), [(0, 0), (frames.MAX_VALUE, frames.MAX_VALUE), (2**32 - 1, frames.MAX_VALUE)]
)
def test_number_has_31_bits(value: int, read: int) -> None:
    (one,) = taken([frames.number(frames.WINDOW_UPDATE, 0, value)])
    assert frames.read_number(one.payload) == read


def test_too_short_number_is_an_error() -> None:
    with pytest.raises(ProtocolError):
        frames.read_number(b"\0\0\1")


@pytest.mark.parametrize(
    ("kind", "flags", "payload", "inner"),
    [
        (frames.DATA, 0, b"data", b"data"),
        (frames.DATA, frames.PADDED, b"\2data\0\0", b"data"),
        (frames.DATA, frames.PADDED, b"\2\0\0", b""),
        (frames.DATA, frames.PRIORITY, b"data", b"data"),  # the flag means nothing there
        (frames.HEADERS, frames.PRIORITY, b"\0\0\0\0\1block", b"block"),
        (frames.HEADERS, frames.PRIORITY | frames.PADDED, b"\1\0\0\0\0\1block\0", b"block"),
    ],
)
def test_padding_and_priority_are_removed(
    kind: int, flags: int, payload: bytes, inner: bytes
) -> None:
    assert frames.unpadded(Frame(kind, flags, 1, payload)) == inner


@pytest.mark.parametrize(
    ("kind", "flags", "payload"),
    [
        (frames.DATA, frames.PADDED, b""),
        (frames.DATA, frames.PADDED, b"\5abcd"),
        (frames.HEADERS, frames.PRIORITY, b"\0\0\0\0"),
        (frames.HEADERS, frames.PRIORITY | frames.PADDED, b"\1\0\0\0\0\0"),
    ],
)
def test_padding_longer_than_its_frame_is_an_error(kind: int, flags: int, payload: bytes) -> None:
    with pytest.raises(ProtocolError):
        frames.unpadded(Frame(kind, flags, 1, payload))


# Fields


@given(name=TOKEN, value=PRINTABLE)
def test_field_is_decoded_by_hpack(name: str, value: str) -> None:
    block = header_fields.field(name.upper(), value)
    assert hpack.Decoder(100_000).decode(block) == [(name.lower(), value)]


@pytest.mark.parametrize("length", [0, 1, 126, 127, 128, 254, 255, 256, 5000])
def test_field_with_a_length_at_integer_boundaries_is_decoded_by_hpack(length: int) -> None:
    assert hpack.Decoder().decode(header_fields.field("x" * (length or 1), "y" * length)) == [
        ("x" * (length or 1), "y" * length)
    ]


@pytest.mark.parametrize("name", ["Authorization", "cookie", "proxy-authorization"])
def test_secret_field_is_never_indexed(name: str) -> None:
    (read,) = hpack.Decoder().decode(header_fields.field(name, "s"))
    assert (isinstance(read, hpack.NeverIndexedHeaderTuple), tuple(read)) == (
        True,
        (name.lower(), "s"),
    )


def test_other_fields_are_not_indexed() -> None:
    decoder = hpack.Decoder()
    decoder.decode(head(Request("https://x.test/p?q", b"b", headers=(("X-One", "1"),))))
    assert len(decoder.header_table.dynamic_entries) == 0


@pytest.mark.parametrize(
    ("url", "authority", "path"),
    [
        ("https://x.test", "x.test", "/"),
        ("https://x.test/", "x.test", "/"),
        ("https://x.test:8443/a/../b%20", "x.test:8443", "/a/../b%20"),
        ("https://x.test/a?b=/c?d", "x.test", "/a?b=/c?d"),
        ("https://x.test?b=/c", "x.test", "/?b=/c"),
        ("https://x.test?", "x.test", "/?"),
        ("https://x.test/a?b#c/d", "x.test", "/a?b"),
        ("https://x.test#c/d?e", "x.test", "/"),
        ("https://[::1]:8443/", "[::1]:8443", "/"),
    ],
)
def test_head_has_authority_and_path(url: str, authority: str, path: str) -> None:
    assert hpack.Decoder().decode(head(Request(url, method="GET"))) == [
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", authority),
        (":path", path),
    ]


@pytest.mark.parametrize(
    ("method", "body", "length"),
    [
        ("POST", b"", "0"),
        ("PUT", b"", "0"),
        ("PATCH", b"12", "2"),
        ("DELETE", b"123", "3"),
        ("DELETE", b"", None),
        ("GET", b"", None),
        ("HEAD", b"", None),
    ],
)
def test_head_has_a_content_length_when_a_body_is_expected(
    method: str, body: bytes, length: str | None
) -> None:
    read = dict(hpack.Decoder().decode(head(Request("https://x.test/", body, method))))
    assert (read[":method"], read.get("content-length")) == (method, length)


@pytest.mark.parametrize("huffman", [False, True])
@pytest.mark.parametrize("table", [0, 4096])
def test_every_status_is_decoded(huffman: bool, table: int) -> None:
    for status in range(100, 600):
        encoder = hpack.Encoder()
        encoder.header_table_size = table
        given_fields = [(":status", str(status)), ("x-one", "Über"), ("retry-after", "7")]
        block = encoder.encode(given_fields, huffman=huffman)
        assert header_fields.status(block) == status
        assert dict(header_fields.Fields(block)) == {"x-one": "Ã\x9cber", "retry-after": "7"}


@pytest.mark.parametrize(
    "block",
    [
        b"",
        b"\x20",
        b"\x84",  # :path
        b"\xbe",  # the first entry of a table that we keep none of
        b"\x3f\xe1\x1f\x88",  # a table of 4,096
        b"\x08\x03abc",
        b"\x08\x042000",
        b"\x08\x0220",
        b"\x08\x03\xb2\xb9\xb3",  # ²¹³
        b"\x08\x0320",
        b"\x08\x83\xff\xff\xff",
        b"\x00\x01x\x01y\x88",  # it has to come first
        b"\x7f" + b"\xff" * 50,
    ],
)
def test_block_without_a_status_is_invalid(block: bytes) -> None:
    with pytest.raises(header_fields.InvalidHeaderBlock):
        header_fields.status(block)


@given(block=st.binary(max_size=300))
def test_any_block_has_a_status_or_is_invalid(block: bytes) -> None:
    with suppress(header_fields.InvalidHeaderBlock):
        assert 0 <= header_fields.status(block) <= 999
    assert not [name for name in header_fields.Fields(block) if name.startswith(":")]


def _read_by_others(block: bytes) -> list[tuple[str, str]] | None:
    """Decode a block by hpack, without a table; return None for an invalid one."""
    decoder = hpack.Decoder()
    decoder.header_table_size = decoder.max_allowed_table_size = 0
    try:
        read = decoder.decode(block, raw=True)
    except hpack.HPACKError:
        return None
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in read]


@given(
    given_fields=st.lists(st.tuples(TOKEN, PRINTABLE | st.text("y", min_size=120, max_size=300))),
    huffman=st.booleans(),
    secret=st.booleans(),
)
def test_fields_are_decoded(
    given_fields: list[tuple[str, str]], huffman: bool, secret: bool
) -> None:
    kind = hpack.NeverIndexedHeaderTuple if secret else hpack.HeaderTuple
    encoder = hpack.Encoder()
    encoder.header_table_size = 0
    block = encoder.encode(
        [kind(":status", "201"), *(kind(name.lower(), value) for name, value in given_fields)],
        huffman=huffman,
    )
    assert header_fields.status(block) == 201
    assert dict(header_fields.Fields(block)) == {
        name.lower(): value for name, value in given_fields
    }


@given(rest=st.binary(max_size=60))
@example(rest=b"\x20")
@example(rest=b"\x48")
@example(rest=b"\x80")
@example(rest=b"\xbd")
@example(rest=b"\x40\x01a\x81\x1f")  # an a, and the padding of §5.2
@example(rest=b"\x40\x01a\x82\x1f\xff")  # padded by a whole byte
@example(rest=b"\x40\x01a\x84\xff\xff\xff\xff")  # the end of a text, which is never written
@example(rest=b"\x40\x01a\x81\x18")  # padded by zeros
def test_any_block_is_decoded_as_hpack_decodes_it(rest: bytes) -> None:
    read = _read_by_others(b"\x88" + rest)
    expected = {name: value for name, value in read or [] if name[:1] != ":"}
    assert dict(header_fields.Fields(b"\x88" + rest)) == expected


def test_endless_integer_is_invalid() -> None:
    with pytest.raises(header_fields.InvalidHeaderBlock):
        header_fields.status(b"\x08\x7f" + b"\x80" * 60_000 + b"\x01")


def test_invalid_block_has_no_fields() -> None:
    assert dict(header_fields.Fields(b"\x88\xbe")) == {}


def test_last_of_repeated_fields_counts() -> None:
    encoder = hpack.Encoder()
    encoder.header_table_size = 0
    block = encoder.encode([(":status", "200"), ("a", "1"), ("a", "2")])
    read = header_fields.Fields(block)
    assert (len(read), list(read), read["a"], read.get(":status")) == (1, ["a"], "2", None)
