"""The header Idempotency-Key: quoted or bare, printable, and of bounded length."""

import pytest

from rme.core.http import idempotency_key


@pytest.mark.parametrize(
    ("header", "key"),
    [
        ("a key", "a key"),
        (' "a key" ', "a key"),
        ('"', '"'),
        ('""', ""),
        ("", ""),
        ("  ", ""),
        ('"a', '"a'),
        ("k" * 10, "k" * 10),
        ("k" * 11, None),
        ("ä", None),
        ("a\tb", None),
        ("a\x00", None),
    ],
)
def test_read(header: str, key: str | None) -> None:
    assert idempotency_key.read(header, 10) == key
