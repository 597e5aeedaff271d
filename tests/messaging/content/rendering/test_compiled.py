"""Compiling texts: what a version is refused for, and the cache of what was compiled."""

import pytest

from messaging.content.rendering import (
    TemplateProblem,
    TemplateSyntax,
    check,
    compile_source,
    render_email,
)
from messaging.content.rendering.compiled import _Cache
from tests.messaging.content.rendering.test_rendering import EMAIL


@pytest.mark.parametrize(
    ("source", "message", "line", "column"),
    [
        ("{{ a", "'{{' is never closed", 1, 1),
        ("a\n {% if a %}", "expected tag endif, found end of expression", 2, 12),
        ("a\nb {% nope %}", "unexpected tag 'nope'", 2, 6),
        ("a\n\n{{ a | nope }}", "unknown filter 'nope'", 3, 8),
        ("{{ a | replace: seq: 'x' }}", "'replace' has no 'seq'", 1, 17),
        ("{{ a | escape: environment: b }}", "'escape' has no 'environment'", 1, 16),
        ("{% break %}", "'break' outside of a loop", 1, 4),
        ("{% include 'x' %}", "unexpected tag 'include'", 1, 4),
        ("{% render x %}", "a partial's name stands in quotes", 1, 4),
        ("{% render 'a/b' %}", "a partial's name stands in quotes", 1, 4),
        ("{% render 'x' for many %}", "'render' knows no 'for': give values by name", 1, 4),
        ("{% doc %}x{% enddoc %}", "unexpected tag 'doc'", 1, 1),
        ("{{ a | safe }}", "unknown filter 'safe'", 1, 8),
        ("{{ a b }}", "expected end of expression, found word", 1, 6),
    ],
)
def test_unparsable_text_says_where(source, message, line, column):
    with pytest.raises(TemplateSyntax) as raised:
        compile_source({"text": source})
    error = raised.value
    assert (error.field, error.message, error.line, error.column) == (
        "text", message, line, column,
    )  # fmt: skip
    assert str(error) == f"text, line {line}, column {column}: {message}"


RESERVED = "is reserved by Firebase Cloud Messaging: rename it"


def test_check_returns_all_problems_of_all_fields():
    assert check(
        {
            "subject": "{{ a",
            "text": "fine {{ a }}",
            "html": "<p>\n{% if %}",
            "data": {"k": "{{ a | nope }}", "n": 1, "from": "x", "gcm.n": "x", "gcm": "x"},
            "variables": {"type": "nope"},
        }
    ) == [
        TemplateProblem("subject", "'{{' is never closed", 1, 1),
        TemplateProblem("html", "missing expression", 2, 4),
        TemplateProblem("data.k", "unknown filter 'nope'", 1, 8),
        TemplateProblem("data.from", RESERVED),
        TemplateProblem("data.gcm.n", RESERVED),
        TemplateProblem(
            "variables", "is not JSON Schema: 'nope' is not valid under any of the given schemas"
        ),
    ]
    assert check({**EMAIL, "variables": {}, "mjml": "", "badge": None}) == []


def test_source_is_compiled_once():
    assert compile_source(dict(EMAIL)) is compile_source(dict(EMAIL))
    assert compile_source({**EMAIL, "subject": "x"}) is not compile_source(EMAIL)
    assert compile_source({"text": "{{ a }}"}) is not compile_source({"html": "{{ a }}"})


def test_cache_is_bounded_by_count_and_size():
    cache = _Cache(count=2, size=100)
    compiled = compile_source({"text": "x"})
    for key, size in ((b"a", 10), (b"b", 10), (b"c", 10)):
        cache.put(key, size, compiled)
    assert [cache.get(key) for key in (b"a", b"b", b"c")] == [None, compiled, compiled]
    cache.put(b"d", 95, compiled)
    assert [cache.get(key) for key in (b"b", b"c", b"d")] == [None, None, compiled]
    cache.put(b"e", 101, compiled)
    assert (cache.get(b"d"), cache.get(b"e"), cache.used) == (None, None, 0)


def test_templates_share_nothing_between_renders():
    compiled = compile_source({"text": "{% increment n %}{% cycle 'a', 'b' %}{{ x }}{{ missing }}"})
    first = render_email(compiled, {"x": 1})
    assert render_email(compiled, {"x": 1}) == first
    assert render_email(compiled, {"x": 1, "missing": 2}).missing == ()
