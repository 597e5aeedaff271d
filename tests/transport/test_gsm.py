"""The alphabet of SMS."""

import pytest

from rme.transport import gsm
from rme.transport.smpp import text_encoding
from rme.transport.smpp.text_encoding import Alphabet


def test_every_character_round_trip() -> None:
    text = gsm.BASIC + gsm.EXTENSION
    assert gsm.decode(b"".join(gsm.septets(text))) == text


@pytest.mark.parametrize(
    ("text", "encoded"),
    [
        ("@", b"\0"),
        ("§", b"\x5f"),
        ("ß", b"\x1e"),
        ("É", b"\x1f"),
        (" ", b" "),
        ("à", b"\x7f"),
        ("€", b"\x1be"),
        ("\f", b"\x1b\n"),
    ],
)
def test_character_has_its_code_in_the_table(text: str, encoded: bytes) -> None:
    """Compare with 3GPP TS 23.038 (smpplib's table lacks §)."""
    assert gsm.septets(text) == [encoded]


@pytest.mark.parametrize(
    ("data", "text"),
    [(b"\x1b", ""), (b"\x1bA", "A"), (b"\x1b\x1b", " "), (b"\x80\xff", "  "), (b"", "")],
)
def test_codes_outside_the_tables(data: bytes, text: str) -> None:
    assert gsm.decode(data) == text


@pytest.mark.parametrize(
    ("data", "coding", "esm_class", "text"),
    [
        (b"STOP", 0, 0, "STOP"),
        (b"\x1be\0", 0, 0, "€@"),
        (b"\xe9", 3, 0, "é"),
        ("Жук".encode("utf-16-be"), 8, 0, "Жук"),
        (b"\5\0\3\1\2\1STOP", 0, 0x40, "STOP"),
        (b"\xff", 0, 0x40, ""),
        (b"\0", 8, 0, "\ufffd"),
        (b"\xd8\0", 8, 0, "\ufffd"),
        (b"binary", 4, 0, ""),
    ],
)
def test_inbound_text_is_decoded(data: bytes, coding: int, esm_class: int, text: str) -> None:
    assert text_encoding.decode(data, coding, Alphabet.GSM, esm_class) == text


def test_lone_surrogate_becomes_a_question_mark() -> None:
    assert text_encoding.encode("a\ud800", Alphabet.GSM).parts() == [b"\0a\0?"]
