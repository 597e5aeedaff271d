"""Listing suppressions: pages and queries."""

import pytest

from tests.messaging.consent.suppressions_scene import add_many, entries, listed, row
from tests.rest import error

pytestmark = pytest.mark.django_db


@pytest.mark.promise("suppressions-6")
def test_newest_suppressions_come_first_across_pages(api):
    add_many(api, *entries(5))
    everything = listed(api)
    assert [entry["address"] for entry in everything["suppressions"]] == sorted(
        (f"p{i}@example.com" for i in range(5)), reverse=True
    )
    assert everything["nextCursor"] is None
    pages, query = [], "?limit=2&channel=email"
    while query:
        answer = api.call("GET", f"/suppressions{query}")
        body = answer.json()
        pages.append(body["suppressions"])
        link = answer.headers.get("Link")
        cursor = body["nextCursor"]
        assert (link is None) == (cursor is None)
        if cursor:
            assert f"limit=2&channel=email&cursor={cursor}" in link
            assert link.endswith('>; rel="next"')
        query = f"?limit=2&channel=email&cursor={cursor}" if cursor else ""
    assert [len(page) for page in pages] == [2, 2, 1]
    assert [entry for page in pages for entry in page] == everything["suppressions"]


@pytest.mark.promise("suppressions-6")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?channel=SMS", ["sms"]),
        ("?channel=ALL", ["all"]),
        ("?address=ADA@Example.com", ["all", "mail"]),
        ("?channel=EMAIL&address=ada@example.com", ["mail"]),
        ("?address=(212)%20736-5000", ["sms"]),
        ("?contactId=c1", ["push"]),
        ("?reason=stop", ["sms"]),
        ("?reason=STOP&channel=EMAIL", []),
        ("?contactId=c2", []),
        ("", ["push", "sms", "all", "mail"]),
    ],
)
def test_a_query_narrows_the_list(api, org, query, found):
    rows = {
        "mail": row(org),
        "all": row(org, channel="ALL"),
        "sms": row(org, channel="SMS", address="+12127365000", reason="STOP"),
        "push": row(org, channel="PUSH", address="", contact_id="c1"),
    }
    names = {str(entry.pk): name for name, entry in rows.items()}
    assert [names[entry["id"]] for entry in listed(api, query)["suppressions"]] == found


@pytest.mark.parametrize(
    ("query", "field", "why"),
    [
        ("?limit=0", "limit", "Input should be greater than or equal to 1"),
        ("?limit=201", "limit", "Input should be less than or equal to 200"),
        ("?cursor=x", "cursor", "not a cursor of ours"),
        ("?address=nobody", "address", "not an address on the channel ALL"),
        ("?address=a%00", "address", "must not contain NUL characters"),
    ],
)
def test_a_bad_query_is_refused_by_its_field(api, query, field, why):
    answer = api.call("GET", f"/suppressions{query}")
    expected = error("INVALID_PAYLOAD", f"{field}: {why}", (field, why))
    assert (answer.status_code, answer.json()) == (400, expected)
