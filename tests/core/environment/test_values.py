"""Values of the environment: what is wrong is refused with its name, and how to write it."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from rme.core.environment.values import Values


def refusal(read):
    with pytest.raises(ImproperlyConfigured) as refused:
        read()
    return str(refused.value)


def test_absent_values_are_the_defaults():
    values = Values({})
    assert not values.flag("A")
    assert values.words("A", "b, c") == ["b", "c"]
    assert (values.integer("A", 3), values.number("A", 0.5)) == (3, 0.5)
    assert values.numbers("A", "0,2.5") == (0.0, 2.5)
    assert values.base_url("A", "http://127.0.0.1:8000") == "http://127.0.0.1:8000"


@pytest.mark.parametrize("text", ["abc", "-1", "1.5", "", "²", "1e3"])
def test_whole_number_that_is_none_is_refused(text):
    values = Values({"PORT": text})
    assert refusal(lambda: values.integer("PORT", 8000)) == (
        f"PORT={text} is not a whole number, such as 8000."
    )


@pytest.mark.parametrize("text", ["abc", "-1", "nan", "inf", "1,5"])
def test_number_that_is_none_is_refused(text):
    values = Values({"BOT_SECONDS": text})
    assert refusal(lambda: values.number("BOT_SECONDS", 3.5)) == (
        f"BOT_SECONDS={text} is not a number, such as 3.5."
    )


def test_list_with_a_word_that_is_no_number_is_refused():
    values = Values({"A": "0,soon"})
    assert refusal(lambda: values.numbers("A", "0,300")) == (
        "A=0,soon is not a list of numbers, such as 0,300."
    )


@pytest.mark.parametrize(
    "url", ["rme.example.org", "ftp://a", "https://", "https://a:x", "https:a"]
)
def test_url_without_scheme_or_host_is_refused(url):
    assert refusal(lambda: Values({"BASE_URL": url}).base_url("BASE_URL", "")) == (
        f"BASE_URL={url} is not a URL: write scheme and host, such as https://messages.example.com."
    )


@pytest.mark.parametrize("url", ["https://a/rme", "https://a?b", "https://a/#b"])
def test_url_with_a_path_is_refused(url):
    assert "has a path" in refusal(lambda: Values({"BASE_URL": url}).base_url("BASE_URL", ""))


def test_slash_at_the_end_of_a_url_is_left_out():
    assert Values({"BASE_URL": "https://a:8443/"}).base_url("BASE_URL", "") == "https://a:8443"
