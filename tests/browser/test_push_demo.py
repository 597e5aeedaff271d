"""The push demo in a real browser: its service worker shows what is pushed."""

import json

import pytest
from playwright.sync_api import expect

from messaging.models import Message
from push.models import Device
from rme.tenants.models import Membership, User
from tests import factories
from tests.browser import tabs
from tests.push.subscriptions import Browser

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]


@pytest.fixture
def ada(live_server, transactional_db):
    org = factories.organization()
    user = User.objects.create_user("editor", password="secret", is_staff=True)
    Membership.objects.create(organization=org, user=user, role=Membership.Role.OPERATOR)
    return factories.contact(org)


@pytest.fixture
def tab(whole_chromium, live_server, ada):
    faults = {"allows": tabs.LOAD_FAILED, "failed_requests": True}
    with tabs.opened(whole_chromium, permissions=["notifications"], **faults) as page:
        page.goto(f"{live_server.url}/push-demo")
        page.get_by_label("Username").fill("editor")
        page.locator("input[name=password]").fill("secret")
        page.get_by_role("button", name="Log in").click()
        expect(page).to_have_title("Push demo – Acme")
        yield page


REGISTER = """async (subscription) => {
  await navigator.serviceWorker.ready;
  await register(subscription);
}"""
SHOWN = """async () => {
  const worker = await navigator.serviceWorker.getRegistration("/push-demo");
  const shown = await worker.getNotifications();
  return shown.map((one) => [one.title, one.body, one.tag, one.data.link]);
}"""


def test_this_browser_becomes_a_device(tab, ada):
    browser = Browser()
    tab.evaluate(REGISTER, browser.subscription)
    row = Device.objects.get()
    expect(tab.get_by_role("status")).to_have_text(f"This browser is device {row.pk}.")
    assert (row.contact_id, row.token) == (str(ada.pk), browser.text)


def test_a_push_is_sent_from_the_page(tab, journey, ada):
    factories.device(ada.organization, ada)
    journey.click("button", "Send a push")
    expect(tab.get_by_role("status")).to_contain_text("ACCEPTED")
    assert str(Message.objects.get().pk) in tab.get_by_role("status").inner_text()


def test_a_refusal_is_shown(tab, journey):
    journey.click("button", "Send a push")
    expect(tab.get_by_role("status")).to_contain_text("UNREACHABLE")


@pytest.mark.promise("push-program-7")
@pytest.mark.parametrize(
    ("pushed", "shown"),
    [
        (
            json.dumps({"title": "Hello", "body": "Hi", "tag": "t1", "link": "https://x.test/"}),
            ["Hello", "Hi", "t1", "https://x.test/"],
        ),
        ("no JSON", ["rme", "no JSON", "", "/push-demo"]),
    ],
    ids=["ours", "another's"],
)
def test_pushed_notification_is_shown(tab, live_server, pushed, shown):
    tab.evaluate("navigator.serviceWorker.ready.then(() => true)")
    session = tab.context.new_cdp_session(tab)
    versions = {}
    session.on(
        "ServiceWorker.workerVersionUpdated",
        lambda event: versions.update((each["versionId"], each) for each in event["versions"]),
    )
    errors = []
    session.on("ServiceWorker.workerErrorReported", lambda event: errors.append(event))
    session.send("ServiceWorker.enable")
    for _ in range(200):
        active = [each for each in versions.values() if each["status"] == "activated"]
        if active:
            break
        tab.wait_for_timeout(100)
    (worker,) = active
    push = {
        "origin": live_server.url,
        "registrationId": worker["registrationId"],
        "data": pushed,
    }
    # The command does not tell whether the push has reached the worker: on a busy machine it may
    # be lost, as a push service's may.
    found, delivered = [], 0
    while not found and delivered < 4:
        session.send("ServiceWorker.deliverPushMessage", push)
        delivered += 1
        found = _shown(tab)
    assert found in [[shown] * count for count in range(1, delivered + 1)], errors


def _shown(tab):
    """Return the notifications that are shown, or none after ten seconds."""
    for _ in range(100):
        if found := tab.evaluate(SHOWN):
            return found
        tab.wait_for_timeout(100)
    return []
