"""The documents: each is in the index, and what they name and link to exists."""

import re

from tests.service import ROOT

INDEX = ROOT / "docs" / "README.md"
PAGES = [
    *sorted((ROOT / "docs").rglob("*.md")),
    *(ROOT / each for each in ("README.md", "rme/transport/README.md")),
]
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s#]*)(?:#([^)\s]+))?\)")
SOURCE = re.compile(r"`((?:rme|messaging|push|bot|tests|bench|deploy|clients)/[\w/.-]+\.\w+)")


def _prose(text: str) -> str:
    return re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)


def _anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", _prose(text), re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", each) for each in headings)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in plain}


def test_every_page_is_in_the_index():
    listed = {(INDEX.parent / path).resolve() for path, _ in LINK.findall(INDEX.read_text())}
    assert {page for page in PAGES if page not in listed} == {INDEX, ROOT / "README.md"}


def test_every_link_leads_to_a_page_and_its_heading():
    broken = []
    for page in PAGES:
        for path, anchor in LINK.findall(_prose(page.read_text())):
            target = page.parent / path if path else page
            if not target.exists():
                broken.append((page.name, path))
            elif anchor and target.suffix == ".md" and anchor not in _anchors(target.read_text()):
                broken.append((page.name, f"{path}#{anchor}"))
    assert broken == []


def test_every_file_that_a_page_names_exists():
    named = {(page.name, path) for page in PAGES for path in SOURCE.findall(page.read_text())}
    assert len(named) > 100
    assert {(page, path) for page, path in named if not (ROOT / path).exists()} == {
        ("adding-a-provider.md", "messaging/providers/examplesms.py")  # the reader writes it
    }
