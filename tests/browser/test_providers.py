"""Journeys through providers, domains and webhooks, by mouse and by keyboard, counted."""

import pytest
from playwright.sync_api import expect

from messaging.models import ProviderAccount, WebhookEndpoint
from messaging.policy import organization_policy
from rme.tenants.models import Membership, User
from tests import factories
from tests.browser.test_console import tab
from tests.fakes.dns import DnsServer
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
        journey.fill("host", f"127.0.0.1:{server.port}")
        journey.choose("security", "None (not encrypted)")
        journey.click("button", "Save and check the connection")
        expect(tab.get_by_text("Checked on")).to_contain_text("works.", timeout=30_000)
        journey.click("button", "Send test to me")
        expect(
            tab.get_by_text("Test to owner@acme.example: The provider accepted it")
        ).to_be_visible()
        journey.click("button", "Activate")
        expect(tab.locator(".c-banner")).to_contain_text("Active.")
        assert [each.recipient for each in server.mails] == ["<owner@acme.example>"]
    row = ProviderAccount.objects.get()
    assert (row.name, row.state, row.check_problem) == ("smtp", "ACTIVE", "")
    assert journey.count <= 7


def test_see_why_a_number_would_go_by_vonage(tab, journey, org):
    for number, name in enumerate(("vonage", "twilio"), 1):
        ProviderAccount.objects.create(
            organization=org, name=name, kind="simulator", channel="SMS", priority=number
        )
    organization_policy.forget(org.pk)  # which the home page has read
    journey.click("link", "Providers and routing")
    journey.fill("Try a recipient", "+41791234567")
    journey.click("button", "Show the route")
    expect(tab.locator(".c-banner")).to_have_text("Sent by vonage as transactional SMS.")
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
    form = tab.get_by_role("form", name="Order of SMS")
    journey.fill(form.get_by_label("Reason"), "cheaper")
    journey.click("button", "Save order")
    expect(tab.get_by_text("Order saved: sim-1, sim-2, sim-3.")).to_be_visible()
    names = ProviderAccount.objects.order_by("priority").values_list("name", flat=True)
    assert list(names) == ["sim-3", "sim-1", "sim-2"]
    assert journey.count <= 5


def test_drag_an_account_to_the_front(tab, org, live_server):
    for number in (1, 2, 3):
        ProviderAccount.objects.create(
            organization=org, name=f"sim-{number}", kind="simulator", channel="SMS", priority=number
        )
    tab.goto(f"{live_server.url}/admin/console/{org.pk}/providers/")
    reason = tab.get_by_role("form", name="Order of SMS").get_by_label("Reason")
    expect(reason).to_be_hidden()  # nothing has changed
    rows = tab.locator("[data-lane] tbody tr")
    rows.nth(2).locator("[data-drag]").drag_to(rows.nth(0), target_position={"x": 5, "y": 2})
    expect(rows.nth(0)).to_contain_text("sim-3")
    reason.fill("cheaper")
    tab.get_by_role("button", name="Save order").click()
    expect(tab.get_by_text("Order saved: sim-1, sim-2, sim-3.")).to_be_visible()
    names = ProviderAccount.objects.order_by("priority").values_list("name", flat=True)
    assert list(names) == ["sim-3", "sim-1", "sim-2"]


def test_change_an_account_and_delete_it(tab, journey, org):
    ProviderAccount.objects.create(organization=org, name="mail", kind="smtp", channel="EMAIL",
        credentials='{"host": "mail.example", "username": "u", "password": "hunter2"}')  # fmt: skip
    journey.click("link", "Providers and routing")
    journey.click("link", "mail")
    journey.click("link", "Change settings")
    journey.fill("host", "other.example")
    journey.click("button", "Save")
    expect(tab.get_by_role("alert")).to_contain_text("Give this again")
    expect(tab.get_by_label("host")).to_have_value("other.example")
    journey.fill("password", "typed")
    journey.fill(tab.get_by_label("Name", exact=True), "post")
    journey.click("button", "Save")
    expect(tab.get_by_text("post is saved.")).to_be_visible()
    assert '"typed"' in ProviderAccount.objects.get().credentials
    journey.click("button", "Delete")
    journey.click("button", "Delete account")
    expect(tab.get_by_text("post is deleted.")).to_be_visible()
    assert journey.count <= 10


def test_pause_two_accounts_at_once(tab, journey, org):
    for name in ("vonage", "twilio"):
        ProviderAccount.objects.create(organization=org, name=name, kind="simulator", channel="SMS")
    journey.click("link", "Providers and routing")
    lane = tab.get_by_role("region", name="SMS")
    journey.click("button", "Pause several")
    journey.check("vonage: Active")
    journey.check("twilio: Active")
    journey.fill(lane.get_by_role("dialog").get_by_label("Reason"), "outage")
    journey.click("button", "Pause")
    expect(tab.get_by_text("Paused: vonage, twilio.")).to_be_visible()
    assert set(ProviderAccount.objects.values_list("state", flat=True)) == {"PAUSED"}
    assert journey.count <= 6


def test_add_a_sender_domain_and_change_it(tab, journey, org, settings):
    with DnsServer({}) as server:
        settings.DNS_RESOLVER = server.address
        journey.click("link", "Sender domains")
        journey.click("link", "Add a sender domain")
        journey.fill(tab.locator("[name=domain]"), "news.example")
        journey.fill("Sender name", "News")
        journey.click("button", "Add domain")
        expect(tab.locator(".c-pill.c-bad").first).to_have_text("Missing", timeout=30_000)
        journey.fill("DKIM selector", "s1 .")
        journey.click("button", "Save and check")
        expect(tab.get_by_role("alert")).to_have_text("Like s1.")
        expect(tab.get_by_label("DKIM selector")).to_have_value("s1 .")
        journey.fill("DKIM selector", "s1")
        journey.click("button", "Save and check")
        expect(tab.locator("#name-DKIM")).to_have_text("s1._domainkey.news.example")
    assert journey.count <= 9


def test_add_an_endpoint_test_it_and_replace_its_secret(tab, journey, org):
    journey.click("link", "Webhooks")
    journey.click("link", "Add endpoint")
    journey.fill("URL", "http://hooks.example.com/rme")
    journey.check("message.* (all events of messages)")
    journey.click("button", "Add endpoint")
    expect(tab.get_by_role("alert")).to_have_text("The address is not https.")
    expect(tab.get_by_label("message.*")).to_be_checked()
    journey.fill("URL", "https://hooks.example.com/rme")
    journey.click("button", "Add endpoint")
    first = tab.locator("#secret-1").text_content()
    journey.click("button", "Send a test event")
    expect(tab.get_by_text("The test event is on its way.")).to_be_visible()
    expect(tab.locator("#secret-1")).to_have_count(0)
    journey.click("link", "Settings")
    journey.click("button", "Create a new secret")
    journey.click("button", "Create a new secret")
    second = tab.locator("#secret-1").text_content()
    assert (first[:6], first == second) == ("whsec_", False)
    assert WebhookEndpoint.objects.get().secret == second
    assert journey.count <= 11
