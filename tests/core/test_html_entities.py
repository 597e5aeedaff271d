"""Character references in texts from outside."""

import pytest

from messaging.content.rendering.html.plain_text import from_html
from rme.core.html_entities import unescape, unescape_attribute
from rme.crm.connectors.odoo.connector import _text_of


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("&amp;&#228;&#xE4;&nbsp;&copy", "&ää\xa0©"),
        ("&#000000000000228;", "ä"),
        ("&#99999999;", "\ufffd"),
        (f"a&#{'9' * 5000};b&#x{'f' * 5000};c", "a\ufffdb\ufffdc"),
        (f"&#{'9' * 5000}", "\ufffd"),
    ],
)
def test_reference_with_a_number_of_any_length_is_read(text: str, read: str) -> None:
    assert unescape(text) == read


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("/list?a=1&region=eu&currency=EUR", "/list?a=1&region=eu&currency=EUR"),
        ("?a&copy=1&not=2&amp=3&lt=4&para=5", "?a&copy=1&not=2&amp=3&lt=4&para=5"),
        ("?a&copyright&notit;&regx&sect2&ampamp", "?a&copyright&notit;&regx&sect2&ampamp"),
        ("?a=1&amp;b=2&#38;c=3&#x26;d&#38e", "?a=1&b=2&c=3&d&e"),
        ("&copy;&region;&reg;ion", "©&region;®ion"),
        ("&copy &reg&amp&para/&lt", "© ®&¶/<"),
        ("&copyé&regß", "©é®ß"),
        ("&CounterClockwiseContourIntegral;&unknown;&;&", "∳&unknown;&;&"),
        ("&amp;copy=1&amp;amp;", "&copy=1&amp;"),
        (f"a&#{'9' * 5000};b", "a\ufffdb"),
    ],
)
def test_a_reference_in_an_attribute_needs_its_semicolon_before_more_of_a_word(
    value: str, read: str
) -> None:
    assert unescape_attribute(value) == read


def test_reference_with_a_long_number_in_html_is_replaced() -> None:
    number = f"&#{'9' * 5000};"
    assert from_html(f"<p>a{number}</p>") == "a\ufffd\n"
    assert _text_of(f"<p>a{number}</p>") == "a\ufffd"
