"""The wording of log-in: what `locale/` says is what pages say."""

import ast
import re

import pytest
from django.utils.formats import date_format
from django.utils.timezone import datetime
from django.utils.translation import gettext, ngettext

from tests.service import ROOT

SOURCE = (ROOT / "locale" / "en_US" / "LC_MESSAGES" / "django.po").read_text()
PLAIN = re.findall(r'^msgid ("(?:.+)")\nmsgstr ("(?:.+)")$', SOURCE, re.MULTILINE)
PLURAL = re.findall(
    r'^msgid (".+")\nmsgid_plural (".+")\nmsgstr\[0\] (".+")\nmsgstr\[1\] (".+")$',
    SOURCE,
    re.MULTILINE,
)


def test_compiled_translations_equal_the_source():
    assert len(PLAIN) + len(PLURAL) == SOURCE.count("msgid ") - 1  # the first is the header
    for pair in PLAIN:
        theirs, ours = map(ast.literal_eval, pair)
        assert gettext(theirs) == ours
    for texts in PLURAL:
        one, many, ours, ours_many = map(ast.literal_eval, texts)
        assert (ngettext(one, many, 1), ngettext(one, many, 2)) == (ours, ours_many)


def test_our_words_have_no_capitals_inside_a_sentence():
    odd = re.compile(r"(?<=[a-z] )[A-Z][a-z]")
    assert [ours for _, ours in PLAIN if odd.search(ours.replace(". ", ".").strip('"'))] == []


@pytest.mark.parametrize(
    ("name", "text"),
    [("DATE_FORMAT", "3 May 2026"), ("DATETIME_FORMAT", "3 May 2026, 14:05:09 UTC")],
)
def test_days_and_times_are_written_in_one_way(name, text):
    moment = datetime.fromisoformat("2026-05-03T14:05:09+00:00")
    assert date_format(moment, name) == date_format(moment, f"SHORT_{name}") == text
