"""Web Push whole: a real Firefox subscribes, and shows what our worker encrypted and sent."""

import json

import pytest

from messaging.feedback import tasks
from messaging.models import Attempt, Delivery, Message, ProviderAccount
from push.models import Device
from rme.tenants.models import Membership, User
from rme.transport import AddressPolicy, Transport
from tests import factories
from tests.browser.firefox import FIREFOX, Firefox, firefox, until
from tests.fakes.autopush import autopush
from tests.rest import Api, events, message, work

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(FIREFOX is None, reason="no firefox-esr on the PATH: see `make browser`"),
]

SHOWN = """
  const worker = await navigator.serviceWorker.getRegistration("/push-demo");
  const shown = await worker.getNotifications();
  return shown.map((one) => [one.title, one.body, one.tag, one.data]);
"""
ALERTS = """
  const alerts = [...Services.wm.getEnumerator("alert:alert")];
  const element = (alert, id) => alert.document.getElementById(id);
  return alerts.map((one) => [
    element(one, "alertTitleLabel").value, element(one, "alertTextLabel").textContent,
  ]);
"""
"""What stands on the screen, in the browser's own windows."""
CLICK = """
  const [alert] = [...Services.wm.getEnumerator("alert:alert")];
  alert.document.getElementById("alertBox").click();
"""


@pytest.fixture
def service():
    with autopush() as made:
        yield made


@pytest.fixture
def ada(live_server, transactional_db, settings, service, redis):
    settings.OUTBOUND_OPEN_HOSTS = ["localhost"]
    org = factories.organization()
    user = User.objects.create_user("editor", password="secret", is_staff=True)
    Membership.objects.create(organization=org, user=user, role=Membership.Role.OPERATOR)
    ProviderAccount.objects.create(
        organization=org, name="webpush", kind="webpush", channel="PUSH",
        credentials=json.dumps(service.settings()),
    )  # fmt: skip
    yield factories.contact(org)
    redis.flushdb()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with firefox(tmp_path_factory.mktemp("firefox")) as started:
        yield started


@pytest.fixture
def tab(live_server, ada, service, browser: Firefox):
    """Return the demo page in a fresh browser whose push service is a local one."""
    browser.forget_everything()
    browser.prefer("dom.push.serverURL", service.browsers.url)
    browser.open(f"{live_server.url}/push-demo")
    browser.type("input[name=username]", "editor")
    browser.type("input[name=password]", "secret")
    browser.click("[type=submit]")
    assert until(lambda: browser.text("h1"), "Push demo") == "Push demo"
    yield browser
    browser.open("about:blank")


def subscribed(tab):
    """Make the browser a device by the page's button."""
    tab.click("#subscribe")
    until(lambda: Device.objects.count(), 1)
    row = Device.objects.get()
    text = f"This browser is device {row.pk}."
    assert until(lambda: tab.text("#result"), text) == text
    return row


def send():
    transport = Transport(AddressPolicy(["localhost"]))
    work(transport)
    transport.close()


def outcomes():
    return list(Attempt.objects.order_by("id").values_list("device_id", "outcome", "reason"))


@pytest.mark.promise("push-sending-24", "push-program-7")
def test_a_push_from_the_page_is_shown(tab, ada, service):
    row = subscribed(tab)
    (name,) = service.channels
    assert json.loads(row.token)["endpoint"] == f"{service.senders.url}wpush/v2/{name}"
    assert (row.contact_id, row.platform, row.active) == (str(ada.pk), "WEB", True)
    tab.click("#send")
    until(lambda: Message.objects.count(), 1)
    sent = Message.objects.get()
    text = f"Message {sent.pk}: ACCEPTED."
    assert until(lambda: tab.text("#result"), text) == text
    send()
    shown = [["Hello", "This is a push.", str(sent.pk), {"link": "/push-demo"}]]
    assert until(lambda: tab.run(SHOWN), shown) == shown
    on_screen = [["Hello", "This is a push."]]
    assert until(lambda: tab.run_inside(ALERTS), on_screen) == on_screen
    assert until(lambda: service.acknowledged, [100]) == [100]
    assert service.answered == [201]
    assert outcomes() == [(row.pk, "Accepted", None)]
    assert events(str(sent.pk)) == ["accepted", "sent"]


@pytest.mark.promise("push-sending-24", "push-program-8")
def test_a_push_by_rest_is_shown_and_its_click_opens_the_link(tab, ada, live_server):
    subscribed(tab)
    link = f"{live_server.url}/push-demo/worker.js?opened"
    content = {"title": "Gate changed", "body": "Now B12 \N{AIRPLANE} שלום"}
    push = {"link": link, "data": {"gate": "B12"}, "collapseKey": "gate"}
    body = message(ada, channel="PUSH", template=None, context=None, content=content, push=push)
    sent = Api(ada.organization).send(body)
    assert sent.status_code == 202, sent.json()
    send()
    shown = [[content["title"], content["body"], "gate", {"link": link, "gate": "B12"}]]
    assert until(lambda: tab.run(SHOWN), shown) == shown
    until(lambda: len(tab.run_inside(ALERTS)), 1)
    tab.run_inside(CLICK)
    assert until(lambda: link in tab.addresses(), True), tab.addresses()
    assert until(lambda: tab.run(SHOWN), []) == []


@pytest.mark.promise("push-answers-24")
def test_unsubscribed_browser_is_retired(tab, ada, service):
    row = subscribed(tab)
    tab.run("""
      const worker = await navigator.serviceWorker.ready;
      await (await worker.pushManager.getSubscription()).unsubscribe();
    """)
    assert until(lambda: len(service.channels), 0) == 0
    tab.click("#send")
    until(lambda: Message.objects.count(), 1)
    send()
    assert service.answered == [410]
    assert outcomes() == [(row.pk, "Gone", "the push service answered 410")]
    assert Delivery.objects.get().status == "FAILED"
    tasks.retire_devices()
    row.refresh_from_db()
    assert (row.active, row.inactive_reason) == (False, "the push service answered 410")


@pytest.mark.promise("devices-13")
def test_renewed_subscription_is_the_same_device(tab, ada, service):
    row = subscribed(tab)
    (before,) = service.channels
    service.forget_everything()
    ended = f"wpush/v2/{before}"
    assert until(lambda: Device.objects.get().token.find(ended) < 0, True, 20)
    renewed = Device.objects.get()
    (after,) = service.channels
    assert (renewed.pk, renewed.contact_id, renewed.active) == (row.pk, str(ada.pk), True)
    assert json.loads(renewed.token)["endpoint"] == f"{service.senders.url}wpush/v2/{after}"
    assert [entry["what"] for entry in renewed.history] == ["REGISTERED", "REPLACED"]
    tab.click("#send")
    until(lambda: Message.objects.count(), 1)
    send()
    on_screen = [["Hello", "This is a push."]]
    assert until(lambda: tab.run_inside(ALERTS), on_screen) == on_screen
