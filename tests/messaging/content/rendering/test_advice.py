"""Warnings about a rendered text."""

import time

import pytest

from messaging.content.rendering import (
    Advice,
    RenderedEmail,
    advise_email,
    advise_sms,
    advise_variables,
    compile_source,
    render_sms,
)


def email(subject="Hello", html=""):
    return advise_email(RenderedEmail(subject, "text", html))


def test_good_mail_is_not_advised_on():
    assert email(html='<img src="a.png" alt=""><img\nALT="b" src=x><IMG src=y alt>') == []


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("", [Advice("subject", "is empty")]),
        ("é" * 78, []),
        ("é" * 79, [Advice("subject", "has 79 characters; more than 78 are cut off")]),
    ],
)
def test_subject(subject, expected):
    assert email(subject) == expected


@pytest.mark.parametrize(
    ("html", "count"),
    [
        ('<img src="a.png">', 1),
        ('<img src="a.png" title="alt"><IMG/><img alt="x">', 2),
        ('<img data-alt="x"><image><imgx>', 1),
    ],
)
def test_images_without_alt_are_counted(html, count):
    assert email(html=html) == [Advice("html", f"{count} image(s) without alt")]


def test_html_longer_than_gmail_shows_is_a_warning():
    assert email(html="é" * 51_200) == []
    expected = "has 102,402 bytes; Gmail cuts it after 102,400"
    assert email(html="é" * 51_201) == [Advice("html", expected)]


@pytest.mark.parametrize(
    "html", ["<img " * 200_000, '<img "' * 200_000, "<img alt=" + " " * 900_000]
)
def test_any_html_is_checked_in_one_pass(html):
    started = time.thread_time()
    email(html=html)
    assert time.thread_time() - started < 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a" * 160, []),
        ("a" * 161, ["takes 2 segments"]),
        ("Grüezi", []),
        ("ça va ’ ça", ["goes as UCS-2, with 70 units a segment, because of: ç ’"]),
        ("ж" * 71, ["takes 2 segments", "goes as UCS-2, with 70 units a segment, because of: ж"]),
        (
            "абвгдежзийк",
            ["goes as UCS-2, with 70 units a segment, because of: а б в г д е ж з и й …"],
        ),
    ],
)
def test_sms(text, expected):
    sms = render_sms(compile_source({"text": text}), {})
    assert advise_sms(sms) == [Advice("text", message) for message in expected]


@pytest.mark.parametrize(
    ("texts", "unused"),
    [
        ({"text": "{{ a }}{{ b.c | append: d }}"}, ["e", "f"]),
        ({"text": "{% for x in a limit: b %}{% if d %}{% endif %}{% endfor %}"}, ["e", "f"]),
        ({"html": "<p>{% render 'p', v: a %}</p>", "data": {"k": "{{ d[e] }}"}}, ["b", "f"]),
        ({"text": "x"}, ["a", "b", "d", "e", "f"]),
        ({"text": "{{ [a] }}"}, []),
    ],
)
def test_unused_variables_are_named(texts, unused):
    compiled = compile_source(texts, {"p": "{{ v }}{{ b }}"})
    schema = {"properties": {"known": {}}}
    assert advise_variables(compiled.names, schema, ["f", "a", "b", "d", "e", "known"]) == [
        Advice(f"variables.{name}", "is not used by the template") for name in unused
    ]
