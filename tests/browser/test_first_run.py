"""The first run of a new admin, by mouse and by keyboard: from log-in to a message to oneself."""

import time

import pytest
from playwright.sync_api import expect

from messaging.models import Delivery
from rme import demo
from tests.browser import tabs
from tests.rest import work

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]


@pytest.fixture
def made(live_server, transactional_db, tmp_path):
    return demo.ensure(tmp_path / "demo.json", base_url=live_server.url)


@pytest.fixture
def tab(chromium, live_server, made):
    with tabs.opened(chromium, viewport=tabs.DESKTOP, locale="en-GB") as tab:
        tab.goto(f"{live_server.url}/admin/login/")
        tab.get_by_label("Username").fill(made["admin_user"])
        tab.locator("input[name=password]").fill(made["admin_password"])
        tab.get_by_role("button", name="Log in", exact=True).click()
        expect(tab).to_have_url(f"{live_server.url}/admin/")
        yield tab


def test_a_new_admin_sends_a_message_to_itself(tab, journey, record_property):
    """All that is typed are names and texts: no JSON, no id, nothing copied from another page."""
    started = time.monotonic()
    journey.click("link", "Contacts")
    journey.click("link", "Add contact")
    journey.fill("Last name", "Newcomer")
    journey.fill("Email", "new@company.example")
    journey.click("button", "Save")
    journey.click("link", "Templates")
    journey.fill(tab.locator("#new_name"), "hello")
    journey.click("button", "Add template")
    journey.fill("Subject", "Hello {{ contact.last_name }}")
    journey.fill("Text", "It works: {{ note }}")
    journey.fill("note", "the first run")
    expect(tab.locator("#studio-text")).to_have_text("It works: the first run")
    journey.click("button", "Publish")
    expect(tab.get_by_text("Version 1 is active.", exact=True)).to_be_visible()
    journey.search("new@company.example")
    journey.choose(tab.locator("#test_template"), "EMAIL hello")
    journey.click("button", "Send")
    work()
    tab.reload()
    expect(tab.locator(".c-headline")).to_contain_text("Delivered on")
    row = Delivery.objects.get(contact_id__isnull=False)
    assert (row.status, row.address) == ("DELIVERED", "new@company.example")
    record_property("seconds", round(time.monotonic() - started, 1))
    print(f"first run: {journey.count} interactions, {time.monotonic() - started:.1f} s")
    assert journey.count <= 16
