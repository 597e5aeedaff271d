"""The recipients' pages in a real browser: by mouse, by keyboard, by screen reader."""

import re

import pytest
from playwright.sync_api import expect

from messaging.links import PreferenceLink
from messaging.models import ConsentEntry
from messaging.pages import brand
from tests import factories
from tests.browser.axe import scrolls_sideways

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]


@pytest.fixture
def link(live_server, transactional_db):
    org = factories.organization(brand_color="#0b6e4f")
    person = factories.contact(org)
    return PreferenceLink(org.pk, str(person.pk), "EMAIL", "MARKETING")


@pytest.fixture
def address(live_server, link):
    return f"{live_server.url}/p/{link.token}"


def ledger():
    rows = ConsentEntry.objects.order_by("id")
    return list(rows.values_list("category", "channel", "status", "source"))


def box(tab, category, channel):
    return tab.get_by_role("group", name=category).get_by_role("checkbox", name=channel)


def test_a_choice_is_saved_and_announced(tab, journey, address):
    tab.goto(address)
    expect(tab).to_have_title("Your preferences – Acme")
    expect(box(tab, "News and offers", "Email")).not_to_be_checked()
    expect(box(tab, "Service messages", "Text message")).to_be_checked()
    journey.check(box(tab, "News and offers", "Email"))
    journey.click("button", "Save")
    result = tab.get_by_role("status")
    expect(result).to_have_text("Your preferences are saved.")
    expect(result).to_be_focused()
    expect(box(tab, "News and offers", "Email")).to_be_checked()
    assert ledger() == [("MARKETING", "EMAIL", "OPTED_IN", "PREFERENCE_PAGE")]
    assert journey.count <= 2


def test_page_works_by_keyboard(tab, address):
    tab.goto(address)
    tab.keyboard.press("Tab")
    expect(box(tab, "News and offers", "Email")).to_be_focused()
    tab.keyboard.press("Space")
    for _ in range(4):
        tab.keyboard.press("Tab")
    expect(tab.get_by_role("button", name="Save")).to_be_focused()
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("status")).to_have_text("Your preferences are saved.")
    assert ledger() == [("MARKETING", "EMAIL", "OPTED_IN", "PREFERENCE_PAGE")]


def test_stop_all_messages(tab, journey, address):
    tab.goto(address)
    journey.click("button", "Stop all messages")
    expect(tab.get_by_role("status")).to_have_text("You will get nothing any more from Acme.")
    for checkbox in tab.get_by_role("checkbox").all():
        expect(checkbox).not_to_be_checked()
    assert ledger() == [("ALL", "ALL", "OPTED_OUT", "PREFERENCE_PAGE")]


def test_another_language_stays_through_a_change(tab, journey, address):
    tab.goto(address)
    journey.click("link", "Deutsch")
    expect(tab.locator("html")).to_have_attribute("lang", "de")
    journey.check(box(tab, "Neuigkeiten und Angebote", "SMS"))
    journey.click("button", "Speichern")
    expect(tab.get_by_role("status")).to_have_text("Ihre Einstellungen sind gespeichert.")


def test_unsubscribing_takes_one_button(tab, journey, live_server, link):
    tab.goto(f"{live_server.url}/p/u/{link.token}")
    assert ledger() == []
    journey.click("button", "Unsubscribe")
    result = tab.get_by_role("status")
    expect(result).to_have_text("You are unsubscribed from “News and offers” of Acme (Email).")
    expect(result).to_be_focused()
    assert ledger() == [("MARKETING", "EMAIL", "OPTED_OUT", "PREFERENCE_PAGE")]
    journey.click("link", "Change other preferences")
    expect(box(tab, "News and offers", "Email")).not_to_be_checked()
    assert journey.count <= 2


def test_accessibility_tree_of_the_preference_page(tab, address):
    tab.goto(address)
    expect(tab.locator("body")).to_match_aria_snapshot("""
        - banner:
          - paragraph: Acme
        - main:
          - heading "Your preferences" [level=1]
          - status
          - paragraph: Choose what Acme may send you, and how.
          - group "News and offers":
            - checkbox "Email"
            - checkbox "Text message"
          - group "Service messages":
            - paragraph: /What you need to know/
            - checkbox "Email" [checked]
            - checkbox "Text message" [checked]
          - button "Save"
          - region "No more of anything":
            - heading "No more of anything" [level=2]
            - paragraph: Acme will send you nothing any more, service messages included.
            - button "Stop all messages"
        - contentinfo:
          - navigation "Language":
            - list:
              - listitem:
                - link "English"
        """)


def test_text_contrast_and_target_sizes_are_sufficient(tab, address):
    tab.goto(address)
    for name in ("Save", "Stop all messages"):
        button = tab.get_by_role("button", name=name)
        style = button.evaluate("e => [getComputedStyle(e).color, getComputedStyle(e).background]")
        text, ground = (_hex(value) for value in style)
        assert brand.contrast(text, ground) >= 4.5
        size = button.bounding_box()
        assert size["height"] >= 44
    assert _hex(tab.locator("header").evaluate("e => getComputedStyle(e).background")) == "#0b6e4f"
    assert not scrolls_sideways(tab)


def _hex(text):
    red, green, blue = re.search(r"rgb\((\d+), (\d+), (\d+)\)", text).groups()
    return f"#{int(red):02x}{int(green):02x}{int(blue):02x}"
