"""Webhook endpoints by REST: secrets once, a stranger's token, errors that name the field."""

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.models import WebhookDelivery, WebhookEndpoint
from messaging.reports import configuration
from tests import audited, factories
from tests.messaging.webhooks.webhook_scene import dispatch_all, endpoint, verified
from tests.rest import Api, error, instant, message

pytestmark = pytest.mark.django_db
URL = "https://hooks.example.com/rme"
PATH = "/webhook-endpoints"
GIVEN = {"url": URL, "description": "Production", "types": ["message.sent", "consent.changed"]}


def create(api, **fields):
    made = api.call("POST", PATH, {**GIVEN, **fields})
    assert made.status_code == 201
    return made.json()


@pytest.mark.promise("webhooks-12")
def test_endpoint_secret_is_shown_once_on_creation(api, org):
    made = api.call("POST", PATH, GIVEN)
    row = WebhookEndpoint.objects.get()
    shown = {
        **GIVEN,
        "id": str(row.pk),
        "enabled": True,
        "disabledReason": None,
        "failingSince": None,
        "lastSuccessAt": None,
        "formerSecretUntil": None,
        "createdAt": instant(row.created_at),
    }
    assert (made.status_code, made.json()) == (201, {**shown, "secret": row.secret})
    assert made["Cache-Control"] == "no-store"
    assert row.organization_id == org.pk
    assert api.call("GET", f"{PATH}/{row.pk}").json() == shown
    assert api.call("GET", PATH).json() == {"webhookEndpoints": [shown], "nextCursor": None}
    changed = api.call("PATCH", f"{PATH}/{row.pk}", {"description": ""})
    assert changed.json() == {**shown, "description": ""}


def test_pages_go_from_the_newest_to_the_oldest_by_one_query_each(api, org):
    rows = [endpoint(org, URL) for _ in range(3)]
    endpoint(factories.organization("other"), URL)
    api.call("GET", PATH)  # the token is known from now on
    found, query = [], "limit=2"
    while query:
        with CaptureQueriesContext(connection) as captured:
            answer = api.call("GET", f"{PATH}?{query}")
        assert len(captured) == 1
        page = answer.json()
        found.append([each["id"] for each in page["webhookEndpoints"]])
        following = answer.get("Link", "<>").partition(">")[0].removeprefix("<")
        query = urlsplit(following).query
        assert parse_qs(query).get("cursor", [None]) == [page["nextCursor"]]
    assert found == [[str(rows[2].pk), str(rows[1].pk)], [str(rows[0].pk)]]


def test_an_endpoint_is_changed_disabled_and_enabled(api, org):
    key = create(api)["id"]
    other = "https://other.example.com/rme"
    changed = api.call(
        "PATCH", f"{PATH}/{key}", {"url": other, "types": ["message.*", "message.*"]}
    ).json()
    assert (changed["url"], changed["types"]) == (other, ["message.*"])
    assert WebhookEndpoint.objects.get(pk=key).types == ["message.*"]
    off = api.call("PATCH", f"{PATH}/{key}", {"enabled": False}).json()
    assert (off["enabled"], off["disabledReason"]) == (False, "By an application.")
    assert not WebhookEndpoint.objects.get(pk=key).enabled
    assert [each for each in configuration.findings([org.pk]) if "WEBHOOK" in each.code] == []
    WebhookEndpoint.objects.update(failures=3, failing_since=datetime.now(UTC))
    on = api.call("PATCH", f"{PATH}/{key}", {"enabled": True}).json()
    assert (on["enabled"], on["disabledReason"], on["failingSince"]) == (True, None, None)
    assert WebhookEndpoint.objects.get().failures == 0


def test_a_new_url_resets_the_failures(api):
    key = create(api)["id"]
    WebhookEndpoint.objects.update(failures=3, failing_since=datetime.now(UTC))
    same = api.call("PATCH", f"{PATH}/{key}", {"url": URL}).json()
    assert same["failingSince"] is not None
    moved = api.call("PATCH", f"{PATH}/{key}", {"url": f"{URL}/2"}).json()
    assert moved["failingSince"] is None


def test_a_deleted_endpoint_takes_its_queue_along(api, org):
    key = create(api, types=["message.*"])["id"]
    api.send(message(factories.contact(org)))
    assert WebhookDelivery.objects.count() == 1
    deleted = api.call("DELETE", f"{PATH}/{key}")
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert (WebhookEndpoint.objects.count(), WebhookDelivery.objects.count()) == (0, 0)
    assert api.call("DELETE", f"{PATH}/{key}").status_code == 404


def test_a_rotated_secret_and_the_former_one_sign(api, org, receiver, loopback):
    made = create(api, url=receiver.url)
    rotated = api.call("POST", f"{PATH}/{made['id']}/rotate-secret")
    row = WebhookEndpoint.objects.get()
    assert rotated["Cache-Control"] == "no-store"
    assert rotated.json() == {
        **made,
        "secret": row.secret,
        "formerSecretUntil": instant(row.former_until),
    }
    assert row.secret != made["secret"]
    sent = api.call("POST", f"{PATH}/{made['id']}/test")
    assert sent.status_code == 202
    dispatch_all()
    (seen,) = receiver.seen
    assert receiver.received == [(sent.json()["webhookId"], "webhook.test")]
    assert len(verified(seen, row.secret, made["secret"])) == 2


def test_failed_deliveries_or_a_period_are_replayed(api, org):
    key = create(api, types=["message.*"])["id"]
    for person in factories.contacts(org, 2):
        api.send(message(person))
    WebhookDelivery.objects.update(status="DELIVERED", due_at=None)
    WebhookDelivery.objects.filter(pk=WebhookDelivery.objects.first().pk).update(status="FAILED")
    failed = api.call("POST", f"{PATH}/{key}/replay", {})
    assert (failed.status_code, failed.json()) == (202, {"queued": 1, "complete": True})
    WebhookDelivery.objects.update(status="DELIVERED", due_at=None)
    since = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    until = (datetime.now(UTC) + timedelta(minutes=5)).isoformat()
    period = api.call("POST", f"{PATH}/{key}/replay", {"since": since, "until": until})
    assert period.json() == {"queued": 2, "complete": True}
    assert WebhookDelivery.objects.filter(status="PENDING").count() == 2


@pytest.mark.parametrize(
    ("body", "field", "why"),
    [
        ({**GIVEN, "url": "http://hooks.example.com/"}, "url", "the address is not https"),
        ({**GIVEN, "url": "https://127.0.0.1/"}, "url", "the address is not public"),
        ({**GIVEN, "url": "nowhere"}, "url", "must be an address like https://hooks.example.com/rme"),
        ({**GIVEN, "types": ["message.lost"]}, "types[0]", "no such event type"),
        ({"types": ["message.*"]}, "url", "is required"),
        ({**GIVEN, "types": None}, "types", "must be a list"),
        ({**GIVEN, "secret": "own"}, "secret", "unknown field"),
    ],
)  # fmt: skip
def test_invalid_endpoint_is_rejected_with_its_field(api, body, field, why):
    refused = api.call("POST", PATH, body)
    assert refused.json() == error("INVALID_PAYLOAD", f"{field}: {why}", (field, why))
    assert refused.status_code == 400
    assert WebhookEndpoint.objects.count() == 0


@pytest.mark.parametrize(
    ("body", "field", "why"),
    [
        ({"until": "2026-01-01T00:00:00Z"}, "since", "is required with until"),
        (
            {"since": "2026-01-01T00:00:00Z"},
            "until",
            "must be after since, by at most 3 days",
        ),
        ({"since": "yesterday"}, "since", None),
        ({"failed": True}, "failed", "unknown field"),
    ],
)
def test_invalid_replay_is_rejected_with_its_field(api, body, field, why):
    refused = api.call("POST", f"{PATH}/{create(api)['id']}/replay", body).json()["error"]
    (detail,) = refused["details"]
    assert (refused["code"], detail["field"]) == ("INVALID_PAYLOAD", field)
    assert why is None or detail["message"] == why


def test_a_disabled_endpoint_is_neither_tested_nor_replayed(api):
    key = create(api)["id"]
    api.call("PATCH", f"{PATH}/{key}", {"enabled": False})
    why = ("enabled", "the endpoint is disabled")
    for refused in (
        api.call("POST", f"{PATH}/{key}/test"),
        api.call("POST", f"{PATH}/{key}/replay", {}),
    ):
        assert refused.json() == error("INVALID_PAYLOAD", "enabled: the endpoint is disabled", why)


def test_an_organization_has_at_most_twenty(api, org):
    WebhookEndpoint.objects.bulk_create(
        [WebhookEndpoint(organization=org, url=URL, types=["message.*"], secret="s")] * 20
    )
    refused = api.call("POST", PATH, GIVEN)
    why = "your organization has all 20 endpoints: delete one first"
    assert refused.json() == error("INVALID_PAYLOAD", f"body: {why}", ("body", why))


CALLS = [
    ("GET", "", None),
    ("PATCH", "", {"enabled": False}),
    ("PATCH", "", {"anything": 1}),
    ("DELETE", "", None),
    ("POST", "/rotate-secret", None),
    ("POST", "/test", None),
    ("POST", "/replay", {}),
    ("POST", "/replay", {"anything": 1}),
]


@pytest.mark.promise("webhooks-12")
@pytest.mark.parametrize(("method", "action", "body"), CALLS)
def test_endpoint_of_another_organization_is_not_found(api, org, method, action, body):
    theirs = endpoint(factories.organization("other"), URL)
    before = list(WebhookEndpoint.objects.values())
    answers = [
        api.call(method, f"{PATH}/{key}{action}", body)
        for key in (theirs.pk, theirs.pk + 1, "0", "x", "9" * 30)
    ]
    missing = error("NOT_FOUND", "This webhook endpoint doesn't exist.")
    assert [(each.status_code, each.json()) for each in answers] == [(404, missing)] * 5
    assert list(WebhookEndpoint.objects.values()) == before
    assert WebhookDelivery.objects.count() == 0


def test_each_change_is_in_the_audit_without_a_secret(api, org):
    key = create(api)["id"]
    api.call("PATCH", f"{PATH}/{key}", {"description": "Staging"})
    for action in ("rotate-secret", "test"):
        api.call("POST", f"{PATH}/{key}/{action}")
    api.call("POST", f"{PATH}/{key}/replay", {})
    api.call("DELETE", f"{PATH}/{key}")
    told = audited.summaries()
    name = f"application {api.application.pk}"
    assert [(who, action) for who, action, _ in told] == [
        (name, each)
        for each in ("ADDED", "CHANGED", "KEY_ROTATED", "TESTED", "REPLAYED", "DELETED")
    ]
    assert "whsec_" not in str(told)


def test_live_and_test_applications_have_separate_endpoints(org, api):
    live, test = create(api)["id"], create(Api(org, "TEST"))["id"]
    found = [
        [each.call("GET", f"{PATH}/{key}").status_code for key in (live, test)]
        for each in (api, Api(org, "TEST"))
    ]
    assert found == [[200, 404], [404, 200]]
