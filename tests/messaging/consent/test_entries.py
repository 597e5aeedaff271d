"""POST and GET /consent: entries, bulks, filters, and statements that do not grow."""

from datetime import UTC, datetime, timedelta

import pytest

from messaging.models import Category, ConsentEntry
from rme.core.db import clock
from tests import factories
from tests.rest import REQUEST_ID, Api, error

pytestmark = pytest.mark.django_db


def entry(person, **fields):
    body = {
        "contactId": str(person.pk),
        "channel": "EMAIL",
        "category": "MARKETING",
        "status": "OPTED_IN",
        **fields,
    }
    return {name: value for name, value in body.items() if value is not None}


def record(api, body):
    return api.call("POST", "/consent", body)


def listed(api, query=""):
    return api.call("GET", f"/consent{query}").json()


@pytest.mark.promise("calls-6", "consent-3", "consent-7")
def test_single_entry_is_answered_and_stored(api, org):
    person = factories.contact(org)
    given = entry(
        person,
        status="opted_in",
        channel="email",
        occurredAt="2026-01-02T03:04:05.678+01:00",
        evidence={"form": "footer", "ip": "192.0.2.7"},
    )
    response = record(api, given)
    row = ConsentEntry.objects.get()
    assert response.status_code == 201
    assert response.json() == {
        "id": str(row.pk),
        "contactId": str(person.pk),
        "channel": "EMAIL",
        "category": "MARKETING",
        "status": "OPTED_IN",
        "source": "API",
        "occurredAt": "2026-01-02T02:04:05.678Z",
        "recordedAt": clock.iso(row.recorded_at),
    }
    assert row.evidence == {"form": "footer", "ip": "192.0.2.7"}
    assert row.recorded_by == f"application {api.application.pk}"
    assert listed(api) == {"consent": [response.json()], "nextCursor": None}


def test_a_source_may_be_stated(api, org):
    response = record(api, entry(factories.contact(org), source="import"))
    assert response.json()["source"] == "IMPORT"


def test_entry_without_a_time_happens_now_and_the_later_call_counts(api, org):
    person = factories.contact(org)
    for status in ("OPTED_IN", "OPTED_OUT", "OPTED_IN"):
        last = record(api, entry(person, status=status)).json()
        assert last["occurredAt"] == last["recordedAt"]
    assert listed(api)["consent"] == [last]


def test_a_time_a_little_ahead_counts_as_now(api, org):
    soon = (clock.now() + timedelta(seconds=40)).isoformat()
    made = record(api, entry(factories.contact(org), occurredAt=soon)).json()
    assert made["occurredAt"] == made["recordedAt"]


@pytest.mark.promise("consent-9")
@pytest.mark.parametrize(
    ("fields", "field", "why"),
    [
        (
            {"category": "GONE"},
            "category",
            "no such category: GONE (there are ALL, MARKETING, TRANSACTIONAL)",
        ),
        ({"channel": "FAX"}, "channel", "Input should be 'EMAIL', 'SMS', 'PUSH' or 'ALL'"),
        ({"status": None}, "status", "is required"),
        ({"statuss": "OPTED_IN"}, "statuss", "unknown field"),
        ({"occurredAt": "yesterday"}, "occurredAt", None),
        ({"occurredAt": "2026-01-01T00:00:00"}, "occurredAt", None),
        ({"occurredAt": "0001-01-01T00:00:00+14:00"}, "occurredAt", "is out of range"),
        ({"occurredAt": "9999-12-31T23:59:59-14:00"}, "occurredAt", "lies in the future"),
        ({"evidence": {"n": 1}}, "evidence.n", "must be a string"),
        ({"evidence": {"n": "x" * 2001}}, "evidence.n", None),
        ({"evidence": {str(n): "x" for n in range(21)}}, "evidence", None),
        ({"evidence": {"n": "a\x00"}}, "evidence.n", "must not contain NUL characters"),
        ({"contactId": "a\x00"}, "contactId", "must not contain NUL characters"),
        ({"contactId": 7}, "contactId", "must be a string"),
    ],
)
def test_invalid_field_is_named(api, org, fields, field, why):
    response = record(api, entry(factories.contact(org), **fields))
    (detail,) = response.json()["error"]["details"]
    assert (response.status_code, detail["field"]) == (400, field)
    assert why in (None, detail["message"])
    assert not ConsentEntry.objects.exists()


def test_more_than_a_minute_ahead_is_refused(api, org):
    ahead = (clock.now() + timedelta(seconds=75)).isoformat()
    response = record(api, entry(factories.contact(org), occurredAt=ahead))
    text = "lies in the future"
    assert response.status_code == 400
    assert response.json() == error("INVALID_PAYLOAD", f"occurredAt: {text}", ("occurredAt", text))


@pytest.mark.parametrize("body", [None, [], "x", 7, {}, {"entries": {}}, {"entries": []}])
def test_body_that_is_neither_entry_nor_list_is_rejected(api, body):
    assert record(api, body).status_code == 400


@pytest.mark.promise("calls-3")
def test_an_unknown_contact_answers_like_another_organizations(api):
    stranger = factories.contact(factories.organization("other"))
    expected = error("NOT_FOUND", "contactId: no such contact", ("contactId", "no such contact"))
    for response in (
        record(api, entry(stranger)),
        record(api, entry(stranger, contactId="nobody")),
    ):
        assert (response.status_code, response.json()) == (404, expected)


@pytest.mark.promise("consent-8", "consent-10")
def test_many_are_answered_in_order_and_a_bad_one_fails_no_other(api, org):
    ada, bob = factories.contacts(org, 2)
    response = record(
        api,
        {
            "entries": [
                entry(ada),
                entry(ada, status="MAYBE"),
                "x",
                entry(bob, contactId="nobody"),
                entry(bob, status="OPTED_OUT", channel="ALL", category="all"),
            ]
        },
    )
    rows = ConsentEntry.objects.order_by("id")
    body = response.json()
    assert response.status_code == 201
    assert (body["accepted"], body["rejected"]) == (2, 3)
    assert [each["index"] for each in body["results"]] == [0, 1, 2, 3, 4]
    assert [body["results"][n]["entry"]["id"] for n in (0, 4)] == [str(row.pk) for row in rows]
    assert body["results"][4]["entry"]["category"] == "ALL"
    assert body["results"][3] == {
        "index": 3,
        **error("NOT_FOUND", "contactId: no such contact", ("contactId", "no such contact")),
    }
    refused = [body["results"][n]["error"] for n in (1, 2)]
    assert [each["details"][0]["field"] for each in refused] == ["status", "body"]
    assert {each["requestId"] for each in refused} == {REQUEST_ID}


@pytest.mark.promise("consent-8")
def test_501_entries_are_rejected(api, org):
    response = record(api, {"entries": [entry(factories.contact(org))] * 501})
    assert response.status_code == 400
    assert not ConsentEntry.objects.exists()


@pytest.mark.parametrize("count", [1, 40])
def test_statements_do_not_grow_with_the_entries(api, org, count, django_assert_num_queries):
    people = factories.contacts(org, count)
    record(api, entry(people[0]))  # caches: token, policy, clock
    # contacts; savepoint, lock, newest line, insert, release
    with django_assert_num_queries(6):
        record(api, {"entries": [entry(person) for person in people]})
    with django_assert_num_queries(1):
        assert len(listed(api)["consent"]) == count


@pytest.mark.promise("consent-11", "consent-12")
def test_the_present_entries_and_the_history(api, org):
    person = factories.contact(org)
    when = ["2026-01-01T00:00:00Z", "2026-03-01T00:00:00Z", "2026-02-01T00:00:00Z"]
    first, newest, late = (
        record(api, entry(person, status=status, occurredAt=at)).json()
        for status, at in zip(("OPTED_IN", "OPTED_OUT", "OPTED_IN"), when, strict=True)
    )
    assert listed(api)["consent"] == [newest]
    assert listed(api, "?history=false")["consent"] == [newest]
    assert listed(api, "?history=true")["consent"] == [late, newest, first]


def test_opt_out_wins_at_the_same_instant(api, org):
    person, at = factories.contact(org), "2026-01-01T00:00:00Z"
    out = record(api, entry(person, status="OPTED_OUT", occurredAt=at)).json()
    record(api, entry(person, occurredAt=at))
    assert listed(api)["consent"] == [out]


@pytest.mark.promise("consent-12")
def test_filters(api, org):
    Category.objects.create(organization=org, name="NEWS")
    ada, bob = factories.contacts(org, 2)
    mail = record(api, entry(ada)).json()
    sms = record(api, entry(ada, channel="SMS")).json()
    news = record(api, entry(bob, category="NEWS")).json()
    every = record(api, entry(bob, category="ALL", channel="ALL")).json()
    for query, expected in [
        ("", [every, news, sms, mail]),
        (f"?contactId={ada.pk}", [sms, mail]),
        ("?channel=email", [news, mail]),
        ("?channel=ALL", [every]),
        ("?category=NEWS", [news]),
        (f"?contactId={ada.pk}&channel=SMS&category=marketing&history=TRUE", [sms]),
        ("?contactId=nobody", []),
    ]:
        assert listed(api, query) == {"consent": expected, "nextCursor": None}, query


@pytest.mark.promise("consent-12")
@pytest.mark.parametrize("history", ["true", "false"])
def test_pages_are_stable_while_entries_arrive(api, org, history):
    people = factories.contacts(org, 7)
    made = [record(api, entry(person)).json() for person in people]
    first = listed(api, f"?limit=3&history={history}")
    record(api, entry(factories.contact(org)))
    second = listed(api, f"?limit=3&history={history}&cursor={first['nextCursor']}")
    third = listed(api, f"?limit=3&history={history}&cursor={second['nextCursor']}")
    assert first["consent"] + second["consent"] + third["consent"] == made[::-1]
    assert third["nextCursor"] is None


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("history=1", "history"),
        ("history=", "history"),
        ("channel=FAX", "channel"),
        ("category=a%20b", "category"),
        ("cursor=%ff", "cursor"),
        ("contactId=", "contactId"),
        ("contactId=%00", "contactId"),
        ("status=OPTED_IN", "status"),
    ],
)
def test_bad_filters_are_named(api, query, field):
    response = api.call("GET", f"/consent?{query}")
    assert response.status_code == 400
    assert [d["field"] for d in response.json()["error"]["details"]] == [field]


@pytest.mark.promise("calls-4")
def test_another_organization_sees_nothing(api, org):
    person = factories.contact(org)
    record(api, entry(person))
    stranger = Api(factories.organization("other"))
    for query in ("", f"?contactId={person.pk}", "?history=true"):
        assert listed(stranger, query) == {"consent": [], "nextCursor": None}


def test_recorded_opt_in_allows_sending(api, org):
    person = factories.contact(org)
    wanted = {
        "channel": "EMAIL",
        "category": "MARKETING",
        "to": [{"contactId": str(person.pk)}],
        "content": {"subject": "News", "text": "There is some."},
    }
    assert api.send(wanted).status_code == 403
    record(api, entry(person, occurredAt=datetime(2026, 1, 1, tzinfo=UTC).isoformat()))
    assert api.send(wanted).status_code == 202
