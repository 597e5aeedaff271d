"""Adding a suppression: its normal form, what is refused, and what a second entry changes."""

from datetime import timedelta

import hypothesis
import pytest
from django.utils import timezone

from messaging.models import Suppression
from rme.core.db.clock import iso
from tests import factories
from tests.any_value import EFFORT, JSON
from tests.messaging.consent.suppressions_scene import (
    ADA,
    UNKNOWN,
    add,
    add_many,
    lift,
    listed,
    row,
    shown,
)
from tests.rest import Api, error, message

pytestmark = pytest.mark.django_db


# --- adding one ---------------------------------------------------------------------------------
@pytest.mark.promise("suppressions-1", "suppressions-4")
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


@pytest.mark.promise("suppressions-1")
@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"channel": "SMS", "address": "(212) 736-5000"}, {"address": "+12127365000"}),
        ({"channel": "ALL", "address": "Ada@Example.com"}, {"address": "ada@example.com"}),
        ({"channel": "ALL", "address": "212-736-5000"}, {"address": "+12127365000"}),
    ],
)
def test_entry_is_stored_with_its_given_fields(api, given, kept):
    answer = api.call("POST", "/suppressions", given)
    expected = shown(Suppression.objects.get(), channel=given["channel"], **kept)
    assert (answer.status_code, answer.json()) == (201, expected)


@pytest.mark.parametrize("channel", ["EMAIL", "SMS", "PUSH", "ALL"])
def test_an_entry_may_name_a_contact(api, org, channel):
    ada = str(factories.contact(org).pk)
    answer = api.call("POST", "/suppressions", {"channel": channel, "contactId": ada})
    expected = shown(Suppression.objects.get(), channel=channel, address=None, contactId=ada)
    assert (answer.status_code, answer.json()) == (201, expected)


@pytest.mark.promise("suppressions-2")
def test_an_unknown_contact_is_not_found(api):
    """A mistyped id must not look like protection. Another organization's is as unknown."""
    theirs = str(factories.contact(factories.organization("other")).pk)
    for contact_id in (theirs, "01a1fb37-a4a4-7470-9fc2-6927566e64b5", "c1"):
        answer = api.call("POST", "/suppressions", {"channel": "ALL", "contactId": contact_id})
        why = "no such contact"
        expected = error("NOT_FOUND", f"contactId: {why}", ("contactId", why))
        assert (answer.status_code, answer.json()) == (404, expected)
    assert not Suppression.objects.exists()


@pytest.mark.promise("suppressions-4")
def test_a_phone_number_is_read_in_the_organizations_region(db):
    api = Api(factories.organization("swiss", region="CH"))
    answer = add(api, channel="SMS", address="079 123 45 67")
    assert answer.json()["address"] == "+41791234567"


@pytest.mark.promise("suppressions-8")
def test_existing_entry_stays_unchanged(api, org):
    entry = row(org, note="first", source="ADMIN")
    answer = add(api, address="ADA@example.com", note="second", expiresAt="2099-01-01T00:00:00Z")
    expected = shown(entry, note="first", source="ADMIN")
    assert (answer.status_code, answer.json()) == (200, expected)


ORDER = ["COMPLAINT", "STOP", "HARD_BOUNCE", "MANUAL"]


@pytest.mark.promise("suppressions-9")
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
    ("there", "given", "kept"), [(9, None, None), (None, 9, None), (9, 5, 9), (5, 9, 9)]
)
def test_a_stronger_reason_never_shortens_an_entry(api, org, there, given, kept):
    def at(days):
        return None if days is None else timezone.now().replace(microsecond=0) + timedelta(days)

    until = {days: at(days) for days in (None, 5, 9)}
    entry = row(org, expires_at=until[there], note="why")
    answer = add(api, reason="COMPLAINT", expiresAt=iso(until[given]))
    expected = shown(entry, reason="COMPLAINT", note="why", expiresAt=iso(until[kept]))
    assert (answer.status_code, answer.json()) == (200, expected)


@pytest.mark.promise("gates-5")
def test_expired_entry_counts_as_absent(api, org):
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
    ({"expiresAt": "2020-01-01T00:00:00Z"}, "expiresAt", "must be ahead, by less than 100 years"),
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


@pytest.mark.promise("calls-16")
@pytest.mark.parametrize(("fields", "field", "why"), BAD)
def test_a_bad_entry_is_refused_by_its_field(api, fields, field, why):
    answer = add(api, **fields)
    expected = error("INVALID_PAYLOAD", f"{field}: {why}", (field, why))
    assert (answer.status_code, answer.json()) == (400, expected)
    assert not Suppression.objects.exists()


def test_suppressed_address_is_not_sent_to(api, org):
    ada = factories.contact(org)
    add(api, address=ada.email)
    refused = api.send(message(ada))
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "SUPPRESSED")
    lift(api, f"?channel=EMAIL&address={ada.email}")
    assert api.send(message(ada)).status_code == 202


# --- anything -----------------------------------------------------------------------------------
FIELDS = ["channel", "address", "contactId", "reason", "note", "expiresAt", "entries", "anything"]


@pytest.mark.promise("calls-18")
@EFFORT
@hypothesis.given(
    name=hypothesis.strategies.sampled_from(FIELDS),
    value=JSON,
    many=hypothesis.strategies.booleans(),
)
def test_any_value_in_any_field_is_stored_or_rejected_with_details(db, name, value, many):
    from rme.tenants.models import Organization

    found = Organization.objects.filter(pk="acme").first()
    api = Api(found or factories.organization())
    body = {**ADA, name: value}
    answer = add_many(api, body) if many else api.call("POST", "/suppressions", body)
    assert answer.status_code in (200, 201, 400), answer.json()
    if answer.status_code == 400:
        assert answer.json()["error"]["details"], answer.json()
