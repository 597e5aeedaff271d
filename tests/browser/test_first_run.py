"""The first run of a new organization: from log-in to one person's mail, by mouse and keyboard."""

import time

import pytest
from playwright.sync_api import expect

from messaging.models import Delivery
from rme.tenants.models import Membership, User
from rme.transport.addresses import AddressPolicy
from rme.transport.client import Transport
from tests import factories
from tests.browser import tabs
from tests.fakes.smtp import SmtpServer
from tests.rest import work

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]


@pytest.fixture
def tab(chromium, live_server, transactional_db, settings):
    """Return the tab of the owner of an organization that has a verified domain, and no more."""
    settings.OUTBOUND_OPEN_HOSTS = ["127.0.0.1"]
    org = factories.organization("fresh", simulator=False)
    user = User.objects.create_user("owner", "owner@fresh.example", "secret", is_staff=True)
    Membership.objects.create(organization=org, user=user, role=Membership.Role.OWNER)
    with tabs.opened(chromium, viewport=tabs.DESKTOP, locale="en-GB") as tab:
        tab.goto(f"{live_server.url}/admin/login/")
        yield tab


def test_new_organization_sends_its_first_messages(tab, journey, live_server, record_property):
    """All that is typed are names and addresses: no JSON, no id, nothing copied."""
    with SmtpServer() as server:
        journey.log_in("owner", "secret")
        expect(tab).to_have_url(f"{live_server.url}/admin/")
        started = time.monotonic()
        journey.click("link", "Providers and routing")
        journey.click("link", "SMTP")
        journey.fill("host", f"127.0.0.1:{server.port}")
        journey.choose("security", "NONE")
        journey.click("button", "Save and check the connection")
        expect(tab.get_by_text("Checked on")).to_contain_text("works.", timeout=30_000)
        journey.click("button", "Activate")
        expect(tab.locator(".c-headline")).to_contain_text("Active.")
        journey.click("link", "Templates")
        journey.click("button", "Start from Welcome")
        journey.click("button", "Send a test to me")
        expect(tab.get_by_text("is on its way to owner@fresh.example")).to_be_visible()
        journey.click("button", "Publish")
        expect(tab.get_by_text("Version 1 is active.", exact=True)).to_be_visible()
        journey.click("link", "Send a message")
        journey.fill("Recipient", "Reto Roth <reto@person.example>")
        journey.click("button", "Preview")
        journey.click("button", "Add Reto Roth and preview")
        expect(tab.get_by_role("region", name="Route")).to_contain_text("Sent by smtp")
        journey.click("button", "Send to Reto Roth now")
        expect(tab.get_by_text("The message is accepted.")).to_be_visible()
        transport = Transport(AddressPolicy(["127.0.0.1"]))
        end = time.monotonic() + 30
        while len(server.mails) < 2 and time.monotonic() < end:  # outcomes may come late
            work(transport)
        mails = {each.recipient: each.data for each in server.mails}
    assert set(mails) == {"<owner@fresh.example>", "<reto@person.example>"}
    assert b"Hello Reto" in mails["<reto@person.example>"]
    assert Delivery.objects.count() == 2
    record_property("seconds", round(time.monotonic() - started, 1))
    assert journey.count <= 15
