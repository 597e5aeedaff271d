"""HTML: no variable ever becomes markup, wherever in it a template puts one."""

from collections.abc import Mapping
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from messaging.content.rendering import (
    Compiled,
    Limits,
    TemplateSyntax,
    compile_source,
    render_email,
)
from messaging.content.rendering.html.places import Place, places
from messaging.content.rendering.html.url_schemes import safe_url, scheme
from messaging.content.rendering.source import pieces

AMPLE = Limits(seconds=10)
"""What is written is looked at here, not how long it takes in a process that collects garbage."""


def html(source: str, **data: object) -> str:
    return rendered(compile_source({"html": source, "text": "x"}), data)


def rendered(compiled: Compiled, data: Mapping[str, object]) -> str:
    return render_email(compiled, data, limits=AMPLE).html


class Skeleton(HTMLParser):
    """What is markup in a document, and the values of its texts and attributes beside it."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.markup: list[object] = []
        self.values: list[str] = []
        self.feed(document)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.markup.append((tag, [name for name, _ in attrs]))
        self.values += [value or "" for _, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        self.markup.append(tag)

    def handle_comment(self, data: str) -> None:
        self.markup.append("comment")

    def handle_decl(self, decl: str) -> None:
        self.markup.append("declaration")

    def handle_pi(self, data: str) -> None:
        self.markup.append("instruction")

    def handle_data(self, data: str) -> None:
        self.values.append(data)


EVERYWHERE = compile_source(
    {
        "text": "x",
        "html": "<title>{{ v }}</title><style>a{b:{{ v }}}</style><!-- {{ v }} -->"
        "<p title=\"{{ v }}\" lang='{{ v }}'>|{{ v }}|</p>"
        '<a href="https://x.y/{{ v }}?{{ v }}">|{{ v | upcase | downcase }}|</a>'
        "<i>|{% capture c %}<b>{{ v }}</b>{% endcapture %}{{ c }}{{ c | upcase }}|</i>"
        '<u>|{{ v | append: "<br>" | prepend: v }}{{ "<br>" | append: v }}|</u>'
        "<s>|{{ v | newline_to_br }}{{ v | strip_newlines }}{{ v | replace: 'a', v }}|</s>"
        "<q>|{{ '<hr>-' | replace: '-', v }}{{ v | split: '' | join: '<br>' }}{{ l }}|</q>"
        "<em>|{{ v | escape }}{{ v | escape_once }}{{ v | url_encode | url_decode }}|</em>"
        "<b>|{% assign w = v %}{{ w | slice: 0, 9 }}{{ v | truncate: 5 }}{{ v | squish }}|</b>"
        "<s>|{% cycle v, '<b>' %}{% for i in l %}{{ i }}{% endfor %}{{ l | join: v }}|</s>"
        "<s>|{{ v | strip_html }}{{ v | date: '%d' }}{{ d }}{{ d | map: 'k' }}|</s>"
        "<s>|{{ x | default: v }}{{ v | default: '-' }}{{ v | base64_encode | base64_decode }}|</s>"
        '<!--[if mso]><a title="{{ v }}">|{{ v }}|</a><![endif]-->',
    }
)
MARKUP = "<>\"'&/= \n\t-!;abxnolt#39`"


@pytest.mark.promise("templates-3")
@settings(deadline=None, max_examples=300)
@given(
    st.one_of(
        st.text(max_size=30),
        st.text(MARKUP, max_size=40),
        st.sampled_from(
            [
                "</title></style>--><script>alert(1)</script>",
                "' onload='x",
                '"><img src=x onerror=x>',
                "<!--",
                "]]>",
                "&lt;b&gt;&#60;b&#62;",
                "%3Cb%3E",
                "PGI+",
                "<svg/onload=x>",
                "\x00<b>",
                "</script",
            ]
        ),
    )
)
def test_any_text_stays_a_text(value):
    empty = rendered(EVERYWHERE, {"v": "z", "l": ["z"], "d": {"k": "z"}})
    filled = rendered(EVERYWHERE, {"v": value, "l": [value], "d": {"k": value}})
    assert skeleton(filled) == skeleton(empty)


def skeleton(document: str) -> list[object]:
    """Return a document's markup, without the breaks that filters write for lines or characters."""
    return [mark for mark in Skeleton(document).markup if mark not in (("br", []), "br")]


@settings(deadline=None)
@given(st.text(max_size=60) | st.text(MARKUP, max_size=60))
def test_any_text_is_shown_unchanged(value):
    read = Skeleton(html("<p title=\"{{ v }}\" lang='{{ v }}'>|{{ v }}|</p>", v=value))
    assert read.values == [value, value, f"|{value}|"]
    assert read.markup == [("p", ["title", "lang"]), "p"]


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ('{{ "<b>" }}{{ v }}', "<b>&lt;i&gt;"),
        ('{{ "<b>" | append: v }}', "<b>&lt;i&gt;"),
        ('{{ v | prepend: "<b>" }}', "<b>&lt;i&gt;"),
        ('{{ l | join: "<br>" }}', "&lt;1&gt;<br>2"),
        ("{{ l | join }} {{ l }}", "&lt;1&gt; 2 &lt;1&gt;2"),
        ("{% capture c %}<b>{{ v }}</b>{% endcapture %}{{ c }}", "<b>&lt;i&gt;</b>"),
        ("{% capture c %}<b>{{ v }}</b>{% endcapture %}{{ c | strip_html }}", "&lt;i&gt;"),
        ("{{ v | escape }}", "&lt;i&gt;"),
        ("{{ n | newline_to_br }}", "a<br />\n&lt;"),
        ("{{ none }}{{ yes }}", "true"),
    ],
)
def test_authors_markup_stays_and_variables_are_escaped(source, written):
    data = {"v": "<i>", "l": ["<1>", 2], "n": "a\n<", "none": None, "yes": True}
    assert html("|" + source, **data) == "|" + written


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("<a href={{ v }}>", "quotes"),
        ("<a href=/x/{{ v }}>", "quotes"),
        ("<a {{ v }}>", "quotes"),
        ('<a title="x"{{ v }}>', "quotes"),
        ("<{{ v }}>", "quotes"),
        ("</{{ v }}>", "quotes"),
        ("<p {% echo v %}>", "quotes"),
        ("<p {% cycle v, 'x' %}>", "quotes"),
        ("<p {% if v %}{{ v }}{% endif %}>", "quotes"),
        ("<p {% liquid\necho v\n%}>", "quotes"),
        ("<script>{{ v }}</script>", "script"),
        ("<SCRIPT>a<b{{ v }}</SCRIPT>", "script"),
        ('<p onclick="x({{ v }})">', "script"),
        ("<p OnClick='{{ v }}'>", "script"),
        ("<!--[if mso]><p {{ v }}><![endif]-->", "quotes"),
    ],
)
def test_variable_where_escaping_does_not_help_is_refused(source, message):
    with pytest.raises(TemplateSyntax, match=message):
        compile_source({"html": source})
    compile_source({"text": source})


@pytest.mark.parametrize(
    "source",
    [
        "<tr{% cycle ' class=\"odd\"', '' %}><td>{{ v }}</td></tr>",
        "<p {% if v %}class='a'{% else %}class='b'{% endif %}>{{ v }}</p>",
        "<p class={{ 'a' }}>{{ v }}</p>",
        "1 < 2 <b>{{ v }}</b>",
        "a<1 {{ v }}",
        "<script>x</script>{{ v }}",
        "<!DOCTYPE html><?x y?><br/><img src='a' alt=b>{{ v }}",
        "<p title='a>b'>{{ v }}</p>",
        "<!-- <p -->{{ v }}",
        "<p title='{{ v }}' id=\"{{ v }}\">",
    ],
)
def test_variable_next_to_markup_is_accepted(source):
    assert html(source, v="<i>").count("&lt;i&gt;") == source.count("{{ v")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('<a href="{{ v }}">', Place.ADDRESS),
        ("<img SRC = '{{ v }}'>", Place.ADDRESS),
        ('<a href=" {{ v }}">', Place.ADDRESS),
        ('<a href="{% if a %}{{ v }}">', Place.ADDRESS),
        ('<a href="{{ a }}{{ v }}">', Place.ADDRESS),
        ('<a href="x{{ v }}">', Place.TEXT),
        ('<a href="x" title="{{ v }}">', Place.TEXT),
        ("<style>a{{ v }}", Place.TEXT),
        ("<style></style><p {{ v }}", Place.BARE),
        ("<style></p {{ v }}", Place.TEXT),
        ("<!-- <p {{ v }}", Place.TEXT),
        ("<!-->{{ v }}", Place.TEXT),
        ("{{ v }}", Place.CONTENT),
        ("<p>a {{ v }}", Place.CONTENT),
        ("<!-- a -->{{ v }}", Place.CONTENT),
    ],
)
def test_place_of_a_variable(source, expected):
    assert places(source, pieces(source))[-2] is expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<p>{{ v }}</p>", Place.CONTENT),
        ("{{ v }}<a", Place.BARE),
        ('{{ v }}<a title="', Place.TEXT),
        ("{{ v }}<!--", Place.TEXT),
        ("no Liquid <script>", Place.SCRIPT),
    ],
)
def test_place_where_a_source_ends(source, expected):
    assert places(source, pieces(source))[-1] is expected


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://x.y/?a=1&b=2", "https://x.y/?a=1&b=2"),
        ("HTTP://x.y", "HTTP://x.y"),
        ("mailto:a@b.c", "mailto:a@b.c"),
        ("tel:+1", "tel:+1"),
        ("/path:x", "/path:x"),
        ("?a=b:c", "?a=b:c"),
        ("#a", "#a"),
        ("", ""),
        ("path/x", "path/x"),
        ("javascript:alert(1)", "#"),
        ("JaVaScRiPt:alert(1)", "#"),
        (" \x01javascript:x", "#"),
        ("java\nscript:x", "#"),
        ("java\tscript\r:x", "#"),
        ("javascript", "#"),
        ("vbscript:x", "#"),
        ("data:text/html,<b>", "#"),
        ("file:///etc/passwd", "#"),
        ("myapp://x", "#"),
    ],
)
def test_variable_url_keeps_only_known_schemes(address, shown):
    assert safe_url(address) == shown
    assert Skeleton(html('<a href="{{ v }}">x</a>', v=address)).values[0] == shown


def test_address_in_parts_cannot_spell_a_scheme():
    source = '<a href="{{ a }}{{ b }}">x</a>'
    assert html(source, a="java", b="script:x") == '<a href="java#">x</a>'
    assert html(source, a="https://x", b="/y?z=1") == '<a href="https://x/y?z=1">x</a>'
    assert html('<a href="{{ a }}:{{ b }}">x</a>', a="javascript", b="x") == '<a href="#:x">x</a>'
    assert html('<a href="myapp://{{ a }}">x</a>', a="javascript:x").startswith('<a href="myapp://')


def test_scheme_is_read_as_a_browser_does():
    assert [scheme(a) for a in ("a:b", "A+B.c-1:x", "1:x", "//x", "javascript", "http")] == [
        "a", "a+b.c-1", "", "", "javascript", "",
    ]  # fmt: skip
