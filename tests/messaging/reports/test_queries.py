"""The history: filters, pages that stay stable, and statements that do not grow."""

import itertools
import time
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.domain.statuses import Status, aggregate
from messaging.models import Delivery, Suppression
from rme.core import ids
from rme.core.db import clock
from tests import factories
from tests.rest import message, work

pytestmark = pytest.mark.django_db


def ids_of(response):
    return [row["messageId"] for row in response.json()["messages"]]


@pytest.mark.promise("events-14")
def test_pages_are_stable_while_messages_arrive(api, org):
    person = factories.contact(org)
    sent = [api.send(message(person)).json()["messageId"] for _ in range(7)]
    first = api.call("GET", "/messages?limit=3")
    api.send(message(person))
    second = api.call("GET", f"/messages?limit=3&cursor={first.json()['nextCursor']}")
    third = api.call("GET", f"/messages?limit=3&cursor={second.json()['nextCursor']}")
    assert ids_of(first) + ids_of(second) + ids_of(third) == sent[::-1]
    assert third.json()["nextCursor"] is None
    assert first["Link"].startswith("<http://127.0.0.1:8000/rme/v1/messages?limit=3&cursor=")
    assert first["Link"].endswith('>; rel="next"')
    assert "Link" not in third


@pytest.mark.parametrize("count", [1, 30])
def test_statements_do_not_grow_with_the_page(api, org, count):
    people = factories.contacts(org, count)
    api.bulk([message(person) for person in people])
    with CaptureQueriesContext(connection) as captured:
        assert len(ids_of(api.call("GET", "/messages"))) == count
    assert len(captured) == 3


@pytest.mark.promise("events-12")
def test_filters(api, org):
    ada, bob = factories.contacts(org, 2)
    Suppression.objects.create(
        organization=org, channel="SMS", contact_id=str(bob.pk), reason="STOP"
    )
    mail = api.send(message(ada)).json()["messageId"]
    work()
    # `createdAt` is by the database's clock, of which a process is late, and an id is not.
    while clock.now() < ids.moment(ids.parse(mail)) + timedelta(milliseconds=2):
        time.sleep(0.001)
    sms = api.send(message(ada, channel="SMS")).json()["messageId"]
    both = api.send(message(ada, bob, channel="SMS")).json()["messageId"]
    created = api.get(sms)["createdAt"]
    for query, expected in [
        ("", [both, sms, mail]),
        (f"contactId={bob.pk}", [both]),
        ("channel=sms", [both, sms]),
        ("status=delivered", [mail]),
        ("status=ACCEPTED", [sms]),
        ("status=SENDING", [both]),
        ("status=BLOCKED", []),
        ("category=Transactional&limit=1", [both]),
        ("category=MARKETING", []),
        (f"since={created}", [both, sms]),
        (f"until={created}", [mail]),
    ]:
        assert ids_of(api.call("GET", f"/messages?{query}")) == expected, query


@pytest.mark.promise("calls-12", "events-13")
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=x", "limit"),
        ("status=GONE", "status"),
        ("since=yesterday", "since"),
        ("since=2026-01-01T00:00:00", "since"),
        ("cursor=%ff", "cursor"),
        ("cursor=abc", "cursor"),
        ("contactId=", "contactId"),
        ("category=a%20b", "category"),
        ("status=SENT&status=FAILED", "status"),
        ("contactId=%00", "contactId"),
    ],
)
def test_bad_filters_are_named(api, query, field):
    response = api.call("GET", f"/messages?{query}")
    assert response.status_code == 400
    assert [d["field"] for d in response.json()["error"]["details"]] == [field]


@pytest.mark.promise("events-9", "events-11")
def test_detail_of_a_message(api, org):
    person = factories.contact(org)
    message_id = api.send(message(person, metadata={"order": "7"})).json()["messageId"]
    work()
    detail = api.get(message_id)
    at = [event.pop("at") for event in detail["events"]]
    assert at == sorted(at)
    assert detail == {
        "messageId": message_id,
        "status": "DELIVERED",
        "channel": "EMAIL",
        "category": "TRANSACTIONAL",
        "template": {"name": "welcome", "language": "en_US"},
        "provider": "simulator",
        "scheduledFor": None,
        "createdAt": detail["createdAt"],
        "error": None,
        "metadata": {"order": "7"},
        "test": False,
        "recipients": [
            {
                "contactId": str(person.pk),
                "status": "DELIVERED",
                "resolvedChannel": "EMAIL",
                "provider": "simulator",
                "scheduledFor": None,
                "waiting": None,
                "error": None,
            }
        ],
        "events": [
            {"type": kind, "contactId": str(person.pk), "channel": "EMAIL", "provider": "simulator"}
            for kind in ("accepted", "sent", "delivered")
        ],
    }


@pytest.mark.promise("events-7")
def test_the_status_filter_agrees_with_the_aggregate(api, org):
    """The rule stands in SQL and in Python; every pair of statuses holds the two together."""
    people = factories.contacts(org, 2)
    pairs = list(itertools.combinations_with_replacement(Status, 2))
    results = api.bulk([message(*people) for _ in pairs]).json()["results"]
    for result, pair in zip(results, pairs, strict=True):
        rows = Delivery.objects.filter(message_id=result["messageId"]).order_by("position")
        for row, status in zip(rows, pair, strict=True):
            Delivery.objects.filter(pk=row.pk).update(status=status)
    for status in Status:
        expected = {
            result["messageId"]
            for result, pair in zip(results, pairs, strict=True)
            if aggregate(pair) == status
        }
        assert set(ids_of(api.call("GET", f"/messages?status={status}&limit=200"))) == expected
