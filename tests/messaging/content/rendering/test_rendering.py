"""Rendering: fields and channels, and what is missing."""

import pytest

from messaging.content.rendering import (
    RenderedEmail,
    RenderedPush,
    RenderedSms,
    RenderFailed,
    SmsSize,
    compile_source,
    render_email,
    render_push,
    render_sms,
)

EMAIL = {
    "subject": "Hi {{ contact.first_name }}",
    "text": "Hi {{ contact.first_name }}, {{ note }}",
    "html": "<p>Hi {{ contact.first_name }}, {{ note }}</p>",
}


@pytest.mark.promise("templates-3")
def test_email_is_escaped_only_in_html():
    rendered = render_email(
        compile_source(EMAIL), {"contact": {"first_name": "A<b>"}, "note": 'x & "y"'}
    )
    assert rendered == RenderedEmail(
        subject="Hi A<b>",
        text='Hi A<b>, x & "y"',
        html="<p>Hi A&lt;b&gt;, x &amp; &#34;y&#34;</p>",
        missing=(),
    )


def test_email_without_a_text_gets_one_from_its_html():
    compiled = compile_source({"html": '<p>Hi {{ n }}</p><p><a href="{{ u }}">Go</a></p>'})
    assert render_email(compiled, {"n": "A & B", "u": "https://x.y/?a=1&b=2"}).text == (
        "Hi A & B\n\nGo (https://x.y/?a=1&b=2)\n"
    )


def test_empty_email_fails():
    with pytest.raises(RenderFailed, match="empty"):
        render_email(compile_source({"subject": "x", "text": "{% if a %}a{% endif %}"}), {})


@pytest.mark.parametrize(
    ("value", "subject"),
    [
        ("a\r\nBcc: b@c.d", "Hi a Bcc: b@c.d"),
        (" a\n\n\tb ", "Hi  a b"),
        ("a\u2028b\x85c\x0bd\x0ce\x1cf", "Hi a b c d e f"),
        ("10\xa0000", "Hi 10\xa0000"),
        ("", "Hi"),
    ],
)
def test_subject_stays_one_line(value, subject):
    compiled = compile_source({"subject": "Hi {{ v }}", "text": "x"})
    assert render_email(compiled, {"v": value}).subject == subject


def test_sms_is_trimmed_and_measured():
    compiled = compile_source({"text": "\n Hi {{ n }}\r\nBye {{ x }}\n"})
    assert render_sms(compiled, {"n": "<A>"}) == RenderedSms(
        "Hi <A>\nBye", SmsSize("GSM-7", 10, 10, 1), ("x",)
    )
    assert render_sms(compiled, {"n": "A"}).text == "Hi A\nBye"


def test_empty_sms_fails():
    with pytest.raises(RenderFailed, match="empty"):
        render_sms(compile_source({"text": " {{ x }} "}), {})


def test_push_fills_all_its_fields():
    compiled = compile_source(
        {
            "title": "Hi\n{{ n }}",
            "body": "B\n{{ n }}",
            "data": {"id": "{{ id }}", "kind": "plain", "number": 3},
            "badge": 2,
            "image": "https://x.y/{{ id }}.png",
            "link": "myapp://open/{{ id }}",
        }
    )
    assert render_push(compiled, {"n": "<A>", "id": 7}) == RenderedPush(
        title="Hi <A>",
        body="B\n<A>",
        data={"id": "7", "kind": "plain", "number": "3"},
        badge=2,
        image="https://x.y/7.png",
        link="myapp://open/7",
    )


@pytest.mark.parametrize("field", ["link", "image"])
@pytest.mark.parametrize("value", ["javascript:alert(1)", " JAVA\tSCRIPT:x", "data:text/html,x"])
def test_push_url_with_a_script_fails(field, value):
    with pytest.raises(RenderFailed, match=field):
        render_push(compile_source({field: "{{ v }}"}), {"v": value})


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("{{ a }}{{ b.c }}{{ a }}", ("a", "b.c")),
        ("{{ a | upcase }}", ("a",)),
        ("{{ 'x' | append: a }}", ("a",)),
        ("{% for x in items %}{% endfor %}", ("items",)),
        ("{{ here[plan] }}", ("plan",)),
        ("{{ here.nothing }}", ("here.nothing",)),
        ("{% if a %}{% endif %}{{ a | default: 'd' }}", ()),
        ("{% if a == 'x' or a contains 'y' %}{% endif %}", ()),
        ("{% assign a = 1 %}{{ a }}", ()),
        ("{{ nil }}{{ here.empty_one }}", ()),
    ],
)
def test_variables_leaving_a_gap_are_missing(source, missing):
    compiled = compile_source({"text": "x" + source})
    assert render_email(compiled, {"here": {"empty_one": None}}).missing == missing
