"""Journeys through providers and routing, by mouse and by keyboard, with their interactions."""

import pytest
from playwright.sync_api import expect

from messaging.models import ProviderAccount
from messaging.policy import organization_policy
from rme.tenants.models import Membership, User
from tests import factories
from tests.browser.test_console import tab
from tests.fakes.smtp import SmtpServer

__all__ = ["tab"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]


@pytest.fixture
def org(live_server, transactional_db, settings):
    settings.OUTBOUND_OPEN_HOSTS = ["127.0.0.1"]
    return factories.organization()


@pytest.fixture
def cookie(org, client):
    """Log an owner in, who has an email address, and return the session's cookie."""
    user = User.objects.create_user(
        "owner", email="owner@acme.example", password="secret", is_staff=True
    )
    Membership.objects.create(organization=org, user=user, role=Membership.Role.OWNER)
    client.force_login(user)
    return client.cookies["sessionid"].value


def test_add_an_smtp_account_check_test_and_activate_it(tab, journey):
    with SmtpServer() as server:
        journey.click("link", "Providers and routing")
        journey.click("link", "SMTP")
        journey.fill("host", "127.0.0.1")
        journey.fill("port", str(server.port))
        journey.choose("security", "NONE")
        journey.click("button", "Save and check the connection")
        expect(tab.get_by_text("Checked on")).to_contain_text("works.", timeout=30_000)
        journey.click("button", "Send a test")
        expect(tab.get_by_text("The test to owner@acme.example: Accepted")).to_be_visible()
        journey.click("button", "Activate")
        expect(tab.locator(".c-headline")).to_contain_text("Active.")
        assert [each.recipient for each in server.mails] == ["<owner@acme.example>"]
    row = ProviderAccount.objects.get()
    assert (row.name, row.state, row.check_problem) == ("smtp", "ACTIVE", "")
    assert journey.count <= 8


def test_see_why_a_number_would_go_by_vonage(tab, journey, org):
    for number, name in enumerate(("vonage", "twilio"), 1):
        ProviderAccount.objects.create(
            organization=org, name=name, kind="simulator", channel="SMS", priority=number
        )
    organization_policy.forget(org.pk)  # which the home page has read
    journey.click("link", "Providers and routing")
    journey.fill("What would happen to", "+41791234567")
    journey.click("button", "Show the route")
    expect(tab.locator(".c-headline")).to_have_text(
        "Sent by vonage: a TRANSACTIONAL message by SMS."
    )
    expect(tab.locator("tbody tr").nth(1)).to_contain_text("Tried next")
    assert journey.count <= 3


def test_move_an_account_to_the_front(tab, journey, org, live_server):
    for number in (1, 2, 3):
        ProviderAccount.objects.create(
            organization=org, name=f"sim-{number}", kind="simulator", channel="SMS", priority=number
        )
    journey.click("link", "Providers and routing")
    journey.click("button", "Move sim-3 up")
    journey.click("button", "Move sim-3 up")
    journey.fill("Why?", "cheaper")
    journey.click("button", "Save the order")
    expect(tab.get_by_text("Stored: sim-1, sim-2, sim-3.")).to_be_visible()
    names = ProviderAccount.objects.order_by("priority").values_list("name", flat=True)
    assert list(names) == ["sim-3", "sim-1", "sim-2"]
    assert journey.count <= 5
