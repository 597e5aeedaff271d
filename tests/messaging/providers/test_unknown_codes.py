"""Codes that no table has: counted, by few labels."""

import pytest

from messaging.providers import unknown_codes
from tests.scrape import counted


@pytest.fixture(autouse=True)
def _nothing_seen(counting, monkeypatch):
    monkeypatch.setattr(unknown_codes, "_seen", set())


def codes():
    return {
        (dict(names)["provider"], dict(names)["code"]): count
        for names, count in counted(unknown_codes.CODES.name).items()
    }


def test_codes_are_counted_by_provider():
    for code in ("30999", "30999", "teleported"):
        unknown_codes.count("twilio", code)
    unknown_codes.count("kannel", "30999")
    assert codes() == {
        ("twilio", "30999"): 2.0,
        ("twilio", "teleported"): 1.0,
        ("kannel", "30999"): 1.0,
    }


@pytest.mark.parametrize("code", ["", "x" * 33, 'a"b', "a b", "\x1f", "\x00", "é", "a\nb"])
def test_malformed_code_is_counted_as_other(code):
    unknown_codes.count("twilio", code)
    assert codes() == {("twilio", "other"): 1.0}


def test_labels_are_bounded():
    for number in range(1000):
        unknown_codes.count("twilio", str(number))
    found = codes()
    assert len(found) == unknown_codes.LIMIT + 1
    assert found["twilio", "other"] == 1000 - unknown_codes.LIMIT
