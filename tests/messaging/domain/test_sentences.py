"""Sentences that are English, and that the console can translate."""

import pytest
from django.utils import translation

from messaging.console import wording
from messaging.domain.sentences import counted, sentence
from tests.words import brackets


@pytest.mark.parametrize(
    ("text", "english"),
    [
        (sentence("The %(noun)s of %(name)s", noun="key", name="x %"), "The key of x %"),
        (counted("%(count)s row", "%(count)s rows", 1), "1 row"),
        (counted("%(count)s row", "%(count)s rows", 1200), "1,200 rows"),
        (sentence("Failing for %(time)s", time=sentence("%(n)s d", n=2)), "Failing for 2 d"),
        (sentence("100 %% of it"), "100 % of it"),
    ],
)
def test_sentence_is_its_english_text(text, english):
    assert text == english
    assert wording.said(text) == english


def test_sentence_is_translated_with_its_values(tmp_path, settings):
    brackets.install(tmp_path)
    settings.LOCALE_PATHS = [tmp_path]
    age = sentence("%(number)s min", number=5)
    text = sentence("The webhook %(name)s has been failing for %(time)s.", name="Shop", time=age)
    with translation.override(brackets.LANGUAGE):
        assert wording.said(text) == "⟦The webhook Shop has been failing for ⟦5 min⟧.⟧"
        assert wording.said("Shop") == "Shop"
