"""Contacts and suppressions in a real Chromium, by mouse and by the keyboard alone."""

import pytest
from playwright.sync_api import expect

from messaging.models import Suppression
from rme.crm.models import Contact
from tests import factories
from tests.browser.test_console import cookie, org, tab

__all__ = ["cookie", "org", "tab"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]


def test_contacts_are_changed_and_merged(tab, journey, org, live_server):
    ada = factories.contact(org, first_name="")
    bob = factories.contact(org, first_name="Ada", email="ada@work.example", mobile="")
    tab.goto(f"{live_server.url}/admin/console/acme/contacts/")
    journey.click("link", "Open Ada Lovelace")
    journey.click("button", "More actions")
    journey.click("link", "Edit")
    journey.fill("Mobile", "555 0100")
    journey.click("button", "Save")
    expect(tab.get_by_role("alert")).to_contain_text("This is not a phone number of US")
    expect(tab.get_by_label("Mobile")).to_have_value("555 0100")
    journey.fill("Mobile", "(212) 736-5000")
    journey.choose("Language", "German (Switzerland)")
    journey.click("button", "Save")
    expect(tab.get_by_text("Ada Lovelace is saved.")).to_be_visible()
    bob.refresh_from_db()
    assert (bob.mobile, bob.language) == ("+12127365000", "de_CH")

    journey.click("link", "Contacts")
    journey.check("Tick Ada Lovelace")
    journey.check(tab.get_by_label("Tick Lovelace", exact=True))
    journey.click("button", "Merge two")
    journey.click("link", "Keep Lovelace instead")
    journey.fill("Reason", "one person")
    journey.click("button", "Merge contacts")
    expect(tab.get_by_text("Ada Lovelace is merged into Lovelace.")).to_be_visible()
    row = Contact.objects.get()
    assert (row.pk, row.first_name, row.language) == (ada.pk, "Ada", "de_CH")


def test_person_is_suppressed_and_the_suppression_lifted(tab, journey, org, live_server):
    ada = factories.contact(org)
    tab.goto(f"{live_server.url}/admin/console/acme/people/{ada.pk}/")
    journey.click("button", "More actions")
    journey.click("link", "Suppress this person")
    journey.choose("Channel", "SMS")
    journey.fill("Or a person", "nobody")
    journey.fill("Note", "asked by phone")
    journey.click("button", "Add suppression")
    expect(tab.get_by_role("alert")).to_contain_text("No contact found.")
    expect(tab.get_by_label("Or a person")).to_have_value("nobody")
    expect(tab.get_by_label("Note")).to_have_value("asked by phone")
    journey.fill("Or a person", "Lovelace")
    journey.click("button", "Add suppression")
    expect(tab.get_by_text("The suppression is added.")).to_be_visible()
    journey.click("button", "Change suppression")
    journey.fill("Note", "asked by letter")
    journey.click("button", "Save")
    expect(tab.get_by_text("The suppression is saved.")).to_be_visible()
    row = Suppression.objects.get()
    assert (row.contact_id, row.channel, row.note) == (str(ada.pk), "SMS", "asked by letter")

    journey.click("link", "Suppressions")
    journey.fill("Person or address", "Lovelace")
    journey.click("button", "Search this list")
    journey.click("link", "Open suppression of Ada Lovelace")
    journey.click("link", "Lift suppression")
    journey.fill("Reason", "asked for messages again")
    journey.click("button", "Lift suppression")
    expect(tab.get_by_role("heading", name="Reachability")).to_be_visible()
    assert not Suppression.objects.exists()
