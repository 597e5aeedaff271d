"""Deliveries are found by message and by contact, by indexes alone, also those of former releases
and those that are not their message's first.
"""

from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection

from messaging.accept import cancel
from messaging.models import Delivery, Message
from messaging.reports import queries
from messaging.store.lookups import (
    is_of_message,
    is_to_contact,
    is_to_contacts,
    of_contact,
    of_message,
    of_messages,
)
from rme.core import ids
from rme.core.db import clock
from tests import factories
from tests.rest import message

pytestmark = pytest.mark.django_db
_D, _M = Delivery._meta.db_table, Message._meta.db_table


def former(message_id):
    """Store ids of their own for the deliveries of a message, as former releases did."""
    for key in Delivery.objects.filter(of_message(message_id)).values_list("pk", flat=True):
        Delivery.objects.filter(pk=key).update(id=ids.new_id())


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("is_former", [False, True])
def test_a_message_has_all_its_deliveries(api, org, count, is_former):
    people = factories.contacts(org, count)
    at = (clock.now() + timedelta(hours=1)).isoformat()
    api.send(message(*people))
    key = api.send(message(*people, schedule={"mode": "AT", "at": at})).json()["messageId"]
    assert [row.pk for row in Delivery.objects.filter(message_id=key, position=0)] == [UUID(key)]
    if is_former:
        former(key)
    contacts = [str(person.pk) for person in people]
    [listed] = [
        row for row in api.call("GET", "/messages").json()["messages"] if row["messageId"] == key
    ]
    assert [row["contactId"] for row in listed["recipients"]] == contacts
    shown = queries.detail(org.pk, key)
    assert [row.contact_id for row in shown.message.recipients] == contacts
    assert {event.contact_id for event in shown.events} == set(contacts)
    cancel.cancel(org.pk, key)
    assert [row.status for row in queries.detail(org.pk, key).message.recipients] == [
        "CANCELLED"
    ] * count


def _plan(text, values=()):
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {text}", values)
        return [line for (line,) in cursor.fetchall()]


def _query(rows):
    return rows.query.sql_with_params()


CONDITIONS = {
    "of_message": _query(Delivery.objects.filter(of_message(UUID(int=1)))),
    "of_messages": _query(Delivery.objects.filter(of_messages([UUID(int=1), UUID(int=2)]))),
    "of_contact": _query(Delivery.objects.filter(of_contact("a"))),
    "is_of_message": (
        f"SELECT FROM {_M} m, "
        f"LATERAL (SELECT FROM {_D} d WHERE {is_of_message('d', 'm.id')} OFFSET 0) x",
        (),
    ),
    "is_of_messages": (
        f"SELECT FROM {_D} d WHERE {is_of_message('d', 'ANY(%s::uuid[])')}",
        [[UUID(int=1)], [UUID(int=2)]],
    ),
    "is_to_contact": (f"SELECT FROM {_D} d WHERE {is_to_contact('d', '%s')}", ["a", "a"]),
    "is_to_contacts": (
        f"SELECT FROM {_D} d WHERE {is_to_contacts('d', '%s::text[]')}",
        [["a"], ["a"]],
    ),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions_use_only_indexes(name):
    lines = _plan(*CONDITIONS[name])
    scans = [i for i, line in enumerate(lines) if " Scan" in line and "Bitmap Heap" not in line]
    deliveries = [i for i in scans if "delivery" in lines[i]]
    assert deliveries
    assert [lines[i + 1].split(":")[0].strip() for i in deliveries] == ["Index Cond"] * len(
        deliveries
    )
