"""The first run of a new deployment: from log-in to one person's mail, by mouse and keyboard."""

import time

import pytest
from playwright.sync_api import expect

from messaging.models import Delivery
from rme.tenants.models import User
from rme.transport.addresses import AddressPolicy
from rme.transport.client import Transport
from tests.browser import tabs
from tests.fakes.smtp import SmtpServer
from tests.rest import work

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]


@pytest.fixture
def tab(chromium, live_server, transactional_db, settings):
    """Return the tab of the superuser of a deployment that has no organization yet."""
    settings.OUTBOUND_OPEN_HOSTS = ["127.0.0.1"]
    User.objects.create_superuser("root", "root@fresh.example", "secret")
    with tabs.opened(chromium, viewport=tabs.DESKTOP, locale="en-GB") as tab:
        tab.goto(f"{live_server.url}/admin/login/")
        yield tab


def test_new_organization_sends_its_first_messages(tab, journey, live_server, record_property):
    """All that is typed are names and addresses: no JSON, no id, nothing copied."""
    with SmtpServer() as server:
        journey.log_in("root", "secret")
        expect(tab).to_have_url(f"{live_server.url}/admin/")
        started = time.monotonic()
        journey.fill("Organization name", "Fresh")
        journey.fill("Sender domain", "fresh.example")
        journey.click("button", "Create organization")
        expect(tab.get_by_text("Fresh is added.")).to_be_visible()
        journey.click("link", "SMTP")
        journey.fill("host", f"127.0.0.1:{server.port}")
        journey.choose("security", "None (not encrypted)")
        journey.click("button", "Check and activate")
        expect(tab.locator(".c-banner")).to_contain_text("Active.", timeout=30_000)
        journey.click("link", "Templates")
        journey.click("button", "Start from Welcome")
        journey.click("button", "Send test to me")
        expect(tab.get_by_text("is on its way to root@fresh.example")).to_be_visible()
        journey.click("button", "Publish")
        expect(tab.get_by_text("Version 1 is active.", exact=True)).to_be_visible()
        journey.click("link", "Send to one person")
        journey.fill("Recipient", "Reto Roth <reto@person.example>")
        journey.click("button", "Preview")
        expect(tab.get_by_role("region", name="Route")).to_contain_text("Sent by smtp")
        journey.click("button", "Send to Reto Roth now")
        expect(tab.get_by_text("The message is accepted.")).to_be_visible()
        transport = Transport(AddressPolicy(["127.0.0.1"]))
        end = time.monotonic() + 30
        while len(server.mails) < 2 and time.monotonic() < end:  # outcomes may come late
            work(transport)
        mails = {each.recipient: each.data for each in server.mails}
    assert set(mails) == {"<root@fresh.example>", "<reto@person.example>"}
    assert b"Hello Reto" in mails["<reto@person.example>"]
    assert Delivery.objects.count() == 2
    record_property("seconds", round(time.monotonic() - started, 1))
    assert journey.count <= 15
