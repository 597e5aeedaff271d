"""Adding many suppressions by one call, and how many statements that takes."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.models import Suppression
from tests import factories
from tests.messaging.consent.suppressions_scene import ADA, add_many, entries, listed, row, shown
from tests.rest import error

pytestmark = pytest.mark.django_db


@pytest.mark.promise("suppressions-2", "suppressions-7")
def test_many_are_answered_one_by_one_in_order(api, org):
    there = row(org, address="there@example.com", reason="STOP")
    ada_id = str(factories.contact(org).pk)
    answer = add_many(
        api,
        {**ADA, "reason": "MANUAL", "note": "first"},
        {**ADA, "address": "nobody"},
        {"channel": "EMAIL", "address": "there@example.com"},
        {**ADA, "reason": "COMPLAINT"},
        "nonsense",
        {"channel": "PUSH", "contactId": ada_id},
        {"channel": "PUSH", "contactId": "c1"},
    )
    ada = Suppression.objects.get(address="ada@example.com")
    push = Suppression.objects.get(contact_id=ada_id)
    one = {"entry": shown(ada, reason="COMPLAINT", note="first")}
    why = "not an address on the channel EMAIL"
    assert (answer.status_code, answer.json()) == (
        201,
        {
            "accepted": 4,
            "rejected": 3,
            "results": [
                {"index": 0, **one},
                {"index": 1, **error("INVALID_PAYLOAD", f"address: {why}", ("address", why))},
                {
                    "index": 2,
                    "entry": shown(
                        there, address="there@example.com", reason="STOP", source="ADMIN"
                    ),
                },
                {"index": 3, **one},
                {
                    "index": 4,
                    **error(
                        "INVALID_PAYLOAD", "body: must be an object", ("body", "must be an object")
                    ),
                },
                {"index": 5, "entry": shown(push, channel="PUSH", address=None, contactId=ada_id)},
                {
                    "index": 6,
                    **error(
                        "NOT_FOUND", "contactId: no such contact", ("contactId", "no such contact")
                    ),
                },
            ],
        },
    )


@pytest.mark.promise("suppressions-7")
@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ([], "List should have at least 1 item after validation, not 0"),
        ([ADA] * 501, "List should have at most 500 items after validation, not 501"),
        ("ada", "must be a list"),
        (None, "must be a list"),
    ],
)
def test_a_bad_envelope_is_refused(api, entries, why):
    answer = api.call("POST", "/suppressions", {"entries": entries})
    expected = error("INVALID_PAYLOAD", f"entries: {why}", ("entries", why))
    assert (answer.status_code, answer.json()) == (400, expected)


def test_unknown_field_beside_entries_is_rejected(api):
    answer = api.call("POST", "/suppressions", {"entries": [ADA], "channel": "EMAIL"})
    expected = error("INVALID_PAYLOAD", "channel: unknown field", ("channel", "unknown field"))
    assert (answer.status_code, answer.json()) == (400, expected)


@pytest.mark.parametrize("count", [1, 50, 500])
def test_adding_many_needs_as_many_statements_as_adding_one(api, count):
    listed(api)  # the token and the clock are known from here on
    found = []
    for _ in range(2):  # new ones, and ones that are there
        with CaptureQueriesContext(connection) as captured:
            assert add_many(api, *entries(count)).json()["accepted"] == count
        found.append(len(captured))
    # a savepoint, the lock, two statements, and its release; new ones are queued for endpoints
    assert found == [6, 5]
    assert Suppression.objects.count() == count


@pytest.mark.parametrize("count", [1, 50, 200])
def test_page_needs_one_query_for_any_number_of_rows(api, count):
    add_many(api, *entries(count))
    with CaptureQueriesContext(connection) as captured:
        assert len(listed(api, "?limit=200")["suppressions"]) == count
    assert len(captured) == 1
