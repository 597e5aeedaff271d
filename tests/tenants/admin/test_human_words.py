"""Every page for people shows words: no constants, no ids as titles, no objects of Python."""

import re
from html.parser import HTMLParser

import pytest

from rme.tenants.models import User
from tests.browser.test_every_page import scene
from tests.tenants.admin.addresses import Addresses
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db

CODE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")
ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
OBJECT = re.compile(r"object \(\d+\)|Enter a valid value\.")
QUOTED = {"script", "style", "code", "pre", "textarea", "svg"}
"""What stands in these is meant for programs."""
TITLES = {"title", "h1", "h2", "h3"}


class Page(HTMLParser):
    """The texts of a page, and those of its titles."""

    def __init__(self, html):
        super().__init__()
        self.open, self.texts, self.titles = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        if tag not in ("br", "img", "input", "link", "meta", "hr", "source", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        while tag in self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if text := data.strip():
            if QUOTED.isdisjoint(self.open):
                self.texts.append(text)
            if self.open and self.open[-1] in TITLES:
                self.titles.append(text)


def odd(html):
    """Return what no person would say on a page."""
    page = Page(html)
    return sorted(
        {match for text in page.texts for match in CODE.findall(text) + OBJECT.findall(text)}
        | {match for title in page.titles for match in ID.findall(title)}
    )


def test_odd_texts_are_found():
    html = "<title>01a21cb0-d887-7089-b0ca-f35b4bbe7e16</title><p>HARD_BOUNCE <code>A_B</code></p>"
    assert odd(html) == ["01a21cb0-d887-7089-b0ca-f35b4bbe7e16", "HARD_BOUNCE"]
    assert odd("<p>Category object (3)</p>") == ["object (3)"]
    assert odd("<h1>Messages</h1><p>Ada, by SMS</p>") == []


@pytest.mark.parametrize(
    ("role", "least"), [("", 200), ("OWNER", 150), ("DEVELOPER", 50), ("VIEWER", 80)]
)
def test_every_page_shows_words(root, org, role, least):
    scene(org)
    found, pages = {}, 0
    client = person("p", org, role) if role else root
    for path in Addresses(org, User.objects.get(username="root")).all():
        answer = client.get(path)
        if answer.status_code == 200 and answer["Content-Type"].startswith("text/html"):
            pages += 1
            if texts := odd(answer.content.decode()):
                found[path] = texts
    assert found == {}
    assert pages > least
