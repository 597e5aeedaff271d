"""The calls for suppressions: adding one and many, querying, and lifting what may be lifted."""

from datetime import timedelta

import hypothesis
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from messaging.models import Suppression
from rme.core.clock import iso
from tests import factories
from tests.messaging.test_openapi import EFFORT, JSON
from tests.rest import Api, error, message

NO_ENTRY = "01a1fb37-a4a4-7470-9fc2-6927566e64b5"
pytestmark = pytest.mark.django_db

UNKNOWN = error("NOT_FOUND", "There is no such suppression.")
ADA = {"channel": "EMAIL", "address": "ada@example.com"}


def add(api, **fields):
    return api.call("POST", "/suppressions", {**ADA, **fields})


def add_many(api, *entries):
    return api.call("POST", "/suppressions", {"entries": list(entries)})


def listed(api, query=""):
    return api.call("GET", f"/suppressions{query}").json()


def lift(api, query):
    return api.call("DELETE", f"/suppressions{query}")


def row(org, **fields):
    return Suppression.objects.create(
        organization=org,
        **{"channel": "EMAIL", "address": "ada@example.com", "reason": "MANUAL", **fields},
    )


def shown(entry, **fields):
    """Write an entry's whole body."""
    body = {
        "id": str(entry.pk), "channel": "EMAIL", "address": "ada@example.com", "contactId": None,
        "reason": "MANUAL", "note": None, "source": "API", "createdAt": iso(entry.created_at),
        "expiresAt": None,
    }  # fmt: skip
    return {**body, **fields}


# --- adding one ---------------------------------------------------------------------------------
def test_an_entry_is_added_in_its_normal_form(api):
    answer = add(
        api, channel="email", address=" Ada@BÜCHER.example ", reason="hard_bounce", note="by hand",
        expiresAt="2099-01-01T01:00:00+01:00",
    )  # fmt: skip
    assert (answer.status_code, answer.json()) == (
        201,
        shown(
            Suppression.objects.get(), address="ada@xn--bcher-kva.example", reason="HARD_BOUNCE",
            note="by hand", expiresAt="2099-01-01T00:00:00Z",
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"channel": "SMS", "address": "(212) 736-5000"}, {"address": "+12127365000"}),
        ({"channel": "ALL", "address": "Ada@Example.com"}, {"address": "ada@example.com"}),
        ({"channel": "ALL", "address": "212-736-5000"}, {"address": "+12127365000"}),
        ({"channel": "PUSH", "contactId": "c1"}, {"address": None, "contactId": "c1"}),
        ({"channel": "ALL", "contactId": "c1"}, {"address": None, "contactId": "c1"}),
    ],
)
def test_what_an_entry_may_name(api, given, kept):
    answer = api.call("POST", "/suppressions", given)
    expected = shown(Suppression.objects.get(), channel=given["channel"], **kept)
    assert (answer.status_code, answer.json()) == (201, expected)


def test_a_phone_number_is_read_in_the_organizations_region(db):
    api = Api(factories.organization("swiss", region="CH"))
    answer = add(api, channel="SMS", address="079 123 45 67")
    assert answer.json()["address"] == "+41791234567"


def test_an_entry_that_is_there_stays_as_it_is(api, org):
    entry = row(org, note="first", source="ADMIN")
    answer = add(api, address="ADA@example.com", note="second", expiresAt="2099-01-01T00:00:00Z")
    expected = shown(entry, note="first", source="ADMIN")
    assert (answer.status_code, answer.json()) == (200, expected)


ORDER = ["COMPLAINT", "STOP", "HARD_BOUNCE", "MANUAL"]


@pytest.mark.parametrize("there", ORDER)
@pytest.mark.parametrize("given", ORDER)
def test_a_stronger_reason_replaces_a_weaker_one(api, org, there, given):
    entry = row(org, reason=there, source="ADMIN")
    answer = add(api, reason=given)
    expected = (
        shown(entry, reason=given)
        if ORDER.index(given) < ORDER.index(there)
        else shown(entry, reason=there, source="ADMIN")
    )
    assert (answer.status_code, answer.json()) == (200, expected)


@pytest.mark.parametrize(
    ("there", "given", "kept"),
    [(9, None, None), (None, 9, None), (9, 5, 9), (5, 9, 9)],
)
def test_a_stronger_reason_never_shortens_an_entry(api, org, there, given, kept):
    def at(days):
        return None if days is None else timezone.now().replace(microsecond=0) + timedelta(days)

    until = {days: at(days) for days in (None, 5, 9)}
    entry = row(org, expires_at=until[there], note="why")
    answer = add(api, reason="COMPLAINT", expiresAt=iso(until[given]))
    expected = shown(entry, reason="COMPLAINT", note="why", expiresAt=iso(until[kept]))
    assert (answer.status_code, answer.json()) == (200, expected)


def test_an_expired_entry_does_not_count_as_there(api, org):
    old = row(org, reason="COMPLAINT", note="old", expires_at=timezone.now() - timedelta(1))
    assert listed(api) == {"suppressions": [], "nextCursor": None}
    for query in (f"/{old.pk}", f"?id={old.pk}", "?channel=EMAIL&address=ada@example.com"):
        answer = lift(api, query)
        assert (answer.status_code, answer.json()) == (404, UNKNOWN)
    answer = add(api)
    entry = Suppression.objects.get()
    assert (answer.status_code, answer.json()) == (201, shown(entry))
    assert entry.pk != old.pk
    assert entry.created_at > old.created_at


BAD = [
    ({"address": "nobody"}, "address", "not an address on the channel EMAIL"),
    ({"channel": "PUSH"}, "address", "not an address on the channel PUSH"),
    ({"channel": "SMS"}, "address", "not an address on the channel SMS"),
    ({"address": None}, "address", "give exactly one of address and contactId"),
    ({"contactId": "c1"}, "address", "give exactly one of address and contactId"),
    ({"channel": "FAX"}, "channel", "Input should be 'EMAIL', 'SMS', 'PUSH' or 'ALL'"),
    ({"address": 7}, "address", "must be a string"),
    ({"address": ""}, "address", "String should have at least 1 character"),
    ({"note": "x" * 501}, "note", "String should have at most 500 characters"),
    ({"note": "a\nb"}, "note", "must not contain control characters"),
    ({"note": "a\x00b"}, "note", "must not contain NUL characters"),
    ({"source": "ADMIN"}, "source", "unknown field"),
    (
        {"expiresAt": "2020-01-01T00:00:00Z"},
        "expiresAt",
        "must be ahead, by less than 100 years",
    ),
    (
        {"expiresAt": "9999-12-31T23:59:59-23:59"},
        "expiresAt",
        "must be ahead, by less than 100 years",
    ),
    (
        {"expiresAt": "tomorrow"},
        "expiresAt",
        "must be an ISO 8601 time with offset, like …T09:30:00Z",
    ),
]


@pytest.mark.parametrize(("fields", "field", "why"), BAD)
def test_a_bad_entry_is_refused_by_its_field(api, fields, field, why):
    answer = add(api, **fields)
    expected = error("INVALID_PAYLOAD", f"{field}: {why}", (field, why))
    assert (answer.status_code, answer.json()) == (400, expected)
    assert not Suppression.objects.exists()


def test_what_is_added_is_not_written_to(api, org):
    ada = factories.contact(org)
    add(api, address=ada.email)
    refused = api.send(message(ada))
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "SUPPRESSED")
    lift(api, f"?channel=EMAIL&address={ada.email}")
    assert api.send(message(ada)).status_code == 202


# --- adding many --------------------------------------------------------------------------------
def test_many_are_answered_one_by_one_in_order(api, org):
    there = row(org, address="there@example.com", reason="STOP")
    answer = add_many(
        api,
        {**ADA, "reason": "MANUAL", "note": "first"},
        {**ADA, "address": "nobody"},
        {"channel": "EMAIL", "address": "there@example.com"},
        {**ADA, "reason": "COMPLAINT"},
        "nonsense",
        {"channel": "PUSH", "contactId": "c1"},
    )
    ada = Suppression.objects.get(address="ada@example.com")
    push = Suppression.objects.get(contact_id="c1")
    one = {"entry": shown(ada, reason="COMPLAINT", note="first")}
    why = "not an address on the channel EMAIL"
    assert (answer.status_code, answer.json()) == (
        201,
        {
            "accepted": 4,
            "rejected": 2,
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
                {
                    "index": 5,
                    "entry": shown(push, channel="PUSH", address=None, contactId="c1"),
                },
            ],
        },
    )


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


def test_an_envelope_holds_nothing_else(api):
    answer = api.call("POST", "/suppressions", {"entries": [ADA], "channel": "EMAIL"})
    expected = error("INVALID_PAYLOAD", "channel: unknown field", ("channel", "unknown field"))
    assert (answer.status_code, answer.json()) == (400, expected)


def entries(count):
    return [{"channel": "EMAIL", "address": f"p{i}@example.com"} for i in range(count)]


@pytest.mark.parametrize("count", [1, 50, 500])
def test_adding_many_asks_as_often_as_adding_one(api, count):
    listed(api)  # the token and the clock are known from here on
    found = []
    for _ in range(2):  # new ones, and ones that are there
        with CaptureQueriesContext(connection) as captured:
            assert add_many(api, *entries(count)).json()["accepted"] == count
        found.append(len(captured))
    assert found == [5, 5]  # a savepoint, the lock, two statements, and its release
    assert Suppression.objects.count() == count


@pytest.mark.parametrize("count", [1, 50, 200])
def test_a_page_asks_as_often_for_more_rows(api, count):
    add_many(api, *entries(count))
    with CaptureQueriesContext(connection) as captured:
        assert len(listed(api, "?limit=200")["suppressions"]) == count
    assert len(captured) == 1


# --- querying -----------------------------------------------------------------------------------
def test_the_newest_come_first_page_by_page(api):
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


# --- lifting ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "query",
    ["/{0.pk}", "?id={0.pk}", "?channel=email&address=Ada@example.com"],
)
def test_an_entry_is_lifted(api, org, query):
    entry, other = row(org), row(org, channel="ALL")
    answer = lift(api, query.format(entry))
    assert (answer.status_code, answer.content) == (204, b"")
    assert "Content-Type" not in answer.headers
    assert Suppression.objects.get() == other
    again = lift(api, query.format(entry))
    assert (again.status_code, again.json()) == (404, UNKNOWN)


def test_a_contacts_entry_is_lifted(api, org):
    row(org, channel="ALL", address="", contact_id="c1")
    assert lift(api, "?channel=PUSH&contactId=c1").status_code == 404
    assert lift(api, "?channel=ALL&contactId=c1").status_code == 204
    assert not Suppression.objects.exists()


@pytest.mark.parametrize("reason", ["COMPLAINT", "STOP"])
def test_the_recipients_own_word_stays(api, org, reason):
    entry = row(org, reason=reason)
    text = "Only the recipient or an admin may lift this suppression."
    for query in (f"/{entry.pk}", f"?id={entry.pk}", "?channel=EMAIL&address=ada@example.com"):
        answer = lift(api, query)
        assert (answer.status_code, answer.json()) == (409, error("SUPPRESSION_PROTECTED", text))
    assert Suppression.objects.get() == entry


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?channel=EMAIL",
        "?address=ada@example.com",
        "?contactId=c1",
        "?channel=EMAIL&address=ada@example.com&contactId=c1",
        f"?id={NO_ENTRY}&channel=EMAIL",
    ],
)
def test_nothing_ever_lifts_them_all(api, org, query):
    row(org)
    why = "give id, or channel with one of address and contactId"
    answer = lift(api, query)
    expected = error("INVALID_PAYLOAD", f"id: {why}", ("id", why))
    assert (answer.status_code, answer.json()) == (400, expected)
    assert Suppression.objects.count() == 1


@pytest.mark.parametrize("query", ["/nonsense", "?id=nonsense", f"/{NO_ENTRY}", "/a%00b"])
def test_an_unknown_id_is_not_found(api, query):
    answer = lift(api, query)
    assert (answer.status_code, answer.json()) == (404, UNKNOWN)


# --- another organization -----------------------------------------------------------------------
def test_another_organizations_entries_are_not_there(api, org):
    other = factories.organization("other")
    theirs = [
        row(other),
        row(other, address="", contact_id="c1"),
        row(other, address="stop@example.com", reason="STOP"),
    ]
    before = list(Suppression.objects.order_by("pk").values())
    for query in ("", "?address=ada@example.com", "?contactId=c1", "?reason=STOP"):
        assert listed(api, query) == {"suppressions": [], "nextCursor": None}
    for entry in theirs:
        for query in (f"/{entry.pk}", f"?id={entry.pk}"):
            answer = lift(api, query)
            assert (answer.status_code, answer.json()) == (404, UNKNOWN)
    for query in ("?channel=EMAIL&address=ada@example.com", "?channel=EMAIL&contactId=c1"):
        assert lift(api, query).status_code == 404
    answer = add(api, reason="COMPLAINT")
    own = Suppression.objects.get(organization=org)
    assert (answer.status_code, answer.json()) == (201, shown(own, reason="COMPLAINT"))
    assert list(Suppression.objects.filter(organization=other).order_by("pk").values()) == before


# --- anything -----------------------------------------------------------------------------------
FIELDS = ["channel", "address", "contactId", "reason", "note", "expiresAt", "entries", "anything"]


@EFFORT
@hypothesis.given(
    name=hypothesis.strategies.sampled_from(FIELDS),
    value=JSON,
    many=hypothesis.strategies.booleans(),
)
def test_any_value_in_any_field_is_an_answer_that_names_it(db, name, value, many):
    from rme.tenants.models import Organization

    found = Organization.objects.filter(pk="acme").first()
    api = Api(found or factories.organization())
    body = {**ADA, name: value}
    answer = add_many(api, body) if many else api.call("POST", "/suppressions", body)
    assert answer.status_code in (200, 201, 400), answer.json()
    if answer.status_code == 400:
        assert answer.json()["error"]["details"], answer.json()
