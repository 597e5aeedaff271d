"""A message from REST to the push services: every device by the service of its platform."""

import json
from unittest.mock import ANY

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.delivery import sweeper
from messaging.feedback import tasks
from messaging.models import Attempt, Delivery, ProviderAccount
from push.models import Device
from rme.core.db import clock
from rme.tenants.models import Membership
from rme.transport import AddressPolicy, Transport
from tests import factories
from tests.fakes.apns import GOOD, apple
from tests.fakes.fcm import google
from tests.fakes.webpush import push_service
from tests.rest import error, events, message, work
from tests.tenants.admin.scene import person as member

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback")]


def send(api, person, **fields):
    body = message(person, **{"channel": "PUSH", **fields})
    message_id = api.send(body).json()["messageId"]
    transport = Transport(AddressPolicy(["localhost"]))
    work(transport)
    work(transport)  # channels come in turn: for what fell back to an earlier one
    transport.close()
    return message_id


def account(org, kind, settings, **fields):
    return ProviderAccount.objects.create(
        organization=org, name=kind, kind=kind, channel="PUSH", credentials=json.dumps(settings),
        **fields,
    )  # fmt: skip


def register(api, person, platform, token, **fields):
    body = {"contactId": str(person.pk), "platform": platform, "token": token, **fields}
    assert api.call("POST", "/devices", body).status_code == 201


def outcomes():
    rows = Attempt.objects.order_by("provider").values_list("provider", "outcome", "reason")
    return list(rows)


@pytest.mark.promise("push-sending-1", "push-sending-13")
def test_every_device_is_reached_by_the_service_of_its_platform(api, org):
    person = factories.contact(org)
    with apple() as one, google() as two, push_service() as three:
        browser = three.browser()
        account(org, "apns", one.settings())
        account(org, "fcm", two.settings())
        account(org, "webpush", three.settings())
        register(api, person, "IOS", GOOD, app="com.example.other")
        register(api, person, "ANDROID", "fcm:token")
        register(api, person, "WEB", browser.subscription)
        message_id = send(api, person)
        assert [s.headers["apns-topic"] for s in one.seen] == ["com.example.other"]
        assert [s.headers["apns-collapse-id"] for s in one.seen] == [message_id]
        assert len(two.sent) == 1
        (seen,) = three.seen
        assert three.read(seen, browser) == {
            "title": "Hello", "body": "Note: hello", "tag": message_id,
        }  # fmt: skip
    assert outcomes() == [
        ("apns", "Accepted", None), ("fcm", "Accepted", None), ("webpush", "Accepted", None),
    ]  # fmt: skip
    assert events(message_id) == ["accepted", "sent"]


@pytest.mark.promise("push-sending-3")
def test_one_accepted_push_is_enough_and_the_dead_device_is_retired(api, org):
    person = factories.contact(org)
    dead = (404, {"error": {"details": [{"errorCode": "UNREGISTERED"}]}})
    with apple() as one, google(**{"fcm:token": dead}) as two:
        account(org, "apns", one.settings())
        account(org, "fcm", two.settings())
        register(api, person, "IOS", GOOD)
        register(api, person, "ANDROID", "fcm:token")
        message_id = send(api, person)
    assert events(message_id) == ["accepted", "sent"]
    assert outcomes() == [("apns", "Accepted", None), ("fcm", "Gone", "UNREGISTERED")]
    assert Device.objects.filter(active=True).count() == 2
    tasks.retire_devices()
    row = Device.objects.get(active=False)
    assert (row.platform, row.inactive_reason) == ("ANDROID", "UNREGISTERED")


@pytest.mark.promise("push-sending-5")
def test_when_all_are_dead_the_next_channel_has_its_turn(api, org):
    person = factories.contact(org)
    dead = (404, {"error": {"details": [{"errorCode": "UNREGISTERED"}]}})
    with google(**{"fcm:token": dead}) as two:
        account(org, "fcm", two.settings())
        account(org, "simulator", {}, priority=200)
        ProviderAccount.objects.create(
            organization=org, name="sms", kind="simulator", channel="SMS"
        )
        register(api, person, "ANDROID", "fcm:token")
        message_id = send(api, person, channel=None, channels=["PUSH", "SMS"])
    assert outcomes() == [("fcm", "Gone", "UNREGISTERED"), ("sms", "Accepted", None)]
    assert events(message_id) == ["accepted", "fallback", "sent", "delivered"]


@pytest.mark.promise("push-sending-6")
def test_an_unconfirmed_push_is_followed_by_the_next_channel(api, org):
    person = factories.contact(org)
    given = {"channel": None, "channels": ["PUSH", "SMS", "EMAIL"], "strategy": "FIRST_DELIVERED"}
    with google() as two:
        account(org, "fcm", two.settings())
        for channel in ("SMS", "EMAIL"):
            ProviderAccount.objects.create(
                organization=org, name=channel, kind="simulator", channel=channel
            )
        register(api, person, "ANDROID", "fcm:token")
        message_id = send(api, person, **given, fallbackAfter=60)
        assert (sweeper.fall_back(), len(two.sent)) == (0, 1)
        Delivery.objects.update(due_at=clock.now())
        assert sweeper.fall_back() == 1
        work()
    assert events(message_id) == ["accepted", "sent", "fallback", "sent", "delivered"]
    assert outcomes() == [("SMS", "Accepted", None), ("fcm", "Accepted", None)]


def test_devices_without_a_provider_are_refused(api, org):
    person = factories.contact(org)
    with google() as two:
        account(org, "fcm", two.settings())
        register(api, person, "IOS", GOOD)
        answer = api.send(message(person, channel="PUSH"))
    body = error("PROVIDER_ERROR", "No provider account for push.", message_id=ANY)
    assert (answer.status_code, answer.json()) == (502, body)
    assert outcomes() == []


@pytest.mark.promise("push-sending-7")
def test_devices_without_a_provider_account_wait(api, org):
    person = factories.contact(org)
    with google() as two:
        account(org, "fcm", two.settings())
        register(api, person, "ANDROID", "fcm:token")
        message_id = api.send(message(person, channel="PUSH")).json()["messageId"]
        Device.objects.update(platform="IOS")
        work()
        assert two.sent == []
    row = Delivery.objects.get()
    assert (str(row.message_id), row.status, row.waiting, row.detail) == (
        message_id, "ACCEPTED", "PROVIDER", "no active account for the devices",
    )  # fmt: skip
    assert outcomes() == []


@pytest.mark.promise("push-sending-8")
def test_an_account_may_be_for_some_platforms(api, org):
    person = factories.contact(org)
    account(org, "simulator", {}, match=["IOS"])
    register(api, person, "ANDROID", "fcm:token")
    register(api, person, "IOS", GOOD)
    send(api, person)
    (attempt,) = Attempt.objects.all()
    assert attempt.device_id == Device.objects.get(platform="IOS").pk


@pytest.mark.promise("push-sending-8")
def test_an_account_may_be_for_some_apps(api, org):
    person = factories.contact(org)
    with apple() as one, apple() as two:
        account(org, "apns", one.settings(), match=["com.example.one"])
        ProviderAccount.objects.create(
            organization=org, name="two", kind="apns", channel="PUSH", match=["com.example.two"],
            credentials=json.dumps(two.settings(key_id="OTHER12345")),
        )  # fmt: skip
        register(api, person, "IOS", GOOD, app="com.example.one")
        register(api, person, "IOS", "cd" * 32, app="com.example.two")
        register(api, person, "IOS", "ef" * 32)
        send(api, person)
        for service, app in ((one, "com.example.one"), (two, "com.example.two")):
            assert [seen.headers["apns-topic"] for seen in service.seen] == [app]
    assert outcomes() == [("apns", "Accepted", None), ("two", "Accepted", None)]


@pytest.mark.promise("push-sending-2")
def test_each_devices_attempt_is_in_the_detail_and_in_the_admin(api, org):
    person = factories.contact(org)
    gone = (404, {"error": {"details": [{"errorCode": "UNREGISTERED"}]}})
    with google(**{"fcm:dead": gone}) as two:
        account(org, "fcm", two.settings())
        register(api, person, "ANDROID", "fcm:alive")
        register(api, person, "ANDROID", "fcm:dead")
        message_id = send(api, person)
    alive, dead = (str(row.pk) for row in Device.objects.order_by("id"))
    body = api.call("GET", f"/messages/{message_id}?include=trace").json()
    steps = [step for step in body["trace"][0]["steps"] if step["step"] == "ATTEMPT"]
    attempts = [
        (one["deviceId"], one["provider"], one["result"], one.get("detail")) for one in steps
    ]
    assert attempts == [
        (alive, "fcm", "ACCEPTED", None), (dead, "fcm", "GONE", "UNREGISTERED"),
    ]  # fmt: skip
    editor = member("editor", org, Membership.Role.OPERATOR)
    shown = editor.get(f"/admin/console/{org.pk}/messages/{message_id}/record/").context["record"]
    recorded = [(row["device_id"], row["outcome"]) for row in json.loads(shown)["attempts"]]
    assert recorded == [(alive, "Accepted"), (dead, "Gone")]


@pytest.mark.promise("push-answers-22")
@pytest.mark.parametrize("dead", [1, 40])
def test_dead_devices_of_any_number_cost_one_statement(api, org, dead):
    person = factories.contact(org)
    gone = (404, {"error": {"details": [{"errorCode": "UNREGISTERED"}]}})
    tokens = [f"fcm:token-{n}" for n in range(dead)]
    with google(**dict.fromkeys(tokens, gone)) as two:
        account(org, "fcm", two.settings())
        for token in tokens:
            register(api, person, "ANDROID", token)
        with CaptureQueriesContext(connection) as captured:
            send(api, person)
    inserts = [q for q in captured if 'INSERT INTO "push_feedback"' in q["sql"]]
    assert len(inserts) == 1
    tasks.retire_devices()
    assert not Device.objects.filter(active=True).exists()
