"""TEST applications see and change what is TEST only, on every route."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core import serializers

from messaging.consent import data_export, erasure, ledger
from messaging.delivery import manual_review, sweeper
from messaging.models import (
    Category,
    ConsentEntry,
    ConsentEntryInTest,
    Delivery,
    Suppression,
    SuppressionInTest,
    WebhookDelivery,
    WebhookEndpoint,
)
from messaging.webhooks import device_events, outbox, replays
from push import feedback
from push.models import Device
from rme.core.db import sql
from rme.core.outcomes import Gone
from rme.tenants import audit
from rme.tenants.models import Application
from rme.tenants.oauth.routes import ROUTES
from tests import factories
from tests.messaging.api.live_data import LATER, LIVE_DATA, URL, Live, calls, decision
from tests.rest import Api, message, work

pytestmark = pytest.mark.django_db


@pytest.fixture
def tester(org):
    return Api(org, mode=Application.Mode.TEST)


@pytest.fixture
def ada(org):
    return factories.contact(org)


READS_TEST_ROWS = ("messages", "consent", "devices", "suppressions", "webhook-endpoints")


@pytest.mark.promise("answer-10")
def test_no_route_shows_or_changes_live_data(api, tester, org, ada):
    live = Live(api, org, ada)
    wanted = calls(live, ada)
    assert wanted.keys() == set(ROUTES)
    wrong = []
    before = live.rows()
    reads_first = sorted(wanted.items(), key=lambda each: each[0][0] != "GET")
    for (method, route), (path, body, status) in reads_first:
        answer = tester.call(method, path, body)
        if answer.status_code != status:
            wrong.append((method, route, answer.status_code, answer.content[:300]))
        if method == "GET" and route in READS_TEST_ROWS:
            (listed, *_) = answer.json().values()
            if listed != []:
                wrong.append((method, route, listed))
    assert wrong == []
    made = {"test": False}  # what TEST calls added is TEST, and nothing else was touched
    after = [
        serializers.serialize(
            "json",
            model._default_manager.filter(
                **(made if any(f.name == "test" for f in model._meta.fields) else {})
            ).order_by("pk"),
        )
        for model in LIVE_DATA
    ]
    assert after == before


def test_test_application_sees_and_changes_test_data(tester, org, ada):
    sent = tester.send(message(ada, schedule=LATER)).json()["messageId"]
    assert tester.get(sent)["test"] is True
    assert [each["messageId"] for each in tester.call("GET", "/messages").json()["messages"]] == [
        sent
    ]
    assert tester.call("DELETE", f"/messages/{sent}").json()["status"] == "CANCELLED"

    entry = tester.call("POST", "/consent", decision(ada, "OPTED_IN")).json()
    assert tester.call("GET", "/consent").json()["consent"] == [entry]

    body = {"channel": "EMAIL", "address": "X@test.example", "reason": "MANUAL"}
    listed = tester.call("POST", "/suppressions", body)
    path = f"/suppressions/{listed.json()['id']}"
    assert (listed.status_code, tester.call("POST", "/suppressions", body).status_code) == (
        201,
        200,
    )
    assert tester.call("GET", "/suppressions").json()["suppressions"] == [listed.json()]
    assert tester.call("GET", path).json() == listed.json()
    assert tester.call("DELETE", path).status_code == 204
    assert tester.call("GET", path).status_code == 404

    given = {"contactId": str(ada.pk), "platform": "ANDROID", "token": "simulator-one"}
    device = tester.call("POST", "/devices", given).json()["deviceId"]
    again = tester.call("POST", "/devices", given)
    assert (again.status_code, again.json()["deviceId"]) == (200, device)
    replaced = tester.call("POST", f"/devices/{device}/replace", {"token": "simulator-two"})
    assert replaced.json()["deviceId"] == device
    assert [d["deviceId"] for d in tester.call("GET", "/devices").json()["devices"]] == [device]
    assert tester.call("DELETE", f"/devices/{device}").status_code == 204

    endpoint = tester.call(
        "POST", "/webhook-endpoints", {"url": URL, "types": ["message.*"]}
    ).json()
    shown = tester.call("GET", "/webhook-endpoints").json()["webhookEndpoints"]
    assert [each["id"] for each in shown] == [endpoint["id"]]
    own = f"/webhook-endpoints/{endpoint['id']}"
    answers = [
        tester.call("PATCH", own, {"description": "mine"}),
        tester.call("POST", f"{own}/rotate-secret"),
        tester.call("POST", f"{own}/test"),
        tester.call("POST", f"{own}/replay", {}),
        tester.call("DELETE", own),
    ]
    assert [each.status_code for each in answers] == [200, 200, 202, 202, 204]


def test_live_applications_do_not_see_the_test_layer(api, tester, org, ada):
    tester.call("POST", "/consent", decision(ada, "OPTED_IN"))
    tester.call("POST", "/consent", decision(ada, "OPTED_OUT", "TRANSACTIONAL"))
    body = {"channel": "EMAIL", "address": ada.email, "reason": "MANUAL"}
    tester.call("POST", "/suppressions", body)
    given = {"contactId": str(ada.pk), "platform": "ANDROID", "token": "simulator-one"}
    tester.call("POST", "/devices", given)
    tester.call("POST", "/webhook-endpoints", {"url": URL, "types": ["message.*"]})
    lists = ("consent", "suppressions", "devices", "webhook-endpoints")
    for name in lists:
        (listed, *_) = api.call("GET", f"/{name}").json().values()
        assert (name, listed) == (name, [])
    content = {"subject": "a", "text": "b"}
    marketing = message(ada, category="MARKETING", template=None, context=None, content=content)
    answers = [
        api.send(message(ada)),
        api.send(marketing),
        api.send(message(ada, channel="PUSH")),
    ]
    codes = [each.json().get("error", {}).get("code") for each in answers]
    assert codes == [None, "NO_CONSENT", "UNREACHABLE"]
    assert (ConsentEntry.objects.count(), Suppression.objects.count()) == (0, 0)
    assert ledger.verify(org.pk).entries == 0


def sent_in(api, *bodies):
    """Send messages, and return the code or status of each, and what came of them at send."""
    found = [api.send(body).json() for body in bodies]
    work()
    shown = [each.get("messageId") or each["error"]["messageId"] for each in found]
    return [
        (each.get("error", {}).get("code"), api.get(key)["status"])
        for each, key in zip(found, shown, strict=True)
    ]


@pytest.mark.promise("answer-10")
def test_sends_of_test_applications_pass_both_layers(api, tester, org, ada):
    content = {"subject": "a", "text": "b"}
    marketing = message(ada, category="MARKETING", template=None, context=None, content=content)
    assert sent_in(tester, marketing) == [("NO_CONSENT", "BLOCKED")]
    tester.call("POST", "/consent", decision(ada, "OPTED_IN"))
    assert sent_in(tester, marketing) == [(None, "DELIVERED")]
    api.call("POST", "/consent", decision(ada, "OPTED_OUT"))  # newer, so it counts
    assert sent_in(tester, marketing) == [("NO_CONSENT", "BLOCKED")]
    tester.call("POST", "/consent", decision(ada, "OPTED_IN"))
    assert sent_in(tester, marketing) == [(None, "DELIVERED")]
    assert sent_in(api, marketing) == [("NO_CONSENT", "BLOCKED")]
    body = {"channel": "EMAIL", "address": ada.email, "reason": "MANUAL"}
    listed = api.call("POST", "/suppressions", body).json()["id"]
    assert sent_in(tester, marketing) == [("SUPPRESSED", "BLOCKED")]
    api.call("DELETE", f"/suppressions/{listed}")
    tester.call("POST", "/suppressions", body)
    assert sent_in(tester, marketing) == [("SUPPRESSED", "BLOCKED")]
    assert sent_in(api, message(ada)) == [(None, "DELIVERED")]


def test_the_test_layer_is_checked_again_at_the_moment_of_sending(tester, org, ada):
    sent = tester.send(message(ada)).json()["messageId"]
    body = {"channel": "EMAIL", "address": ada.email, "reason": "MANUAL"}
    tester.call("POST", "/suppressions", body)
    work()
    assert tester.get(sent)["status"] == "BLOCKED"


@pytest.mark.parametrize(
    ("word", "reason"), [("bounce", "HARD_BOUNCE"), ("complaint", "COMPLAINT")]
)
def test_feedback_of_a_test_message_only_suppresses_in_test(api, tester, org, word, reason):
    person = factories.contact(org, email=f"{word}@simulator.rme.test")
    sent_in(tester, message(person))
    assert Suppression.objects.count() == 0
    row = SuppressionInTest.objects.get()
    assert (row.address, row.reason, row.source) == (person.email, reason, "PROVIDER")
    assert api.send(message(person)).status_code == 202
    assert tester.send(message(person)).json()["error"]["code"] == "SUPPRESSED"


def test_test_messages_do_not_count_for_live_caps(api, tester, org, ada):
    Category.objects.create(
        organization=org, name="NEWS", regime="OPT_OUT", cap_count=1, cap_window=86_400
    )
    content = {"subject": "a", "text": "b"}
    news = message(ada, category="NEWS", template=None, context=None, content=content)
    assert tester.send(news).status_code == 202
    assert tester.send(news).json()["error"]["code"] == "FREQUENCY_CAPPED"
    assert api.send(news).status_code == 202
    assert api.send(news).json()["error"]["code"] == "FREQUENCY_CAPPED"


def test_a_dead_token_of_a_test_message_ends_test_devices_alone(tester, org, ada):
    live = factories.device(org, ada)
    given = {"contactId": str(ada.pk), "platform": "ANDROID", "token": "simulator-one"}
    test = Device.objects.get(pk=tester.call("POST", "/devices", given).json()["deviceId"])
    later, dead = datetime.now(UTC) + timedelta(minutes=1), Gone("Unregistered")
    for is_test in (True, False):
        reported = [
            feedback.DeviceOutcome(org.pk, str(each.pk), later, dead, is_test)
            for each in (live, test)
        ]
        sql.execute({"feedback": feedback.insert_statement(reported)})
        feedback.retire(device_events.write)
        live.refresh_from_db()
        test.refresh_from_db()
        assert (live.active, test.active) == (is_test, False)


def test_endpoints_get_the_events_of_their_mode(api, tester, org, ada):
    types = ["message.*", "consent.changed", "suppression.created", "device.registered"]
    endpoints = [
        each.call("POST", "/webhook-endpoints", {"url": URL, "types": types}).json()["id"]
        for each in (api, tester)
    ]
    for each in (api, tester):
        each.call("POST", "/consent", decision(ada, "OPTED_IN"))
        body = {"channel": "EMAIL", "address": "z@x.example", "reason": "MANUAL"}
        each.call("POST", "/suppressions", body)
        given = {"contactId": str(ada.pk), "platform": "ANDROID", "token": "simulator-d"}
        each.call("POST", "/devices", given)
    for key in endpoints:
        rows = WebhookDelivery.objects.filter(endpoint_id=key).order_by("pk")
        kinds = list(rows.values_list("type", flat=True))
        assert kinds == ["consent.changed", "suppression.created", "device.registered"]
    WebhookDelivery.objects.all().delete()
    sent = [each.send(message(ada)).json()["messageId"] for each in (api, tester)]
    shown = {
        str(claim.endpoint.pk): [
            outbox.payload_of(each.event, test=claim.endpoint.test) for each in claim.due
        ]
        for claim in outbox.claim(10)
    }
    live, test = (shown[key] for key in endpoints)
    assert None not in (*live, *test)
    assert [any(key.encode() in body for body in live) for key in sent] == [True, True]  # marked
    assert [any(key.encode() in body for body in test) for key in sent] == [False, True]


def sent_out(caller, org, ada, moved):
    caller.send(message(ada))
    work()
    return "message.delivered"


def cancelled(caller, org, ada, moved):
    key = caller.send(message(ada, schedule=LATER)).json()["messageId"]
    assert caller.call("DELETE", f"/messages/{key}").status_code == 200
    return "message.cancelled"


def refused(caller, org, ada, moved):
    person = factories.contact(org, email="")
    assert caller.send(message(person)).status_code == 422
    return "message.blocked"


def expired(caller, org, ada, moved):
    content = {"subject": "Hi", "text": "Hello"}
    body = message(ada, category="MARKETING", template=None, content=content, context=None)
    assert caller.send({**body, "schedule": LATER}).status_code == 202
    Delivery.objects.update(scheduled_for=moved, due_at=moved)
    sweeper.release()
    return "message.expired"


def reviewed(caller, org, ada, moved):
    caller.send(message(ada))
    Delivery.objects.update(status="UNKNOWN", due_at=None)
    (row,) = Delivery.objects.values_list("pk", flat=True)
    by = audit.COMMAND_LINE
    manual_review.decide(org.pk, [row], manual_review.Decision.GIVE_UP, reason="r", actor=by)
    return "message.failed"


def replayed(caller, org, ada, moved):
    caller.send(message(ada))
    WebhookDelivery.objects.all().delete()
    for endpoint in WebhookEndpoint.objects.all():
        replays.replay(endpoint, moved, datetime.now(UTC) + timedelta(minutes=1))
    return "message.accepted"


@pytest.mark.parametrize(
    "way",
    [sent_out, cancelled, refused, expired, reviewed, replayed],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("is_test", [False, True])
def test_no_event_of_a_live_message_is_queued_for_a_test_endpoint(
    api, tester, org, ada, is_test, way
):
    for each in (api, tester):
        each.call("POST", "/webhook-endpoints", {"url": URL, "types": ["message.*"]})
        each.call("POST", "/consent", decision(ada, "OPTED_IN"))
    kind = way(tester if is_test else api, org, ada, datetime.now(UTC) - timedelta(days=1))
    rows = WebhookDelivery.objects.order_by("event_id").values_list("type", flat=True)
    of_test = list(rows.filter(endpoint_id__in=WebhookEndpoint.objects.filter(test=True)))
    live = list(rows.filter(endpoint_id__in=WebhookEndpoint.objects.filter(test=False)))
    assert kind in live
    assert of_test == (live if is_test else [])


def test_erasure_and_export_know_the_test_layer(tester, org, ada):
    tester.call("POST", "/consent", decision(ada, "OPTED_IN"))
    body = {"channel": "EMAIL", "contactId": str(ada.pk), "reason": "MANUAL"}
    tester.call("POST", "/suppressions", body)
    found = data_export.export_contact(org.pk, str(ada.pk))
    assert [len(found[name]) for name in ("testConsent", "testSuppressions")] == [1, 1]
    erasure.erase(org.pk, str(ada.pk))
    assert (ConsentEntryInTest.objects.count(), SuppressionInTest.objects.count()) == (0, 0)
