"""Lifting suppressions: what may be lifted, and by whom."""

import pytest

from messaging.models import Suppression
from tests import factories
from tests.messaging.consent.suppressions_scene import UNKNOWN, add, lift, listed, row, shown
from tests.rest import error

NO_ENTRY = "01a1fb37-a4a4-7470-9fc2-6927566e64b5"
pytestmark = pytest.mark.django_db


# --- lifting ------------------------------------------------------------------------------------
@pytest.mark.promise("suppressions-10")
@pytest.mark.parametrize(
    "query", ["/{0.pk}", "?id={0.pk}", "?channel=email&address=Ada@example.com"]
)
def test_suppression_is_lifted(api, org, query):
    entry, other = row(org), row(org, channel="ALL")
    answer = lift(api, query.format(entry))
    assert (answer.status_code, answer.content) == (204, b"")
    assert "Content-Type" not in answer.headers
    assert Suppression.objects.get() == other
    again = lift(api, query.format(entry))
    assert (again.status_code, again.json()) == (404, UNKNOWN)


@pytest.mark.promise("suppressions-10")
def test_a_contacts_entry_is_lifted(api, org):
    row(org, channel="ALL", address="", contact_id="c1")
    assert lift(api, "?channel=PUSH&contactId=c1").status_code == 404
    assert lift(api, "?channel=ALL&contactId=c1").status_code == 204
    assert not Suppression.objects.exists()


@pytest.mark.promise("errors-15", "suppressions-12")
@pytest.mark.parametrize("reason", ["COMPLAINT", "STOP"])
def test_suppression_by_the_recipient_cannot_be_lifted(api, org, reason):
    entry = row(org, reason=reason)
    text = "Only the recipient or an admin may lift this suppression."
    for query in (f"/{entry.pk}", f"?id={entry.pk}", "?channel=EMAIL&address=ada@example.com"):
        answer = lift(api, query)
        assert (answer.status_code, answer.json()) == (409, error("SUPPRESSION_PROTECTED", text))
    assert Suppression.objects.get() == entry


@pytest.mark.promise("suppressions-11")
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
def test_lifting_without_id_or_address_is_rejected(api, org, query):
    row(org)
    why = "give id, or channel with one of address and contactId"
    answer = lift(api, query)
    expected = error("INVALID_PAYLOAD", f"id: {why}", ("id", why))
    assert (answer.status_code, answer.json()) == (400, expected)
    assert Suppression.objects.count() == 1


@pytest.mark.promise("errors-11", "suppressions-10")
@pytest.mark.parametrize("query", ["/nonsense", "?id=nonsense", f"/{NO_ENTRY}", "/a%00b"])
def test_an_unknown_id_is_not_found(api, query):
    answer = lift(api, query)
    assert (answer.status_code, answer.json()) == (404, UNKNOWN)


# --- another organization -----------------------------------------------------------------------
@pytest.mark.promise("calls-4")
def test_entries_of_another_organization_are_not_found(api, org):
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
