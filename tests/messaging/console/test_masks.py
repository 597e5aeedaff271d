"""Masks of addresses are recognizable, and hide an address however it is written."""

import pytest

from messaging.console.masks import mask, mask_in


@pytest.mark.parametrize(
    ("address", "masked"),
    [("olivia@example.com", "o…@example.com"), ("+41791234567", "+41…67"), ("12345", "…"),
     ("", "…")],
)  # fmt: skip
def test_masked_addresses_stay_recognizable(address, masked):
    assert mask(address) == masked


@pytest.mark.parametrize(
    ("text", "address", "masked"),
    [
        ("no ada@x.example", "ada@x.example", "no a…@x.example"),
        ("no <ADA@X.example>", "ada@x.example", "no <A…@X.example>"),
        ("ada@x.example to eve@y.example", "ada@x.example", "a…@x.example to e…@y.example"),
        ("no +41791234567", "+41791234567", "no +41…67"),
        ("no 41791234567, 0041-79-123-45-67", "+41791234567", "no +41…67, +41…67"),
        ("no 079 123 45 67 or (079) 1234567.", "+41791234567", "no +41…67 or (+41…67."),
        ("no 41791234567 (21211)", "+41791234567", "no +41…67)"),
        ("code 5504567 of 1234568", "+41791234567", "code 5504567 of 1234568"),
        ("no token abc", "abc", "no token …"),
        ("sent 2026-11-27", "", "sent 2026-11-27"),
    ],
)
def test_address_is_masked_however_it_is_written(text: str, address: str, masked: str) -> None:
    assert mask_in(text, address) == masked
