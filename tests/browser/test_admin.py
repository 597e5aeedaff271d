"""Pages of the admin in a real Chromium: no error by their scripts."""

import pytest
from playwright.sync_api import expect

from rme.tenants.models import User
from tests import factories
from tests.browser import tabs
from tests.browser.axe import scrolls_sideways

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture
def tab(chromium, live_server, transactional_db):
    """Return a tab of a superuser who is logged in; an error of a script fails the test."""
    factories.organization()
    User.objects.create_superuser("root", password="correct horse")
    with tabs.opened(chromium, locale="en-GB", viewport=tabs.PHONE) as page:
        page.goto(f"{live_server.url}/admin/")
        page.get_by_label("Username").fill("root")
        page.locator("input[name=password]").fill("correct horse")
        page.get_by_role("button", name="Log in", exact=True).click()
        page.wait_for_url(f"{live_server.url}/admin/")
        yield page


@pytest.mark.parametrize("list_path", ["crm/contact", "messaging/suppression"])
def test_a_file_is_chosen_for_an_import(tab, journey, live_server, list_path):
    tab.goto(f"{live_server.url}/admin/{list_path}/imports/new/")
    file = {"name": "people.csv", "mimeType": "text/csv", "buffer": b"lastName\nLovelace\n"}
    journey.choose_file(tab.locator("input[type=file]"), file)
    shown = tab.locator("input[type=text][disabled]")
    expect(shown).to_have_attribute("value", "people.csv")
    assert not scrolls_sideways(tab)
