"""Webhook endpoints: add, change, test, disable, delete, replay, and a new secret shown once."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db.models.functions import Now

from messaging.domain.attention import Finding
from messaging.models import WebhookDelivery, WebhookEndpoint
from messaging.reports import configuration
from messaging.webhooks import endpoints
from rme.tenants.models import Membership
from tests import audited, factories
from tests.messaging.console.conftest import url
from tests.messaging.webhooks.webhook_scene import Receiver, dispatch_all, endpoint, verified
from tests.rest import Api, message
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db
URL = "https://hooks.example.com/rme"
SECRET = r"whsec_[A-Za-z0-9+/]{43}="


def add(client, *, follow=True, org="acme", **fields):
    form = {"url": URL, "types": ["message.sent"], **fields}
    return client.post(url("new_webhook", org=org), form, follow=follow)


def do(client, row, button, **fields):
    """Press a button of an endpoint's pages, and return the page that follows."""
    form = {"do": button, **fields}
    return client.post(url("webhook_settings", row.pk), form, follow=True)


def save(client, row, **fields):
    form = {"url": URL, "types": ["message.*"], **fields}
    return do(client, row, "save", **form)


def errors(response):
    return dict(response.context["form"].errors)


def logged():
    return [(action, text) for _, action, text in audited.summaries()]


def secrets_in(response):
    return re.findall(SECRET, response.content.decode().replace("&#x2B;", "+"))


def test_the_secret_is_shown_once(root, org):
    made = add(root, follow=False, types=["message.sent", "message.bounced"], description="CRM")
    row = WebhookEndpoint.objects.get()
    assert (made.status_code, made["Location"]) == (302, url("webhook_deliveries", row.pk))
    assert row.secret not in made.cookies["rme_new_secret"].value
    shown = root.get(made["Location"])
    (secret,) = secrets_in(shown)
    assert (row.url, row.types, row.secret, row.enabled) == (
        URL,
        ["message.sent", "message.bounced"],
        secret,
        True,
    )
    assert "no-store" in shown["Cache-Control"]
    for name in ("webhook_deliveries", "webhook_settings", "webhook_replay"):
        assert secrets_in(root.get(url(name, row.pk))) == []
    assert audited.lines() == [
        f"url: – → {URL}",
        "description: – → CRM",
        "types: – → message.sent, message.bounced",
    ]


def test_secret_is_not_shown_to_another_person(root, org):
    made = add(root, follow=False)
    owner = person("owner", org, Membership.Role.OWNER)
    owner.cookies["rme_new_secret"] = made.cookies["rme_new_secret"].value
    assert secrets_in(owner.get(made["Location"])) == []


@pytest.mark.parametrize(
    ("address", "why"),
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
def test_address_that_cannot_be_called_is_rejected(root, org, address, why):
    refused = add(root, url=address, description="CRM")
    assert errors(refused) == {"url": [why]}
    assert 'value="CRM"' in refused.content.decode()
    row = endpoint(org, URL)
    assert errors(save(root, row, url=address)) == {"url": [why]}
    assert WebhookEndpoint.objects.get().url == URL


def test_host_opened_by_the_deployment_is_accepted(root, org, settings):
    settings.OUTBOUND_OPEN_HOSTS = ["10.0.0.1:8080"]
    assert b"whsec_" in add(root, url="http://10.0.0.1:8080/").content


@pytest.mark.parametrize("types", [[], ["message.nonsense"], ["sent"]])
def test_unknown_or_missing_types_are_rejected(root, org, types):
    assert set(errors(add(root, types=types))) == {"types"}


def test_number_of_endpoints_per_organization_is_limited(root, org):
    for _ in range(endpoints.PER_ORGANIZATION):
        endpoint(org, URL)
    assert errors(add(root)) == {
        "__all__": ["Your organization has all 20 endpoints: delete one first."]
    }
    factories.organization("other")
    assert b"whsec_" in add(root, org="other").content


def test_change_is_audited_and_keeps_values_written_by_workers(root, org):
    row = endpoint(org, URL, "message.sent", failures=3)
    saved = save(root, row, description="CRM", types=["message.sent", "message.failed"])
    assert saved.redirect_chain == [(url("webhook_deliveries", row.pk), 302)]
    stored = WebhookEndpoint.objects.get()
    assert (stored.description, stored.types, stored.failures, stored.secret) == (
        "CRM",
        ["message.sent", "message.failed"],
        3,
        row.secret,
    )
    assert audited.lines() == [
        "description: – → CRM",
        "types: message.sent → message.sent, message.failed",
    ]


def test_changed_address_resets_the_failures(root, org):
    row = endpoint(org, URL, failures=9, failing_since=Now(), free_at=Now() + timedelta(hours=1))
    save(root, row, url=f"{URL}2")
    row.refresh_from_db()
    assert (row.url, row.failures, row.failing_since) == (f"{URL}2", 0, None)
    assert row.free_at < datetime.now(UTC) + timedelta(minutes=1)


def test_a_new_secret_and_the_former_both_sign(root, org, settings):
    settings.OUTBOUND_OPEN_HOSTS = ["127.0.0.1"]
    with Receiver() as receiver:
        row = endpoint(org, receiver.url)
        assert "Replace the signing secret?" in do(root, row, "rotate").content.decode()
        assert WebhookEndpoint.objects.get().secret == row.secret  # asking does nothing
        (secret,) = secrets_in(do(root, row, "rotate", sure="yes"))
        assert logged() == [("KEY_ROTATED", "new secret")]
        assert b"is on its way" in do(root, row, "test").content
        dispatch_all()
        assert len(verified(receiver.seen[0], secret, row.secret)) == 2


def test_endpoint_shows_its_state_and_escaped_answers(root, org, settings):
    settings.OUTBOUND_OPEN_HOSTS = ["127.0.0.1"]
    with Receiver(500, body=b"<script>x</script>") as receiver:
        row = endpoint(org, receiver.url)
        do(root, row, "test")
        dispatch_all()
    shown = root.get(url("webhook_deliveries", row.pk))
    assert (shown.context["pending"], "Failing since" in shown.content.decode()) == (1, True)
    delivery = WebhookDelivery.objects.get()
    text = root.get(url("webhook_delivery", row.pk, delivery.pk)).content.decode()
    assert "Answered 500" in text
    assert "&lt;script&gt;x&lt;/script&gt;" in text
    assert "<script>x" not in text


def test_an_endpoint_is_switched_off_and_on(root, org):
    row = endpoint(org, URL)
    assert b"is disabled." in do(root, row, "disable").content
    assert b"is disabled." in do(root, row, "disable").content
    off = WebhookEndpoint.objects.get()
    assert (off.enabled, off.disabled_reason) == (False, "By hand.")
    assert b"Enable it first." in do(root, row, "test").content
    assert b"is enabled." in do(root, row, "enable").content
    assert WebhookEndpoint.objects.get().enabled
    assert (WebhookDelivery.objects.count(), audited.lines()) == (
        0,
        ["enabled: True → False", "enabled: False → True"],
    )
    assert b"Choose one of the buttons." in do(root, row, "explode").content


def test_a_period_is_replayed(root, org):
    Api(org).send(message(factories.contact(org)))
    row = endpoint(org, URL)
    hour = timedelta(hours=1)
    since = f"{datetime.now(UTC) - hour:%Y-%m-%dT%H:%M}"
    shown = root.post(url("webhook_replay", row.pk), {"since": since, "until": ""}, follow=True)
    assert b"1 event is queued for hooks.example.com." in shown.content
    assert WebhookDelivery.objects.get().type == "message.accepted"
    ((action, text),) = logged()
    assert (action, text.endswith(": 1 events")) == ("REPLAYED", True)


@pytest.mark.parametrize(
    ("since", "until", "fields"),
    [
        ("", "", {"since"}),
        ("2026-05-01T08:00", "", {"until"}),
        ("2026-05-01T08:00", "2026-05-01T08:00", {"until"}),
        ("2026-05-02T08:00", "2026-05-01T08:00", {"until"}),
        ("2026-05-01T08:00", "2026-05-04T08:01", {"until"}),
        ("yesterday", "2026-05-01T08:00", {"since"}),
        ("0001-01-01T00:00", "9999-12-31T23:59", {"until"}),
    ],
)
def test_invalid_or_too_long_period_is_rejected(root, org, since, until, fields):
    row = endpoint(org, URL)
    response = root.post(url("webhook_replay", row.pk), {"since": since, "until": until})
    assert set(errors(response)) == fields
    assert audited.entries() == []


def test_deleting_an_endpoint_deletes_its_waiting_deliveries(root, org):
    gone, left = endpoint(org, URL), endpoint(org, URL)
    Api(org).send(message(factories.contact(org)))
    assert WebhookDelivery.objects.count() == 2
    assert b"Delete this endpoint?" in do(root, gone, "delete").content
    assert WebhookEndpoint.objects.count() == 2
    assert do(root, gone, "delete", sure="yes").redirect_chain[0] == (url("webhooks"), 302)
    assert list(WebhookDelivery.objects.values_list("endpoint_id", flat=True)) == [left.pk]
    assert [line for line in audited.lines() if line.startswith("secret:")] == ["secret: … → –"]
    assert f"url: {URL} → –" in audited.lines()
    assert "whsec_" not in "".join(audited.lines())


@pytest.mark.parametrize("role", ["OPERATOR", "VIEWER"])
@pytest.mark.parametrize("button", ["rotate", "delete", "disable", "test", "save"])
def test_readers_press_no_buttons(org, role, button):
    row = endpoint(org, URL)
    reader = person("reader", org, Membership.Role[role])
    shown = reader.get(url("webhook_deliveries", row.pk))
    assert (shown.status_code, b"whsec_" in shown.content) == (200, False)
    assert url("webhook_settings", row.pk) not in shown.content.decode()
    assert do(reader, row, button, sure="yes", url=f"{URL}2", types="message.*").status_code == 403
    stored = WebhookEndpoint.objects.get()
    assert (stored.secret, stored.url, stored.enabled) == (row.secret, URL, True)


@pytest.mark.promise("webhooks-8")
def test_health_and_the_first_page_warn(root, org):
    other = factories.organization("other")
    hour = timedelta(hours=1)
    endpoint(org, URL, description="quiet")
    endpoint(org, URL, description="fresh", failing_since=Now() - hour / 7)
    endpoint(org, URL, description="hand", enabled=False, disabled_reason="By hand.")
    gone = endpoint(org, URL, description="gone", enabled=False, disabled_reason="It said so.")
    bad = endpoint(other, URL, description="bad", failing_since=Now() - 7.5 * hour)
    found = [f for f in configuration.findings([org.pk, "other"]) if "WEBHOOK" in f.code]
    off, failing = "The webhook gone is disabled: It said so.", "The webhook bad has been failing"
    assert found == [
        Finding("acme", "warning", "WEBHOOK_DISABLED", off, gone.pk),
        Finding("other", "warning", "WEBHOOK_FAILING", f"{failing} for 7 h.", bad.pk),
    ]
    for owner, row in (("acme", gone), ("other", bad)):
        shown = root.get("/admin/", {"organization": owner}).content.decode()
        assert url("webhook_deliveries", row.pk, org=owner) in shown
    health = Api(org).call("GET", "/health").json()["configuration"]
    assert {"severity": "warning", "code": "WEBHOOK_DISABLED", "message": off} in health
