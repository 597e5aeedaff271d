"""An endpoint's page: its secret once, its attempts, and telling it again."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db.models.functions import Now

from messaging.models import WebhookDelivery, WebhookEndpoint
from messaging.reports import configuration
from messaging.reports.configuration import Finding
from messaging.webhooks import endpoints
from rme.tenants.models import Membership
from tests import audited, factories
from tests.messaging.webhooks.webhook_scene import Receiver, dispatch_all, endpoint, verified
from tests.rest import Api, message
from tests.tenants.admin.scene import button, page, person

pytestmark = pytest.mark.django_db
URL = "https://hooks.example.com/rme"
SECRET = r"whsec_[A-Za-z0-9+/]{43}="


def add(browser, org, *, follow=True, **fields):
    form = {"organization": org.pk, "url": URL, "types": ["message.sent"], **fields}
    return browser.post(page(WebhookEndpoint, "add"), form, follow=follow)


def errors(response):
    return dict(response.context["adminform"].form.errors)


def logged():
    return [(action, text) for _, action, text in audited.summaries()]


def test_the_secret_is_shown_once(root, org):
    made = add(root, org, follow=False, types=["message.sent", "message.bounced"])
    row = WebhookEndpoint.objects.get()
    assert (made.status_code, made["Location"]) == (302, button(WebhookEndpoint, row, "secret"))
    assert row.secret not in made.cookies["rme_new_secret"].value
    shown = root.get(made["Location"])
    (secret,) = re.findall(SECRET, shown.content.decode().replace("&#x2B;", "+"))
    assert (row.url, row.types, row.secret, row.enabled) == (
        URL,
        ["message.sent", "message.bounced"],
        secret,
        True,
    )
    assert "no-store" in shown["Cache-Control"]
    again = root.get(made["Location"])
    assert "was shown once" in again.content.decode()
    for name in ("change", "history", "delete", "secret"):
        assert "whsec_" not in root.get(page(WebhookEndpoint, name, row.pk)).content.decode()
    assert "whsec_" not in root.get(page(WebhookEndpoint, "changelist")).content.decode()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://hooks.example.com/", "The address is not https."),
        ("https://10.0.0.1/", "The address is not public."),
        ("https://[::ffff:127.0.0.1]/", "The address is not public."),
        ("ftp://hooks.example.com/", "Must be an address like https://hooks.example.com/rme."),
        (
            "https://u:p@hooks.example.com/",
            "Must be an address like https://hooks.example.com/rme.",
        ),
        ("https://é.example/", "Must be an address like https://hooks.example.com/rme."),
        ("https://hooks.example.com/a b", "Must be an address like https://hooks.example.com/rme."),
        ("https://hooks.example.com/é", "Must be an address like https://hooks.example.com/rme."),
        ("nonsense", "Must be an address like https://hooks.example.com/rme."),
    ],
)
def test_address_that_cannot_be_called_is_rejected(root, org, url, why):
    assert errors(add(root, org, url=url)) == {"url": [why]}


def test_host_opened_by_the_deployment_is_accepted(root, org, settings):
    settings.OUTBOUND_OPEN_HOSTS = ["10.0.0.1:8080"]
    assert b"whsec_" in add(root, org, url="http://10.0.0.1:8080/").content


@pytest.mark.parametrize("types", [[], ["message.nonsense"], ["sent"]])
def test_unknown_or_missing_types_are_rejected(root, org, types):
    assert set(errors(add(root, org, types=types))) == {"types"}


def test_number_of_endpoints_per_organization_is_limited(root, org):
    for _ in range(endpoints.PER_ORGANIZATION):
        endpoint(org, URL)
    assert errors(add(root, org)) == {"__all__": ["An organization has at most 20 endpoints."]}
    assert b"whsec_" in add(root, factories.organization("other")).content


def test_change_is_audited_and_keeps_values_written_by_workers(root, org):
    row = endpoint(org, URL, "message.sent", failures=3)
    form = {"url": URL, "description": "CRM", "types": ["message.sent", "message.failed"]}
    assert root.post(page(WebhookEndpoint, "change", row.pk), form).status_code == 302
    stored = WebhookEndpoint.objects.get()
    assert (stored.description, stored.types, stored.failures, stored.secret) == (
        "CRM",
        ["message.sent", "message.failed"],
        3,
        row.secret,
    )
    assert audited.lines() == [
        "description: – → CRM",
        "types: ['message.sent'] → ['message.sent', 'message.failed']",
    ]


def test_changed_address_resets_the_failures(root, org):
    row = endpoint(org, URL, failures=9, failing_since=Now(), free_at=Now() + timedelta(hours=1))
    form = {"url": f"{URL}2", "types": ["message.*"]}
    root.post(page(WebhookEndpoint, "change", row.pk), form)
    row.refresh_from_db()
    assert (row.url, row.failures, row.failing_since) == (f"{URL}2", 0, None)
    assert row.free_at < datetime.now(UTC) + timedelta(minutes=1)


def test_a_new_secret_and_the_former_both_sign(root, org, settings):
    settings.OUTBOUND_OPEN_HOSTS = ["127.0.0.1"]
    with Receiver() as receiver:
        row = endpoint(org, receiver.url)
        url = button(WebhookEndpoint, row, "rotate")
        assert root.get(url).status_code == 200
        assert WebhookEndpoint.objects.get().secret == row.secret  # asking does nothing
        shown = root.post(url, follow=True).content.decode().replace("&#x2B;", "+")
        (secret,) = re.findall(SECRET, shown)
        assert logged() == [("KEY_ROTATED", "new secret")]
        asked = root.post(button(WebhookEndpoint, row, "test-event"))
        assert b"is on its way" in asked.content
        dispatch_all()
        assert len(verified(receiver.seen[0], secret, row.secret)) == 2


def test_last_attempts_are_shown_with_escaped_answers(root, org, settings):
    settings.OUTBOUND_OPEN_HOSTS = ["127.0.0.1"]
    with Receiver(500, body=b"<script>x</script>") as receiver:
        row = endpoint(org, receiver.url)
        root.post(button(WebhookEndpoint, row, "test-event"))
        dispatch_all()
    shown = root.get(page(WebhookEndpoint, "change", row.pk)).content.decode()
    notice = WebhookDelivery.objects.get()
    assert f"<td>webhook.test</td><td>{notice.event_id}</td><td>PENDING</td><td>1</td>" in shown
    assert "<td>500</td>" in shown
    assert "&lt;script&gt;x&lt;/script&gt;" in shown
    assert "<script>x" not in shown
    assert "<p>Waiting: 1</p>" in shown
    assert "Failing since" in shown


def test_an_endpoint_is_switched_off_and_on(root, org):
    row = endpoint(org, URL)
    url = button(WebhookEndpoint, row, "switch")
    assert b"Disable hooks.example.com?" in root.get(url).content
    assert WebhookEndpoint.objects.get().enabled
    assert b"is disabled." in root.post(url, {"to": "off"}).content
    assert b"is disabled." in root.post(url, {"to": "off"}).content
    off = WebhookEndpoint.objects.get()
    assert (off.enabled, off.disabled_reason) == (False, "By hand.")
    refused = root.post(button(WebhookEndpoint, row, "test-event")).content
    assert b"The endpoint is disabled." in refused
    assert b"is enabled." in root.post(url, {"to": "on"}).content
    assert WebhookEndpoint.objects.get().enabled
    assert (WebhookDelivery.objects.count(), logged()) == (
        0,
        [("CHANGED", "disabled"), ("CHANGED", "enabled again")],
    )


def test_failed_deliveries_are_replayed(root, org):
    row = endpoint(org, URL)
    Api(org).send(message(factories.contact(org)))
    WebhookDelivery.objects.update(status="FAILED", due_at=None)
    url = button(WebhookEndpoint, row, "replay")
    assert root.get(url).status_code == 200
    assert WebhookDelivery.objects.get().status == "FAILED"
    assert b"1 events are sent again." in root.post(url, {"what": "FAILED"}).content
    assert WebhookDelivery.objects.get().status == "PENDING"
    assert logged() == [("REPLAYED", "failed deliveries: 1 events")]


def test_a_period_is_replayed(root, org):
    Api(org).send(message(factories.contact(org)))
    row = endpoint(org, URL)
    now = datetime.now(UTC)
    times = {"since": (now - timedelta(hours=1)).isoformat(), "until": now + timedelta(hours=1)}
    asked = {"what": "TIME", **times}
    url = button(WebhookEndpoint, row, "replay")
    assert b"1 events are sent again." in root.post(url, asked).content
    assert WebhookDelivery.objects.get().type == "message.accepted"


@pytest.mark.parametrize(
    ("since", "until", "fields"),
    [
        ("", "", {"since", "until"}),
        ("2026-05-01T08:00Z", "", {"until"}),
        ("2026-05-01T08:00Z", "2026-05-01T08:00Z", {"until"}),
        ("2026-05-02T08:00Z", "2026-05-01T08:00Z", {"until"}),
        ("2026-05-01T08:00Z", "2026-05-04T08:01Z", {"until"}),
        ("yesterday", "2026-05-01T08:00Z", {"since"}),
        ("0001-01-01T00:00Z", "9999-12-31T23:59Z", {"until"}),
    ],
)
def test_invalid_or_too_long_period_is_rejected(root, org, since, until, fields):
    row = endpoint(org, URL)
    asked = {"what": "TIME", "since": since, "until": until}
    response = root.post(button(WebhookEndpoint, row, "replay"), asked)
    assert set(response.context["form"].errors) == fields
    assert audited.entries() == []


def test_deleting_an_endpoint_deletes_its_waiting_deliveries(root, org):
    gone, left = endpoint(org, URL), endpoint(org, URL)
    Api(org).send(message(factories.contact(org)))
    assert WebhookDelivery.objects.count() == 2
    root.post(page(WebhookEndpoint, "delete", gone.pk), {"post": "yes"})
    assert list(WebhookDelivery.objects.values_list("endpoint_id", flat=True)) == [left.pk]
    chosen = {"action": "delete_selected", "_selected_action": [left.pk], "post": "yes"}
    root.post(page(WebhookEndpoint, "changelist"), chosen)
    assert (WebhookDelivery.objects.count(), WebhookEndpoint.objects.count()) == (0, 0)
    assert [line for line in audited.lines() if line.startswith("secret:")] == ["secret: … → –"] * 2
    assert "whsec_" not in "".join(audited.lines())


@pytest.mark.parametrize("role", ["OPERATOR", "VIEWER"])
@pytest.mark.parametrize("name", ["rotate", "replay", "switch", "test-event"])
def test_readers_press_no_buttons(org, role, name):
    row = endpoint(org, URL)
    reader = person("reader", org, Membership.Role[role])
    shown = reader.get(page(WebhookEndpoint, "change", row.pk))
    assert (shown.status_code, b"whsec_" in shown.content) == (200, False)
    for method in (reader.get, reader.post):
        assert method(button(WebhookEndpoint, row, name)).status_code == 403
    assert WebhookEndpoint.objects.get().secret == row.secret


@pytest.mark.promise("webhooks-8")
def test_health_and_the_first_page_warn(root, org):
    other = factories.organization("other")
    hour = timedelta(hours=1)
    endpoint(org, URL, description="quiet")
    endpoint(org, URL, description="fresh", failing_since=Now() - hour / 2)
    endpoint(org, URL, description="hand", enabled=False, disabled_reason="By hand.")
    gone = endpoint(org, URL, description="gone", enabled=False, disabled_reason="It said so.")
    bad = endpoint(other, URL, description="bad", failing_since=Now() - 7.5 * hour)
    found = [f for f in configuration.findings([org.pk, "other"]) if "WEBHOOK" in f.code]
    off, failing = "the webhook gone is disabled: It said so.", "the webhook bad has been failing"
    assert found == [
        Finding("acme", "warning", "WEBHOOK_DISABLED", off, gone.pk),
        Finding("other", "warning", "WEBHOOK_FAILING", f"{failing} for 7 hours.", bad.pk),
    ]
    shown = root.get("/admin/").content.decode()
    assert off in shown
    assert page(WebhookEndpoint, "change", bad.pk) in shown
    health = Api(org).call("GET", "/health").json()["configuration"]
    assert {"severity": "warning", "code": "WEBHOOK_DISABLED", "message": off} in health
