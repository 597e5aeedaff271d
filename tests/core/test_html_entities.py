"""Character references in texts from outside."""

import pytest

from messaging.content.rendering.html.plain_text import from_html
from rme.core.html_entities import unescape
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
def test_reference_is_read_however_long_its_number(text: str, read: str) -> None:
    assert unescape(text) == read


def test_reference_with_a_long_number_in_a_text_of_others() -> None:
    number = f"&#{'9' * 5000};"
    assert from_html(f"<p>a{number}</p>") == "a\ufffd\n"
    assert _text_of(f"<p>a{number}</p>") == "a\ufffd"
