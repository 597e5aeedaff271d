"""The pictures of the documents: each that is named exists, is made by the script, and is named."""

import re

from tests.service import ROOT

DOCS = ROOT / "docs"
LARGEST = 300_000
"""Bytes of a picture."""


def made():
    """Return the names in the script's list."""
    text = (DOCS / "screenshots.py").read_text()
    return set(re.findall(r"^ +Picture\(\s*\"([\w-]+)\"", text, re.MULTILINE))


def test_every_picture_is_named_and_every_named_one_exists():
    texts = [*DOCS.rglob("*.md"), ROOT / "README.md"]
    named = {
        (path.parent / target).resolve()
        for path in texts
        for target in re.findall(r"!\[[^\]]+\]\(([^)]+\.png)\)", path.read_text())
    }
    there = set((DOCS / "images").glob("*.png"))
    assert sorted(path.name for path in there ^ named) == []


def test_every_picture_is_made_by_the_script():
    there = {path.stem for path in (DOCS / "images").glob("*.png")}
    assert sorted(there ^ made()) == []


def test_the_pictures_are_small():
    sizes = {path.name: path.stat().st_size for path in (DOCS / "images").glob("*.png")}
    assert [name for name, size in sizes.items() if size > LARGEST] == []
