"""Email addresses in normal form: the quick way takes nothing that Django's validator refuses."""

from itertools import product

import pytest
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from rme.core import addresses

LOCALS = ["".join(each) for size in (1, 2, 3, 4) for each in product("aZ0.+", repeat=size)]
DOMAINS = [
    *(f"{''.join(each)}.com" for size in (1, 2, 3, 4) for each in product("a0-.", repeat=size)),
    *(f"x.{''.join(each)}" for size in (1, 2, 3) for each in product("a0-", repeat=size)),
    *(f"{'a' * size}.com" for size in (62, 63, 64)),
    *(f"x.{'a' * size}" for size in (62, 63, 64)),
]


def _is_valid(text: str) -> bool:
    try:
        validate_email(text)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    "texts",
    [[f"{each}@x.com" for each in LOCALS], [f"ada@{each}" for each in DOMAINS]],
    ids=["locals", "domains"],
)
def test_plain_address_is_accepted_exactly_if_django_accepts_it(texts):
    wanted = {text: text.lower() if _is_valid(text.lower()) else None for text in texts}
    assert {text: addresses.email(text) for text in texts} == wanted
    assert None in wanted.values()


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        (" Ada.Lovelace+x@Example.COM ", "ada.lovelace+x@example.com"),
        ("ada@münchen.de", "ada@xn--mnchen-3ya.de"),
        ("ada@example.com.", "ada@example.com"),
        ("o'hara@example.com", "o'hara@example.com"),
        ("ada@localhost", "ada@localhost"),
        ("ada@example", None),
        (f"{'a' * 250}@x.de", None),
    ],
)
def test_email_is_normalized(text, folded):
    assert addresses.email(text) == folded


@pytest.mark.parametrize(
    ("email", "spellings"),
    [
        ("a@b.example", ["a@b.example"]),
        ("a@xn--bcher-kva.example", ["a@xn--bcher-kva.example", "a@bücher.example"]),
        ("a@xn--0.example", ["a@xn--0.example"]),
    ],
)
def test_an_address_has_spellings(email, spellings):
    assert addresses.spellings(email) == spellings
