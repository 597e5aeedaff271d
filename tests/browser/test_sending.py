"""Sending to one person by hand, in a real Chromium: seen before it is sent."""

import pytest
from playwright.sync_api import expect

from messaging.models import Delivery, Message
from rme.tenants.models import Membership, User
from tests import factories
from tests.browser import tabs
from tests.browser.axe import violations

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]


@pytest.fixture
def org(live_server, transactional_db):
    row = factories.organization()
    html = "<p>Your order {{ number }}, {{ contact.first_name }}</p>"
    factories.template(row, name="order", text="{{ number }} for you", html=html)
    factories.template(row, name="order", language="de", text="{{ number }} für Sie")
    factories.template(row, "SMS", name="reminder")
    return row


@pytest.fixture
def ada(org):
    return factories.contact(org, language="de")


@pytest.fixture
def tab(chromium, live_server, org, client):
    """Return a tab of an operator who has logged in; an error in the browser's console fails."""
    user = User.objects.create_user("operator", password="secret", is_staff=True)
    Membership.objects.create(organization=org, user=user, role=Membership.Role.OPERATOR)
    client.force_login(user)
    cookie = client.cookies["sessionid"].value
    session = {"name": "sessionid", "value": cookie, "url": live_server.url}
    with tabs.opened(chromium, cookie=session, viewport=tabs.DESKTOP, locale="en-GB") as page:
        page.goto(f"{live_server.url}/admin/")
        yield page


def test_send_to_one_person_by_hand(tab, journey, ada):
    journey.click("link", "Send a message")
    journey.fill("Recipient", ada.email)
    journey.choose(tab.locator("#send_template"), "order (email)")
    journey.fill("number", "A-17")
    journey.click("button", "Preview")
    expect(tab.get_by_label("Text", exact=True)).to_have_text("A-17 für Sie")
    expect(tab.get_by_role("region", name="Route")).to_contain_text("Sent by simulator")
    assert not Message.objects.exists()
    for dark in (False, True):
        tab.evaluate("d => document.documentElement.classList.toggle('dark', d)", dark)
        assert violations(tab, colours_only=dark) == []
    journey.click("button", "Send to Ada Lovelace now")
    expect(tab.get_by_text("The message is accepted.")).to_be_visible()
    assert Delivery.objects.get().contact_id == str(ada.pk)
    assert journey.count <= 6


def test_enter_looks_for_the_recipient_that_was_typed(tab, journey, org, ada):
    for name in ("Grace", "Edith"):
        factories.contact(org, first_name=name, email="twin@x.example")
    journey.click("link", "Send a message")
    journey.fill("Recipient", "twin@x.example")
    journey.choose(tab.locator("#send_template"), "order (email)")
    journey.fill("number", "A-17")
    journey.click("button", "Preview")
    expect(tab.get_by_text("Which contact?")).to_be_visible()
    tab.get_by_label("Recipient").fill(ada.email)
    tab.get_by_label("Recipient").press("Enter")
    expect(tab.get_by_role("button", name="Send to Ada Lovelace now")).to_be_visible()
    journey.click("link", "Change recipient")
    tab.get_by_label("Recipient").fill("Reto Roth <reto@person.example>")
    tab.get_by_label("number").fill("A-17")
    for _ in range(2):
        tab.get_by_label("Recipient").press("Enter")
        expect(tab.get_by_text("reto@person.example isn't a contact yet.")).to_be_visible()
    assert org.contact_set.count() == 3


def test_search_leads_to_sending(tab, journey, org):
    grace = factories.contact(org, first_name="Grace", email="grace@simulator.rme.test")
    journey.search("grace@simulator.rme.test", "Send message to Grace Lovelace")
    expect(tab.get_by_text("Grace Lovelace, grace@simulator.rme.test")).to_be_visible()
    journey.choose(tab.locator("#send_template"), "order (email)")
    journey.fill("number", "A-17")
    journey.click("button", "Preview")
    frame = tab.frame_locator("iframe[name=send-rendering]")
    expect(frame.get_by_text("Your order A-17, Grace")).to_be_visible()
    journey.click("button", "Send to Grace Lovelace now")
    expect(tab.get_by_text("The message is accepted.")).to_be_visible()
    assert Delivery.objects.get().contact_id == str(grace.pk)
    assert journey.count <= 6
