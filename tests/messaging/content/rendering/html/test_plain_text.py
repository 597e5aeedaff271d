"""The text of an email that has HTML alone."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from messaging.content.rendering.html.plain_text import from_html, strip_tags
from tests.messaging.content.rendering.html.test_places import MARKUP


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ("<p>a</p><p>b</p>", "a\n\nb\n"),
        ("a<br>b<BR/>c", "a\nb\nc\n"),
        ("<h1>A  &amp;\n B</h1>c", "A & B\n\nc\n"),
        ("<ul><li>a</li><li>b</li></ul>c", "- a\n- b\n\nc\n"),
        ("<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>", "1 2\n3\n"),
        ('<a href="https://x/?a=1&amp;b=2">go <b>on</b></a>.', "go on (https://x/?a=1&b=2).\n"),
        ("<a href=https://x>https://x</a>", "https://x\n"),
        ("<a href='https://x?a&region=eu&copy=1'>go</a>", "go (https://x?a&region=eu&copy=1)\n"),
        ("<a href='https://x?a&amp;b'>https://x?a&amp;b</a>", "https://x?a&b\n"),
        ("<img alt='R&copy=D &amp; more&copy;'>&region", "R&copy=D & more©®ion\n"),
        ("<p>&am<b>p;</b> &amp;lt;</p>", "&amp; &lt;\n"),
        ("a <a href='mailto:a@b.c'>a@b.c</a> b", "a a@b.c b\n"),
        ("<a href='mailto:a@b.c'> write </a>b", "write (a@b.c) b\n"),
        ("<a href='#x'>up</a> <a>x</a> <a href=''>y</a>", "up x y\n"),
        ("<a href='u'>a<a href='v'>b</a></a>c", "a (u)b (v)c\n"),
        ("<a href='u'><img src=x alt='Logo'></a>", "Logo (u)\n"),
        ("<head><title>t</title></head><style>a{}</style><script>x</script>b", "b\n"),
        ('<div style="display : NONE">pre<div>x</div></div>b', "b\n"),
        ("a<!-- x <b> -->b<!--[if mso]>c<![endif]-->d<!-->e", "abde\n"),
        ("<!doctype html><p title='a>b'>x</p>", "x\n"),
        ("a&nbsp;b&#8212;c&unknown;", "a b—c&unknown;\n"),
        ("a < b <p>c", "a < b\n\nc\n"),
        ("a<p title='x", "a\n"),
        ("a<!-- x", "a\n"),
        ("", "\n"),
    ],
)
def test_text_from_html(document, text):
    assert from_html(document) == text


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<b>a</b>", "a"),
        ("a<!-- <b> -->c", "ac"),
        ("<SCRIPT>a</Script>b<style>c</style >d", "bd"),
        ("<script>a", "a"),
        ("1 < 2", "1 < 2"),
        ("<<b>>", ">"),
        ("İ<b>x</b>", "İx"),
    ],
)
def test_strip_tags(markup, text):
    assert strip_tags(markup) == text


@settings(deadline=None)
@given(st.text(MARKUP, max_size=60), st.text(max_size=20))
def test_text_from_any_html_never_fails(markup, other):
    assert isinstance(from_html(markup + other + markup), str)
    assert isinstance(strip_tags(markup + other), str)
