"""The search of all pages in a real Chromium: by keyboard alone, and by mouse."""

import re

import pytest
from playwright.sync_api import expect

from messaging.models import Message
from rme.tenants.models import Membership, User
from tests import factories
from tests.browser import tabs
from tests.browser.axe import scrolls_sideways, violations
from tests.rest import Api, message

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]


@pytest.fixture
def org(live_server, transactional_db):
    row = factories.organization()
    factories.welcome(row)
    return row


@pytest.fixture
def session(org, client, live_server):
    """Log an owner in and return the session's cookie."""
    user = User.objects.create_user("owner", password="secret", is_staff=True)
    Membership.objects.create(organization=org, user=user, role=Membership.Role.OWNER)
    client.force_login(user)
    value = client.cookies["sessionid"].value
    return {"name": "sessionid", "value": value, "url": live_server.url}


@pytest.fixture
def tab(chromium, live_server, session):
    """Return a tab on the list of messages; an error in the browser's console fails."""
    with tabs.opened(chromium, cookie=session, viewport=tabs.DESKTOP, locale="en-GB") as page:
        page.goto(f"{live_server.url}/admin/console/acme/messages/")
        yield page


def field_of(tab):
    return tab.locator("#console-search")


def panel_of(tab):
    return tab.locator(".c-search-panel")


def options(tab):
    return panel_of(tab).get_by_role("option")


def selected(tab):
    return panel_of(tab).get_by_role("option", selected=True)


def state(tab):
    return panel_of(tab).get_by_role("status")


def press_shortcut(tab, keys):
    tab.wait_for_load_state()
    tab.keyboard.press(keys)
    expect(field_of(tab)).to_be_focused()


def test_search_by_keyboard_alone(tab, org, live_server):
    jose = factories.contact(org, first_name="José", last_name="Müller")
    muriel = factories.contact(org, first_name="Muriel", last_name="Zed")
    assert Api(org).send(message(muriel)).status_code == 202
    link = tab.get_by_role("link", name="Templates", exact=True)
    link.focus()
    press_shortcut(tab, "Control+k")
    field = tab.get_by_role("combobox", name="Search people")
    expect(field).to_be_focused()
    expect(options(tab).first).to_have_text(re.compile("Home"))
    assert field.get_attribute("aria-activedescendant") is None
    tab.keyboard.press("Escape")
    expect(panel_of(tab)).to_be_hidden()
    expect(link).to_be_focused()

    press_shortcut(tab, "/")
    tab.keyboard.type("mu")
    expect(options(tab)).to_have_text(
        [re.compile(each) for each in ("José", "Muriel", "everywhere")]
    )
    expect(state(tab)).to_have_text("2 results")
    expect(selected(tab)).to_have_text(re.compile("José Müller"))
    expect(field).to_have_attribute("aria-activedescendant", selected(tab).get_attribute("id"))
    expect(field).to_have_attribute("aria-expanded", "true")
    tab.keyboard.press("ArrowDown")
    expect(selected(tab)).to_have_text(re.compile("Muriel Zed"))
    for _ in range(2):
        tab.keyboard.press("ArrowDown")  # around the end
    expect(selected(tab)).to_have_text(re.compile("José Müller"))
    tab.keyboard.press("ArrowUp")
    expect(selected(tab)).to_have_text(re.compile("everywhere"))
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Enter")
    expect(tab).to_have_url(f"{live_server.url}/admin/console/acme/people/{jose.pk}/")

    press_shortcut(tab, "Control+k")
    tab.keyboard.type(Message.objects.get().pk.hex[-10:])
    tab.keyboard.press("Enter")  # sooner than the results
    expect(tab).to_have_url(re.compile(f"/messages/{Message.objects.get().pk}/$"))

    press_shortcut(tab, "Meta+k")
    tab.keyboard.type("pause sms")
    expect(selected(tab)).to_have_text(re.compile("Pause SMS"))
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("heading", name="Pause", exact=True)).to_be_visible()

    press_shortcut(tab, "Control+k")
    tab.keyboard.type("nobody at all")
    expect(state(tab)).to_have_text("Nothing matches.")
    tab.keyboard.press("Enter")
    expect(tab).to_have_url(re.compile(r"/search/\?organization=acme&q=nobody"))


def test_results_open_when_somebody_types_and_close_when_the_focus_leaves(tab, org):
    factories.contact(org)
    field = field_of(tab)
    field.focus()  # as Tab does
    expect(panel_of(tab)).to_be_hidden()
    tab.keyboard.press("ArrowDown")
    expect(options(tab).first).to_have_text(re.compile("Home"))
    tab.keyboard.press("Tab")
    expect(field).not_to_be_focused()
    expect(panel_of(tab)).to_be_hidden()
    expect(field).to_have_attribute("aria-expanded", "false")
    field.focus()
    tab.keyboard.type("lovel")
    expect(selected(tab)).to_have_text(re.compile("Ada Lovelace"))
    tab.keyboard.press("Escape")
    expect(panel_of(tab)).to_be_hidden()
    expect(field).to_be_focused()
    expect(field).to_have_value("")


def test_results_that_are_hidden_are_not_opened(tab, org):
    for each in ("a", "b"):
        factories.contact(org, email=f"{each}@simulator.rme.test")
    field = field_of(tab)
    field.focus()
    tab.keyboard.type("lovel")
    expect(selected(tab)).to_have_text(re.compile("Ada Lovelace"))
    tab.keyboard.press("Tab")
    expect(panel_of(tab)).to_be_hidden()
    tab.keyboard.press("Shift+Tab")
    expect(field).to_be_focused()
    tab.keyboard.press("Enter")
    expect(tab).to_have_url(re.compile(r"/search/\?.*q=lovel"))


def test_search_by_mouse(tab, org, live_server):
    ada = factories.contact(org)
    field_of(tab).click()
    expect(options(tab).first).to_have_text(re.compile("Home"))
    field_of(tab).fill("lovel")
    expect(selected(tab)).to_have_text(re.compile("Ada Lovelace"))
    options(tab).first.click()
    expect(tab).to_have_url(f"{live_server.url}/admin/console/acme/people/{ada.pk}/")
    field_of(tab).click()
    expect(panel_of(tab)).to_be_visible()
    tab.mouse.click(600, 700)  # beside it
    expect(panel_of(tab)).to_be_hidden()


def test_search_on_a_phone_opens_from_a_button(tab, org, live_server):
    ada = factories.contact(org)
    tab.set_viewport_size(tabs.PHONE)
    button = tab.get_by_role("button", name="Search", exact=True)
    button.click()
    expect(field_of(tab)).to_be_focused()
    tab.get_by_role("search", name="Search the console").get_by_label("Close").click()
    expect(field_of(tab)).to_be_hidden()
    expect(button).to_be_focused()
    tab.keyboard.press("Space")
    field_of(tab).fill("lovel")
    expect(selected(tab)).to_have_text(re.compile("Ada Lovelace"))
    options(tab).first.click()
    expect(tab).to_have_url(f"{live_server.url}/admin/console/acme/people/{ada.pk}/")


def test_search_is_accessible_wide_and_narrow_light_and_dark(tab, org):
    factories.contact(org)
    for width, scheme in ((1440, "light"), (1440, "dark"), (390, "dark"), (390, "light")):
        tab.set_viewport_size({"width": width, "height": 844})
        tab.evaluate("d => document.documentElement.classList.toggle('dark', d)", scheme == "dark")
        press_shortcut(tab, "Control+k")
        for term in ("", "ada", "zzzz"):
            field_of(tab).fill(term)
            expect(options(tab).last).to_have_text(re.compile(term or "Show scheduled messages"))
            assert (width, scheme, term, violations(tab), scrolls_sideways(tab)) == (
                *(width, scheme, term, [], False),
            )
        tab.keyboard.press("Escape")


def test_ended_session_leads_to_the_search_after_the_log_in(tab, org, client):
    press_shortcut(tab, "Control+k")
    expect(options(tab).first).to_be_visible()
    tab.context.clear_cookies()
    tab.keyboard.type("ada")
    expect(state(tab)).to_have_text(re.compile("doesn't answer"))
    tab.keyboard.press("Enter")
    expect(tab).to_have_url(re.compile(r"/admin/login/\?next=.*search.*ada"))


def test_switcher_finds_an_organization_and_keeps_the_page(tab, org, live_server):
    owner = User.objects.get()
    for index in range(60):
        other = factories.organization(f"o{index}", name=f"Clinic {index:02}")
        Membership.objects.create(organization=other, user=owner, role=Membership.Role.OWNER)
    tab.reload()
    tab.get_by_role("button", name="Change organization").click()
    field = tab.get_by_role("combobox", name="Find an organization")
    expect(field).to_be_focused()
    assert violations(tab) == []
    tab.keyboard.type("clinic 57")
    expect(tab.get_by_role("option", name="Clinic 57")).to_be_visible()
    expect(tab.locator("#organization-list")).to_be_hidden()
    assert violations(tab) == []
    tab.keyboard.press("Enter")
    expect(tab).to_have_url(f"{live_server.url}/admin/console/o57/messages/")


def test_search_without_scripts(chromium, live_server, session, org):
    ada = factories.contact(org)
    person = f"{live_server.url}/admin/console/acme/people/{ada.pk}/"
    options = {"java_script_enabled": False, "viewport": tabs.PHONE, "locale": "en-GB"}
    with tabs.opened(chromium, cookie=session, **options) as page:
        page.goto(f"{live_server.url}/admin/console/acme/messages/")
        page.get_by_role("link", name="Search").click()
        page.get_by_label("Name, address, number, id or page").fill("lovel")
        page.get_by_role("button", name="Search", exact=True).click()
        expect(page).to_have_url(person)
        page.set_viewport_size(tabs.DESKTOP)
        page.goto(f"{live_server.url}/admin/console/acme/messages/")
        field_of(page).fill("lovel")
        field_of(page).press("Enter")
        expect(page).to_have_url(person)
