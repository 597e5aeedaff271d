"""Pages of the admin in a real Chromium: no error by their scripts."""

import pytest
from playwright.sync_api import expect

from rme.tenants.models import User
from tests import factories
from tests.browser.axe import scrolls_sideways

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture
def tab(chromium, live_server, transactional_db):
    """Return a tab of a superuser who is logged in; an error of a script fails the test."""
    factories.organization()
    User.objects.create_superuser("root", password="correct horse")
    context = chromium.new_context(locale="en-GB", viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.set_default_timeout(20_000)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda entry: problems.append(entry.text) if entry.type == "error" else None)
    page.goto(f"{live_server.url}/admin/")
    page.get_by_label("Username").fill("root")
    page.locator("input[name=password]").fill("correct horse")
    page.get_by_role("button", name="Log in", exact=True).click()
    page.wait_for_url(f"{live_server.url}/admin/")
    yield page
    context.close()
    assert problems == []


@pytest.mark.parametrize("list_path", ["crm/contact", "messaging/suppression"])
def test_a_file_is_chosen_for_an_import(tab, journey, live_server, list_path):
    tab.goto(f"{live_server.url}/admin/{list_path}/imports/new/")
    file = {"name": "people.csv", "mimeType": "text/csv", "buffer": b"lastName\nLovelace\n"}
    journey.choose_file(tab.locator("input[type=file]"), file)
    shown = tab.locator("input[type=text][disabled]")
    expect(shown).to_have_attribute("value", "people.csv")
    assert not scrolls_sideways(tab)
