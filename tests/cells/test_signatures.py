import pytest

from rme.cells import signatures

SECRET, NOW = "s" * 32, 1_800_000_000
PURPOSE = signatures.call_purpose("POST", "/cell/owner")
GOOD = signatures.sign(SECRET, PURPOSE, b"{}", NOW)


def test_fresh_signature_of_the_same_content_is_accepted():
    for age in (-30, 0, 30):
        assert signatures.is_signed(SECRET, PURPOSE, b"{}", GOOD, NOW + age)
    assert SECRET not in GOOD


def test_while_the_secret_is_replaced_both_are_accepted_and_the_first_signs():
    new = "n" * 32
    added, promoted = f"{SECRET},{new}", f"{new},{SECRET}"
    for writes, reads in ((SECRET, added), (added, SECRET), (added, promoted), (promoted, added)):
        signed = signatures.sign(writes, PURPOSE, b"{}", NOW)
        assert signatures.is_signed(reads, PURPOSE, b"{}", signed, NOW)
    signed = signatures.sign(promoted, PURPOSE, b"{}", NOW)
    assert signatures.is_signed(new, PURPOSE, b"{}", signed, NOW)
    assert not signatures.is_signed(SECRET, PURPOSE, b"{}", signed, NOW)


@pytest.mark.parametrize(
    ("secret", "purpose", "signed", "header", "now"),
    [
        ("t" * 32, PURPOSE, b"{}", GOOD, NOW),
        ("", PURPOSE, b"{}", signatures.sign("", PURPOSE, b"{}", NOW), NOW),
        (SECRET, "POST /cell/other", b"{}", GOOD, NOW),
        (SECRET, PURPOSE, b"{ }", GOOD, NOW),
        (SECRET, PURPOSE, b"{}", GOOD, NOW + 31),
        (SECRET, PURPOSE, b"{}", GOOD, NOW - 31),
        (SECRET, PURPOSE, b"{}", GOOD.replace("Cell", "Bearer"), NOW),
        (SECRET, PURPOSE, b"{}", GOOD.replace(str(NOW), str(NOW + 1)), NOW),
        (SECRET, PURPOSE, b"{}", GOOD[:-1], NOW),
        (SECRET, PURPOSE, b"{}", f"Cell {NOW}.é", NOW),
        (SECRET, PURPOSE, b"{}", f"Cell {'9' * 9999}.0", NOW),
        (SECRET, PURPOSE, b"{}", "Cell ²." + "0" * 64, NOW),
        (SECRET, PURPOSE, b"{}", "", NOW),
    ],
)
def test_any_other_signature_is_refused(secret, purpose, signed, header, now):
    assert not signatures.is_signed(secret, purpose, signed, header, now)
