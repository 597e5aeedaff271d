"""Pages of the history: the same few statements however far back, and never a whole history."""

import itertools
import json
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.domain.statuses import Status, aggregate
from messaging.models import Delivery, Message
from messaging.reports import queries
from messaging.store.reports import history
from messaging.store.reports.history import HistoryFilter, find
from rme.core import ids
from rme.core.db import clock, sql
from tests import factories
from tests.rest import message

pytestmark = pytest.mark.django_db


def key(number):
    """Return the id of the message with a number; all ids are after `since`."""
    return UUID(int=(1_800_000_000_000 << 80) + (number << 20))


def store(numbers, *statuses, contact="busy", channel="EMAIL", category="TRANSACTIONAL"):
    """Store messages, each with one delivery of each status; the first is to the contact."""
    now = clock.now()
    own = {"organization_id": "acme", "category": category}
    statuses = statuses or ("SENT",)
    messages = [
        {**own, "id": key(n), "channels": [], "strategy": "FIRST_REACHABLE", "test": False}
        | {"created_at": now}
        for n in numbers
    ]
    deliveries = [
        {**own, "id": UUID(int=key(n).int + 1 + i), "message_id": key(n), "position": i}
        | {"contact_id": f"other{i}" if i else contact, "channel": channel, "channels": []}
        | {"priority": 1, "status": status, "expires_at": now, "updated_at": now}
        | {"fence": 0, "tries": 0, "test": False}
        for n in numbers
        for i, status in enumerate(statuses)
    ]
    sql.insert({Message: messages, Delivery: deliveries})


def numbers(found):
    return [(identifier.int >> 20) & 0xFFFFFFFFFFF for identifier in found]


def walk(**fields):
    """Follow the cursors to the end; gives the pages, as numbers."""
    pages, cursor = [], None
    while True:
        found, cursor = find("acme", HistoryFilter(**fields, cursor=cursor))
        pages.append(numbers(found))
        if cursor is None:
            return pages


FILTERS = {
    "none": ({}, 3),
    "contact": ({"contact_id": "busy"}, 3),
    "since": ({"since": ids.moment(UUID(int=key(0).int - (1 << 80)))}, 3),
    "until": ({"until": ids.moment(UUID(int=key(0).int + (1 << 100)))}, 3),
    "status": ({"status": "SENT"}, 4),
    "channel": ({"channel": "EMAIL"}, 4),
    "category": ({"category": "TRANSACTIONAL"}, 4),
    "all": ({"contact_id": "busy", "status": "SENT", "channel": "EMAIL"}, 4),
}


@pytest.mark.promise("events-15")
@pytest.mark.parametrize("name", FILTERS)
def test_page_forty_is_read_by_as_many_statements_as_page_one(org, name):
    fields, statements = FILTERS[name]
    store(range(200))
    cursor, pages = None, []
    for _ in range(40):
        with CaptureQueriesContext(connection) as captured:
            page = queries.history(org.pk, HistoryFilter(**fields, limit=5, cursor=cursor))
        assert len(captured) == statements
        cursor = page.following
        pages.append([message.message_id for message in page.messages])
    assert [n for page in pages for n in numbers(page)] == list(range(199, -1, -1))
    assert {len(page) for page in pages} == {5}
    assert cursor is None


def test_a_rare_contact_is_found_behind_many_other_messages(org):
    store([0, 7], contact="seldom")
    store(range(10, 1000))
    store([2000], contact="seldom")
    assert walk(contact_id="seldom") == [[2000, 7, 0]]
    assert walk(contact_id="seldom", limit=2) == [[2000, 7], [0]]
    assert walk(contact_id="seldom", limit=3) == [[2000, 7, 0]]
    assert walk(contact_id="nobody") == [[]]


@pytest.mark.promise("events-15")
@pytest.mark.parametrize("name", ["none", "contact", "since", "until"])
def test_the_planner_reads_a_page_by_its_index(org, name):
    """Whatever the plan is called: no more rows than the page has are read."""
    store(range(2000))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE messaging_message, messaging_delivery")
    fields, _ = FILTERS[name]
    with CaptureQueriesContext(connection) as captured:
        find(org.pk, HistoryFilter(**fields, limit=50))
    assert rows_read(captured) <= 60


def rows_read(captured):
    """Run a captured query again and give how many rows its scans gave or threw away."""

    def read(node):
        own = 0
        if "Scan" in node["Node Type"] and "Relation Name" in node:
            rows = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
            own = rows * node["Actual Loops"]
        return own + sum(read(child) for child in node.get("Plans", []))

    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {captured[-1]['sql']}")
        (plan,) = cursor.fetchone()
    return read((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"])


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "FAILED"},
        {"channel": "SMS"},
        {"category": "RARE"},
        {"contact_id": "busy", "status": "FAILED"},
    ],
)
def test_a_rare_filter_scans_up_to_the_limit_and_its_cursor_continues(org, fields):
    """The rare ones stand first and last of two looks and a bit."""
    last = 2 * history.SCAN_LIMIT + 9
    channel, category = fields.get("channel", "EMAIL"), fields.get("category", "TRANSACTIONAL")
    store([0, last], fields.get("status", "SENT"), channel=channel, category=category)
    store(range(1, last))
    assert walk(**fields) == [[last], [], [0]]


def test_the_last_scan_ends_the_history(org):
    store(range(history.SCAN_LIMIT))
    assert walk(status="FAILED") == [[], []]
    assert walk(status="SENT", limit=history.SCAN_LIMIT) == [
        list(range(history.SCAN_LIMIT - 1, -1, -1)),
        [],
    ]


@pytest.mark.promise("events-12")
def test_the_status_filter_agrees_with_the_aggregate_for_three_recipients(org):
    triples = list(itertools.combinations_with_replacement(Status, 3))
    for number, triple in enumerate(triples):
        store([number], *triple)
    for status in Status:
        expected = [n for n, triple in enumerate(triples) if aggregate(triple) == status]
        assert walk(status=status, limit=500) == [expected[::-1]], status


@pytest.mark.promise("calls-4")
def test_another_organization_sees_nothing(org):
    store(range(5))
    for fields, _ in FILTERS.values():
        assert find("other", HistoryFilter(**fields)) == ([], None)


@pytest.mark.parametrize("cursor", ["/////////////////////w", "AAAAAAAAAAAAAAAAAAAAAA"])
@pytest.mark.parametrize("query", ["", "&status=SENT", "&contactId=x&channel=SMS"])
def test_an_invented_cursor_is_a_valid_start(api, org, cursor, query):
    api.send(message(factories.contact(org)))
    response = api.call("GET", f"/messages?cursor={cursor.replace('/', '_')}{query}")
    assert (response.status_code, response.json()["nextCursor"]) == (200, None)
