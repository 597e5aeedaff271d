"""Importing 5,000 contacts of a foreign spreadsheet, in a real Chromium, with one upload."""

import pytest
from playwright.sync_api import expect

from rme.crm.models import Contact
from rme.crm.records import import_file
from rme.tenants.models import Membership, User
from tests import factories
from tests.browser import tabs
from tests.browser.axe import violations

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]
ROWS = 5000


@pytest.fixture
def org(live_server, transactional_db):
    return factories.organization(region="CH")


@pytest.fixture
def tab(chromium, live_server, org, client):
    user = User.objects.create_user("operator", password="secret", is_staff=True)
    Membership.objects.create(organization=org, user=user, role=Membership.Role.OPERATOR)
    client.force_login(user)
    cookie = client.cookies["sessionid"].value
    session = {"name": "sessionid", "value": cookie, "url": live_server.url}
    with tabs.opened(chromium, cookie=session, viewport=tabs.DESKTOP, locale="en-GB") as page:
        page.goto(f"{live_server.url}/admin/")
        yield page


def spreadsheet():
    """Return a file with three kinds of bad rows: languages, numbers, and missing names."""
    lines = ["Kd-Nr;Nachname;Vorname;E-Mail-Adresse;Natel;Sprache"]
    for number in range(ROWS):
        name = "" if number % 100 == 0 else f"Müller{number}"
        digits = f"079 {number // 100 + 200} {number % 100:02} 00"
        phone = "unbekannt" if number % 50 == 1 else digits
        language = "Deutsch" if number % 4 == 2 else "de-CH"
        lines.append(f"{number};{name};Zoë;p{number}@x.example;{phone};{language}")
    return "\r\n".join(lines).encode("cp1252")


def work():
    """Do what a worker does, until nothing is left."""
    while import_file.import_next_part():
        pass


def test_contacts_with_bad_rows_are_imported_with_one_upload(tab, journey):
    journey.click("link", "Contacts")
    journey.click("link", "Import a file")
    file = {"name": "kunden.csv", "mimeType": "text/csv", "buffer": spreadsheet()}
    journey.choose_file(tab.locator("input[type=file]"), file)
    journey.click("button", "Upload")
    work()
    expect(tab.get_by_role("status")).to_contain_text("nothing of kunden.csv is imported yet")
    expect(tab.get_by_role("row", name="Skip as bad")).to_contain_text("1,400")
    assert not Contact.objects.exists()
    journey.fill("Instead of Deutsch (1,250 rows)", "de")
    journey.check("Leave mobile empty")
    journey.fill("Use for last name in all 50 rows", "Unknown")
    for width in (1440, 390):
        tab.set_viewport_size({"width": width, "height": 900})
        assert violations(tab) == []
    tab.set_viewport_size(tabs.DESKTOP)
    journey.click("button", "Import")
    work()
    expect(tab.get_by_role("row", name="Added")).to_contain_text("5,000")
    people = Contact.objects.filter
    assert Contact.objects.count() == ROWS
    assert people(last_name="Unknown").count() == ROWS // 100
    assert people(language="de").count() == ROWS // 4
    assert people(mobile="").count() == ROWS // 50
    assert people(first_name="Zoë").count() == ROWS
    assert journey.count <= 8


def test_enter_in_a_field_checks_the_file_again(tab, journey):
    journey.click("link", "Contacts")
    journey.click("link", "Import a file")
    text = b"lastName,email,language\nRoth,r@x.example,Deutsch\n"
    file = {"name": "people.csv", "mimeType": "text/csv", "buffer": text}
    journey.choose_file(tab.locator("input[type=file]"), file)
    journey.click("button", "Upload")
    work()
    tab.get_by_label("Instead of Deutsch").fill("de")
    tab.get_by_label("Instead of Deutsch").press("Enter")
    expect(tab.get_by_text("Being checked")).to_be_visible()
    work()
    expect(tab.get_by_role("row", name="Add")).to_contain_text("1")
    expect(tab.get_by_role("row", name="Skip as bad")).to_contain_text("0")
    assert not Contact.objects.exists()
    journey.click("button", "Change columns")
    expect(tab.get_by_role("button", name="Check again")).to_have_count(0)
