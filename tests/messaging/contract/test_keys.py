"""The contract's rules for idempotency keys and bulks."""

import datetime as dt

import orjson
import pytest

from messaging.models import IdempotencyKey, Message, ProviderAccount
from rme.core.cache import TtlCache
from rme.core.db import clock
from rme.tenants.models import Organization
from tests import factories
from tests.rest import error, message

pytestmark = pytest.mark.django_db

KEY = {"Idempotency-Key": "order-42"}


# --- keys -----------------------------------------------------------------------------------------


@pytest.mark.promise("key-3")
def test_replay_has_the_first_body_and_its_own_request_id(api, org):
    person = factories.contact(org, email="")
    first = api.send(message(person), **KEY)
    other = "0d6d8f3c-6a53-4a0b-9a53-7b0f9f0e2a11"
    again = api.send(message(person), **KEY, **{"X-Request-Id": other})
    assert (
        (again.status_code, again.content)
        == (first.status_code, first.content)
        == (
            422,
            first.content,
        )
    )
    assert (first["X-Request-Id"], again["X-Request-Id"]) == (
        first.json()["error"]["requestId"],
        other,
    )


@pytest.mark.promise("key-4")
def test_whitespace_does_not_change_the_request(api, org):
    body = message(factories.contact(org))
    first = api.send(body, **KEY)
    again = api.send(orjson.dumps(body, option=orjson.OPT_INDENT_2) + b"\n", **KEY)
    assert (again.status_code, again.content) == (202, first.content)


@pytest.mark.promise("key-1")
def test_a_key_may_be_of_255_characters(api, org):
    body, key = message(factories.contact(org)), {"Idempotency-Key": "k" * 255}
    assert api.send(body, **key).content == api.send(body, **key).content


@pytest.mark.promise("key-6", "key-7")
def test_key_expires_a_day_after_the_latest_send_time(api, org):
    ada, bob = factories.contact(org, zone="Asia/Kolkata"), factories.contact(org, zone="UTC")
    day = (clock.now() + dt.timedelta(days=30)).date().isoformat()
    schedule = {"mode": "LOCAL", "time": "09:30", "date": day}
    api.send(message(ada, bob, schedule=schedule), **KEY)
    api.send(message(ada), **{"Idempotency-Key": "now"})
    api.bulk([message(ada, schedule=schedule), message(bob)], **{"Idempotency-Key": "bulk"})
    lives = dict(IdempotencyKey.objects.values_list("key", "expires_at"))
    latest = dt.datetime.fromisoformat(f"{day}T09:30:00+00:00") + dt.timedelta(days=1)
    assert lives["order-42"] == latest
    assert lives["bulk"] == latest - dt.timedelta(hours=5, minutes=30)
    assert (
        dt.timedelta(0)
        <= clock.now() + dt.timedelta(days=1) - lives["now"]
        < dt.timedelta(minutes=1)
    )


@pytest.mark.promise("key-14")
def test_a_message_without_a_provider_does_not_use_the_key(api, org):
    body = message(factories.contact(org), channel="SMS")
    Organization.objects.filter(pk=org.pk).update(simulator=False)
    ProviderAccount.objects.create(organization=org, name="mail", kind="simulator", channel="EMAIL")
    TtlCache.clear_all()
    refused = api.send(body, **KEY)
    assert (refused.status_code, refused.json()["error"]["code"]) == (502, "PROVIDER_ERROR")
    Organization.objects.filter(pk=org.pk).update(simulator=True)
    TtlCache.clear_all()
    again = api.send(body, **KEY)
    assert (again.status_code, again.get("Idempotent-Replayed")) == (202, None)


# --- bulks ----------------------------------------------------------------------------------------


@pytest.mark.promise("bulk-3")
def test_a_bulk_is_answered_in_its_order(api, org):
    ada = factories.contact(org)
    response = api.bulk([message(ada), {**message(ada), "channel": "FAX"}, message(ada)])
    results = response.json()["results"]
    ids = [str(pk) for pk in Message.objects.order_by("id").values_list("pk", flat=True)]
    sent = {
        "status": "ACCEPTED",
        "resolvedChannel": "EMAIL",
        "provider": "simulator",
        "scheduledFor": None,
    }
    why = "Input should be 'EMAIL', 'SMS', 'PUSH' or 'AUTO'"
    assert (response.status_code, response.json()) == (
        202,
        {
            "accepted": 2,
            "rejected": 1,
            "results": [
                {"index": 0, "messageId": ids[0], **sent},
                {"index": 1, **error("INVALID_PAYLOAD", f"channel: {why}", ("channel", why))},
                {"index": 2, "messageId": ids[1], **sent},
            ],
        },
    )
    assert len(results) == 3


@pytest.mark.promise("bulk-1")
@pytest.mark.parametrize(
    ("envelope", "field", "why"),
    [
        ({"messages": []}, "messages", None),
        ({"messages": [{}] * 501}, "messages", None),
        ({"messages": {}}, "messages", "must be a list"),
        ({}, "messages", "is required"),
        ({"messages": [{}], "channel": "EMAIL"}, "channel", "unknown field"),
        ([], "body", "must be an object"),
    ],
)
def test_malformed_envelope_is_rejected(api, envelope, field, why):
    response = api.call("POST", "/messages/bulk", envelope)
    (detail,) = response.json()["error"]["details"]
    assert (response.status_code, detail["field"]) == (400, field)
    assert why in (None, detail["message"])


@pytest.mark.promise("bulk-2")
def test_a_bulk_has_at_most_5000_recipients(api, org):
    people = factories.contacts(org, 100)
    full = [message(*people) for _ in range(50)]
    why = "5001 recipients in all; at most 5000"
    response = api.bulk([*full, message(people[0])])
    assert (response.status_code, response.json()) == (
        400,
        error("INVALID_PAYLOAD", f"messages: {why}", ("messages", why)),
    )
    assert not Message.objects.exists()
    assert api.bulk(full).json()["accepted"] == 50
