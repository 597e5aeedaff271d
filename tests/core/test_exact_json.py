"""Whole numbers in JSON from other systems."""

import timeit

import orjson
import pytest

from rme.core import exact_json
from rme.core.provider import http
from rme.crm.connectors.platform_calls import json_of
from rme.transport import Reply

LONG = "123456789012345678901234567890"
READERS = [exact_json.loads, http.read_object, lambda body: json_of(Reply(200, {}, body))]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("digits", "expected"),
    [
        ("9223372036854775807", 9223372036854775807),
        ("18446744073709551615", 18446744073709551615),
        ("18446744073709551616", "18446744073709551616"),
        ("-9223372036854775808", -9223372036854775808),
        ("-9223372036854775809", "-9223372036854775809"),
        (LONG, LONG),
        (f"-{LONG}", f"-{LONG}"),
        pytest.param("1" * 300, "1" * 300, id="300 digits"),
        (f'"{LONG}"', LONG),
        ("0.1234567890123456789012", 0.12345678901234568),
    ],
)
def test_no_whole_number_is_rounded(read, digits, expected):
    value = read(f'{{"a": [{digits}], "ü": {digits}}}'.encode())
    assert value == {"a": [expected], "ü": expected}
    assert type(value["ü"]) is type(expected)
    assert orjson.loads(orjson.dumps(value)) == value


@pytest.mark.parametrize(
    "text", ["", "{", "NaN", f"[NaN, {LONG}]", f'["\\ud800", {LONG}]', "1" * 310]
)
def test_inexact_number_is_rejected(text):
    with pytest.raises(orjson.JSONDecodeError):
        exact_json.loads(text)


@pytest.mark.parametrize("depth", [900, 1100])
def test_long_numbers_in_deep_texts_are_exact_or_refused(depth):
    body = "[" * depth + LONG + "]" * depth
    try:
        value = exact_json.loads(body)
    except orjson.JSONDecodeError:
        return
    for _ in range(depth):
        (value,) = value
    assert value == LONG


def test_long_number_is_found_at_any_place():
    for place in range(60):
        for digits in (18, 19, 20):
            body = b'{"a": "' + b"x" * place + b'", "b": ' + b"1" * digits + b"}"
            assert exact_json.has_many_digits(body) == (digits >= 19), (place, digits)


def test_text_without_long_numbers_is_read_in_microseconds():
    """Every call's body is searched, in the thread that answers others too."""
    body = b'{"a": "' + b"ab" * 30_000 + b'"}'
    assert min(timeit.repeat(lambda: exact_json.has_many_digits(body), number=1)) < 0.0005
