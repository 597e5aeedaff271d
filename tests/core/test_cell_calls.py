import pytest

from rme.core import cell_calls

SECRET, NOW = "s" * 32, 1_800_000_000
PURPOSE = cell_calls.call_purpose("POST", "/cell/owner")
GOOD = cell_calls.sign(SECRET, PURPOSE, b"{}", NOW)


def test_a_signature_is_accepted_for_what_was_signed_while_it_is_fresh():
    for age in (-30, 0, 30):
        assert cell_calls.is_signed(SECRET, PURPOSE, b"{}", GOOD, NOW + age)
    assert SECRET not in GOOD


def test_while_the_secret_is_replaced_both_are_accepted_and_the_first_signs():
    new = "n" * 32
    added, promoted = f"{SECRET},{new}", f"{new},{SECRET}"
    for writes, reads in ((SECRET, added), (added, SECRET), (added, promoted), (promoted, added)):
        signed = cell_calls.sign(writes, PURPOSE, b"{}", NOW)
        assert cell_calls.is_signed(reads, PURPOSE, b"{}", signed, NOW)
    signed = cell_calls.sign(promoted, PURPOSE, b"{}", NOW)
    assert cell_calls.is_signed(new, PURPOSE, b"{}", signed, NOW)
    assert not cell_calls.is_signed(SECRET, PURPOSE, b"{}", signed, NOW)


@pytest.mark.parametrize(
    ("secret", "purpose", "signed", "header", "now"),
    [
        ("t" * 32, PURPOSE, b"{}", GOOD, NOW),
        ("", PURPOSE, b"{}", cell_calls.sign("", PURPOSE, b"{}", NOW), NOW),
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
    assert not cell_calls.is_signed(secret, purpose, signed, header, now)
