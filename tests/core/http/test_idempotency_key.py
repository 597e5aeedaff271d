"""The header Idempotency-Key: quoted or bare, printable, and of bounded length."""

import pytest

from rme.core.http.parsing import read_idempotency_key


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
def test_idempotency_key_is_read(header: str, key: str | None) -> None:
    assert read_idempotency_key(header, 10) == key
