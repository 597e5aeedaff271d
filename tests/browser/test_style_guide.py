"""The style guide in a browser: accessible wide and narrow, light and dark; its parts work."""

import pytest
from playwright.sync_api import expect

from tests import factories
from tests.browser import tabs
from tests.browser.axe import scrolls_sideways, violations
from tests.tenants.access.scene import browser, log_in

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]
SIZES = {"desktop": tabs.DESKTOP, "phone": tabs.PHONE}


@pytest.fixture
def cookie(live_server, transactional_db, settings, django_user_model):
    settings.ROOT_URLCONF = "tests.browser.style_guide_urls"
    factories.organization()
    django_user_model.objects.create_superuser("root", "root@example.com", "correct horse battery")
    client = browser()
    log_in(client, "root")
    return {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live_server.url}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_style_guide_is_accessible(chromium, live_server, cookie, size, scheme):
    options = {"viewport": SIZES[size], "color_scheme": scheme, "reduced_motion": "reduce"}
    with tabs.opened(chromium, cookie=cookie, **options) as tab:
        tab.goto(f"{live_server.url}/admin/style-guide/")
        assert (tab.locator("html.dark").count() == 1) == (scheme == "dark")
        assert violations(tab) == []
        assert not scrolls_sideways(tab)
        tab.get_by_role("button", name="Cancel messages").click()
        expect(tab.get_by_role("dialog")).to_be_visible()
        assert violations(tab) == []


def test_parts_work_by_keyboard(chromium, live_server, cookie):
    with tabs.opened(chromium, cookie=cookie, viewport=tabs.DESKTOP) as tab:
        tab.goto(f"{live_server.url}/admin/style-guide/")
        tab.get_by_role("button", name="More actions").press("Enter")
        expect(tab.get_by_role("link", name="Export all")).to_be_visible()
        tab.keyboard.press("Escape")
        expect(tab.get_by_role("link", name="Export all")).to_be_hidden()
        line = tab.locator("#spark .c-spark").first
        line.focus()
        expect(tab.get_by_text("23:00: 8")).to_be_visible()
        line.press("ArrowLeft")
        expect(tab.get_by_role("slider", name="Messages by hour")).to_have_attribute(
            "aria-valuetext", "22:00: 1"
        )
        tab.get_by_role("button", name="Cancel messages").press("Enter")
        dialog = tab.get_by_role("dialog", name="Cancel 3 scheduled messages?")
        expect(dialog).to_be_visible()
        tab.keyboard.press("Escape")
        expect(dialog).to_be_hidden()


def test_field_suggests_while_somebody_types(chromium, live_server, cookie):
    with tabs.opened(chromium, cookie=cookie, viewport=tabs.DESKTOP) as tab:
        tab.goto(f"{live_server.url}/admin/style-guide/")
        field = tab.locator("#combobox input")
        field.press_sequentially("o")
        options = tab.locator("#combobox").get_by_role("option")
        expect(options).to_have_text(["Oliviaolivia@example.com", "Oscaroscar@example.com"])
        assert violations(tab) == []
        field.press("ArrowDown")
        field.press("ArrowDown")
        expect(options.nth(1)).to_have_attribute("aria-selected", "true")
        field.press("Enter")
        expect(field).to_have_value("oscar@example.com")
        expect(options).to_have_count(0)
        field.fill("o")
        options.first.click()
        expect(field).to_have_value("olivia@example.com")
