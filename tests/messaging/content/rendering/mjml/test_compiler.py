"""MJML: Liquid comes through its compiler as it was, and nothing deep reaches native code."""

import re
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from messaging.content.rendering import (
    TemplateSyntax,
    check,
    compile_mjml,
    compile_source,
    render_email,
)
from messaging.content.rendering.source import pieces

NEWSLETTER = """<mjml><mj-head>
<mj-title>Hi {{ name }}</mj-title>
<mj-preview>{{ intro | default: "a & <b>" }}</mj-preview>
<mj-attributes><mj-all color="{{ brand | default: '#000' }}" /></mj-attributes>
<mj-style>.w:hover { color: {{ brand }} }</mj-style>
<mj-style inline="inline">.big { color: red } a.q { color: {{ brand }}; border: 0 }</mj-style>
</mj-head><mj-body>
{% comment %} not < markup & "never" {% endcomment %}
{% if count < 3 and name != "x" %}
<mj-section css-class="big">{% for item in items %}<mj-column>
{% if item.shown %}<mj-text css-class="big">Hi {{ item.name | append: "<i>" }}
<a class="q" href="{{ item.link }}?a=1&amp;b={{ item.id | url_encode }}">go</a></mj-text>
{% endif %}
<mj-button href="{{ item.link | append: '?x="y"' }}">{{ "a" | upcase }}</mj-button>
<mj-image src="https://x.y/{{ item.id }}.png" alt='{{ item.name | append: "&" }}' />
<mj-table>{% for i in (1..2) %}<tr><td>{{ i }}</td></tr>{% endfor %}</mj-table>
<mj-raw>{% if item.raw %}<p>{{ item.raw }}</p>{% endif %}</mj-raw>
</mj-column>{% endfor %}</mj-section>
{% else %}<mj-section><mj-column><mj-text>{% raw %}{{ kept }}{% endraw %}</mj-text></mj-column>
</mj-section>{% endif %}
</mj-body></mjml>"""

DATA = {
    "name": "Ann <b>",
    "brand": "#fff",
    "count": 1,
    "items": [{"shown": True, "name": "P&Q", "link": "https://l.m", "id": "a b", "raw": "<r>"}],
}


def body(inner: str) -> str:
    return f"<mjml><mj-body>{inner}</mj-body></mjml>"


def column(inner: str) -> str:
    return body(f"<mj-section><mj-column>{inner}</mj-column></mj-section>")


def liquid(source: str) -> list[str]:
    found = [piece for piece in pieces(source) if piece.name != "comment"]
    return [source[piece.start : piece.end] for piece in found]


def problem(source: str) -> tuple[str, int]:
    with pytest.raises(TemplateSyntax) as raised:
        compile_mjml(source)
    return raised.value.message, raised.value.line


def test_liquid_survives_compilation_in_all_places():
    html = compile_mjml(NEWSLETTER)
    # Titles and attributes for all occur more than once, the inlined style not in its place.
    assert set(liquid(html)) == set(liquid(NEWSLETTER))
    tags = [tag for tag in liquid(NEWSLETTER) if tag.startswith("{%")]
    assert [tag for tag in liquid(html) if tag.startswith("{%")] == tags
    assert "<mj-" not in html
    assert check({"mjml": NEWSLETTER}) == []


def test_compiled_mjml_renders():
    compiled = compile_source({"html": compile_mjml(NEWSLETTER)})
    rendered = render_email(compiled, DATA)
    assert rendered.missing == ()
    assert '<a style="color: #fff;border: 0;" class="q" href="https://l.m?a=1&amp;b=a+b">' in (
        rendered.html
    )
    assert 'alt="P&amp;Q&"' in rendered.html
    assert rendered.html.count("<tr><td>1</td></tr><tr><td>2</td></tr></table>") == 1
    assert "<title>Hi Ann &lt;b&gt;</title>" in rendered.html
    # What the author writes in quotes is his own markup (`append: "<i>"`).
    assert rendered.text == (
        "Hi P&Q go (https://l.m?a=1&b=a+b)\n\nA (https://l.m?x=)\n\nP&Q&\n\n1\n2\n\n<r>\n"
    )


def test_inlining_styles_changes_nothing_else():
    style = '<mj-style inline="inline">.t { color: red; font-family: "A B" }</mj-style>'
    inner = '<mj-text css-class="t">a &amp; b<br><b>c</b>{% if x %}<i>d</i>{% endif %}</mj-text>'
    inner += "<mj-raw>{% if y %}<tr><td class='t'>x</td></tr>{% endif %}</mj-raw>"
    source = column(inner)
    plain = compile_mjml(source)
    styled = compile_mjml(source.replace("<mjml>", f"<mjml><mj-head>{style}</mj-head>"))

    def shape(html: str) -> str:
        return re.sub(r"\s+", "", re.sub(r'\sstyle="[^"]*"', "", html))

    assert shape(styled) == shape(plain)
    assert styled.count("color: red") == 2
    assert "font-family: 'A B'" in styled
    assert plain.count("color: red") == 0


def test_no_font_and_no_file_is_loaded():
    html = compile_mjml(column("<mj-text>x</mj-text>"))
    assert "fonts.googleapis.com" not in html
    for path in ("/etc/passwd", "file:///etc/passwd", "http://127.0.0.1:9/x"):
        message, _ = problem(body(f'<mj-include path="{path}" />'))
        assert "unable to load" in message
    linked = '<mj-head><mj-raw><link rel="stylesheet" href="file:///etc/passwd"></mj-raw>'
    linked += '<mj-style inline="inline">a { color: red }</mj-style></mj-head>'
    assert "root:" not in compile_mjml(body("").replace("<mjml>", "<mjml>" + linked))


@pytest.mark.parametrize(
    ("source", "message", "line"),
    [
        ("", "unable to find mjml element", 1),
        ("<p>x</p>", "unexpected token", 1),
        ("<mjml>\n<mj-body>\n<mj-section></mjml>", "unexpected end", 1),
        (column("\n<mj-image width='{{ w }}' src='x' />"), "does not keep", 2),
        (column("{% liquid\n\n%}\n<mj-social>{{ x }}</mj-social>"), "no Liquid", 4),
        ("<mjml>\n{% if a %}<mj-body></mj-body>{% endif %}</mjml>", "no Liquid", 2),
        (column("\n\n<mj-text>a < b</mj-text>"), "a tag that never ends", 3),
        (column("\n<!-- x"), "a comment that never ends", 2),
        (column("x" * 300_000), "longer than", 1),
    ],
)
def test_uncompilable_mjml_says_where(source, message, line):
    error, where = problem(source)
    assert message in error
    assert where == line
    assert check({"mjml": source})[0].field == "mjml" if source else True


STYLED = (
    '<mjml><mj-head><mj-style inline="inline">{}</mj-style></mj-head><mj-body></mj-body></mjml>'
)


@pytest.mark.parametrize(
    ("css", "message"),
    [
        ("{% if a %} a { color: red } {% endif %}", "does not keep"),
        (".no { color: {{ a }} }", "does not keep"),
        ("a { color: red } " * 2_000, "CSS to put inline"),
    ],
)
def test_styles_that_cannot_be_inlined_are_rejected(css, message):
    assert message in problem(STYLED.format(css))[0]


@pytest.mark.parametrize(
    "inner",
    [
        "<mj-wrapper>" * 20_000,
        "<b>" * 20_000,
        "<B>" * 20_000,
        "<BR>" * 20_000,
        "<b title='/>'>" * 20_000,
        "<a><b><c></a>" * 20_000 + "</x>" * 4_000,
        "<b></i>" * 20_000,
        "</b>" * 9_000 + "<b>" * 20_000,
        "<!--[if mso]><b><![endif]-->" * 9_000,
        "<!--[if mso]><!--><b><!--<![endif]-->" * 7_000,
        "<b x='\"'>" * 20_000,
        "<b\n>" * 20_000,
        '<b x="' * 40_000,
        "<" * 200_000,
        "<!--" * 50_000,
        "{{ x }}<b>" * 2_000,
    ],
)
def test_deep_markup_is_refused_before_it_overflows_a_stack(inner):
    with pytest.raises(TemplateSyntax):
        compile_mjml(column(f"<mj-text>{inner}</mj-text>"))


def test_styles_slow_to_inline_are_rejected():
    css = "b:not(q ~ b) { color: red } " * 1_000  # each looks at all that stands before each
    source = (
        f'<mjml><mj-head><mj-style inline="inline">{css}</mj-style></mj-head>'
        f"<mj-body>{column('<mj-raw>' + '<b></b>' * 30_000 + '</mj-raw>')}</mj-body></mjml>"
    )
    with pytest.raises(TemplateSyntax, match="the CSS takes too long to be put inline"):
        compile_mjml(source)


def test_mjml_compiling_to_too_long_html_is_rejected():
    css = "".join(f".c{n} {{ background: #{n:06x}; margin: {n}px }}" for n in range(250))
    names = " ".join(f"c{n}" for n in range(250))
    text = f'<mj-text css-class="{names}">x</mj-text>' * 18
    long_inline = f"""<mjml><mj-head><mj-style inline="inline">* {{ --a: "{"x" * 9_000}" }} {css}
</mj-style></mj-head><mj-body><mj-section><mj-column>{text}</mj-column></mj-section></mj-body></mjml>"""
    assert len(long_inline) < 42_000
    with pytest.raises(TemplateSyntax, match="makes the HTML too long"):
        compile_mjml(long_inline)
    section = "<mj-section><mj-column><mj-text>x</mj-text></mj-column></mj-section>"
    many = f"<mjml><mj-body>{section * 3_000}</mj-body></mjml>"
    with pytest.raises(TemplateSyntax, match="compiles to more than 500000 characters of HTML"):
        compile_mjml(many)


def test_deepest_markup_allowed_fits_a_small_stack():
    style = '<mj-head><mj-style inline="inline">b { color: red }</mj-style></mj-head>'
    deep = "<mj-wrapper>" * 33 + "<mj-section><mj-column><mj-text>"
    deep += "<b>x</b></mj-text></mj-column></mj-section>" + "</mj-wrapper>" * 33
    done: list[str] = []
    before = threading.stack_size(512 * 1024)
    try:
        source = body(deep).replace("<mjml>", "<mjml>" + style)
        thread = threading.Thread(target=lambda: done.append(compile_mjml(source)))
        thread.start()
        thread.join(30)
    finally:
        threading.stack_size(before)
    assert done[0].count("color: red") == 1


TEXTS = st.text("ab<>&\"'é😀 {}%\n", max_size=12)
LIQUID = st.sampled_from(
    [
        "{{ a | default: '<&>' }}",
        '{% if a < "b" %}x{% endif %}',
        "{% for i in (1..2) %}{{ i }}{% endfor %}",
    ]
)


@settings(deadline=None)
@given(st.lists(LIQUID | st.sampled_from(["a", "<b>x</b>", "&amp;", " "]), max_size=6), TEXTS)
def test_any_liquid_in_a_text_survives_compilation(parts, value):
    source = column(f"<mj-text>{''.join(parts)}</mj-text>")
    assert liquid(compile_mjml(source)) == liquid(source)


@settings(deadline=None)
@given(TEXTS)
def test_any_mjml_compiles_or_is_refused(text):
    for source in (text, column(text), column(f"<mj-text color='{text}'>{text}</mj-text>")):
        try:
            compile_mjml(source)
        except TemplateSyntax as error:
            assert error.line <= source.count("\n") + 1
