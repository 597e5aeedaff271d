"""The console's style sheets take colours from the tokens, and name tokens that exist."""

import re
from pathlib import Path

import pytest
from django.conf import settings

FOLDER = Path(settings.BASE_DIR) / "messaging" / "static" / "console"
SHEETS = {path.name: path.read_text() for path in FOLDER.glob("*.css")}
TOKENS = SHEETS.pop("tokens.css")
PLAIN = "error.css"
"""The page of an error has no scripts that could choose the dark tokens: it has its own."""
OF_THE_THEME = {"console.css": {"--color-primary-500"}}
"""Variables that the theme defines, by the sheet that uses them."""


@pytest.mark.parametrize("name", sorted(SHEETS.keys() - {PLAIN}))
def test_sheet_has_no_colour_of_its_own(name):
    values = re.findall(r":([^;{}]+)[;}]", SHEETS[name])
    assert [each for each in values if re.search(r"#[0-9a-fA-F]{3,8}\b|rgba?\(", each)] == []


@pytest.mark.parametrize("name", sorted(SHEETS))
def test_sheet_names_tokens_that_exist(name):
    defined = set(re.findall(r"(--[a-z0-9-]+):", TOKENS + SHEETS[name]))
    used = set(re.findall(r"var\((--[a-z0-9-]+)", SHEETS[name]))
    assert used - defined == OF_THE_THEME.get(name, set())
