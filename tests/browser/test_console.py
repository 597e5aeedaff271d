"""Journeys in a real Chromium, by mouse and by keyboard, each with its number of interactions."""

import pytest
from playwright.sync_api import expect

from messaging.models import (
    ConsentEntry,
    Delivery,
    Message,
    ProviderAccount,
    Suppression,
    WebhookDelivery,
)
from messaging.webhooks import replays
from rme.tenants.models import Membership, User
from tests import factories
from tests.browser import tabs
from tests.messaging.console.actions.scene import LATER
from tests.messaging.statistics.scene import count
from tests.messaging.webhooks.webhook_scene import endpoint
from tests.rest import Api, message, work

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]


@pytest.fixture
def org(live_server, transactional_db):
    row = factories.organization()
    factories.welcome(row)
    return row


@pytest.fixture
def cookie(org, client):
    """Log an owner in and return the session's cookie."""
    user = User.objects.create_user("owner", password="secret", is_staff=True)
    Membership.objects.create(organization=org, user=user, role=Membership.Role.OWNER)
    client.force_login(user)
    return client.cookies["sessionid"].value


@pytest.fixture
def tab(chromium, live_server, cookie):
    """Return a tab of a person who has logged in; an error in the browser's console fails."""
    session = {"name": "sessionid", "value": cookie, "url": live_server.url}
    with tabs.opened(chromium, cookie=session, viewport=tabs.DESKTOP, locale="en-GB") as page:
        page.goto(f"{live_server.url}/admin/")
        yield page


def test_why_did_this_person_not_get_a_message(tab, journey, org):
    ada = factories.contact(org)
    Suppression.objects.create(
        organization=org, channel="EMAIL", address=ada.email, reason="COMPLAINT"
    )
    Api(org).send(message(ada))
    journey.search(ada.email)
    expect(tab.locator(".c-banner")).to_contain_text("Not sent. ada@simulator.rme.test complained")
    assert journey.count <= 2


def test_open_a_message_from_its_figure(tab, journey, org, live_server):
    Api(org).send(message(factories.contact(org)))
    work()
    count()
    tab.goto(f"{live_server.url}/admin/")
    journey.click("link", "Email, Delivered: 1")
    journey.click("link", "Open message to Ada Lovelace")
    expect(tab.locator(".c-banner")).to_contain_text("Delivered on")
    assert journey.count <= 2


def test_cancel_one_scheduled_send(tab, journey, org):
    Api(org).send(message(factories.contact(org), schedule=LATER))
    journey.search(str(Message.objects.get().pk), "Cancel this scheduled message")
    journey.click("button", "Cancel message")
    expect(tab.get_by_role("status")).to_contain_text("Done: 1 of 1.")
    assert Delivery.objects.get().status == "CANCELLED"
    assert journey.count <= 3


def test_opt_a_person_out_with_evidence(tab, journey, org):
    ada = factories.contact(org)
    journey.search("Lovelace", "Record opt-out for Ada Lovelace")
    journey.fill("Evidence", "by phone on 3 May")
    journey.click("button", "Opt out")
    expect(tab.get_by_text("Opted out of all messages.")).to_be_visible()
    entry = ConsentEntry.objects.get()
    assert (entry.contact_id, entry.evidence) == (str(ada.pk), {"note": "by phone on 3 May"})
    assert journey.count <= 4


def test_resend_failed_messages_of_one_provider_in_the_last_hour(tab, journey, org):
    account = {"organization": org, "kind": "simulator", "channel": "EMAIL"}
    down = ProviderAccount.objects.create(**account, name="mail-west", priority=1)
    api = Api(org)
    for each in factories.contacts(org, 4):
        api.send(message(each))
    rows = list(Delivery.objects.order_by("pk"))
    Delivery.objects.update(status="FAILED", reason="down", due_at=None, provider=down.name)
    Delivery.objects.filter(pk=rows[0].pk).update(provider="another")
    Delivery.objects.filter(pk=rows[1].pk).update(status="SENT", reason=None)
    journey.search("mail-west")
    journey.click("link", "Resend: Failures of the last hour")
    expect(tab.get_by_text("Resend 2 messages?")).to_be_visible()
    journey.fill(tab.get_by_role("textbox", name="Reason"), "the provider is up again")
    journey.click("button", "Resend")
    expect(tab.get_by_role("status")).to_contain_text("Done: 2 of 2.")
    again = {each.metadata["resentFrom"] for each in Message.objects.filter(metadata__isnull=False)}
    assert again == {str(row.message_id) for row in rows[2:]}
    assert journey.count <= 5


def test_resend_failed_messages_of_one_provider_by_reason(tab, journey, org):
    account = {"organization": org, "kind": "simulator", "channel": "EMAIL"}
    full = ProviderAccount.objects.create(**account, name="mail-west", priority=1)
    api = Api(org)
    for each in factories.contacts(org, 3):
        api.send(message(each))
    rows = list(Delivery.objects.order_by("pk"))
    Delivery.objects.update(status="FAILED", reason="down", due_at=None, provider=full.name)
    Delivery.objects.filter(pk=rows[0].pk).update(reason="mailbox full")
    journey.search("mail-west")
    journey.click("link", "Resend: down")
    expect(tab.get_by_text("Resend 2 messages?")).to_be_visible()
    journey.fill(tab.get_by_role("textbox", name="Reason"), "the provider is up again")
    journey.click("button", "Resend")
    expect(tab.get_by_role("status")).to_contain_text("Done: 2 of 2.")
    again = {each.metadata["resentFrom"] for each in Message.objects.filter(metadata__isnull=False)}
    assert again == {str(row.message_id) for row in rows[1:]}
    assert journey.count <= 5


def test_send_one_webhook_again(tab, journey, org):
    for name in ("Shop", "Archive"):
        replays.queue_test(endpoint(org, f"https://{name}.example/hooks", description=name))
    WebhookDelivery.objects.update(status="FAILED", due_at=None, tries=10)
    journey.click("link", "Webhooks")
    journey.click("link", f"Open delivery of {replays.TEST_EVENT}")
    journey.click("button", "Resend")
    expect(tab.get_by_text("Queued again with the same webhook-id.")).to_be_visible()
    assert list(WebhookDelivery.objects.order_by("pk").values_list("status", flat=True)) == [
        "FAILED",
        "PENDING",
    ]
    assert journey.count <= 3
