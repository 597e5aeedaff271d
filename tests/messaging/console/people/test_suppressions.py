"""Suppressions in the console: the list, adding, changing and lifting."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.consent import suppressions
from messaging.consent.suppressions import NewSuppression, suppress
from messaging.models import Suppression
from rme.core.cache import TtlCache
from rme.core.db import clock
from rme.tenants.models import Membership
from tests import audited, factories
from tests.messaging.console.conftest import url
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db
NEW = url("suppression_new")


def form(**fields):
    return {"channel": "EMAIL", "address": "Ada@EXAMPLE.com", "reason": "STOP", **fields}


def errors_of(client, **fields):
    """Post the form of a new suppression; return its errors, and check that it kept its values."""
    data = form(**fields)
    bound = client.post(NEW, data).context["form"]
    assert {name: bound[name].value() for name in data} == data
    return {name: list(texts) for name, texts in bound.errors.items()}


@pytest.mark.parametrize(
    ("channel", "typed", "kept"),
    [
        ("EMAIL", "Ada@EXAMPLE.com", "ada@example.com"),
        ("SMS", "(212) 736-5000", "+12127365000"),
        ("ALL", "Ada@EXAMPLE.com", "ada@example.com"),
    ],
)
def test_addresses_are_normalised(root, org, channel, typed, kept):
    answer = root.post(NEW, form(channel=channel, address=typed, note="by phone"))
    row = Suppression.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, url("suppression", row.pk))
    assert (row.address, row.source, row.note) == (kept, "ADMIN", "by phone")
    assert audited.summaries() == [("root", "ADDED", "")]
    lines = audited.lines(action="ADDED")
    assert {f"address: – → {kept}", "reason: – → STOP", "note: – → by phone"} <= {*lines}


EITHER = {"__all__": ["Enter either an address or a person."]}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"address": "nobody"}, {"address": ["This isn't an address of that channel."]}),
        (
            {"channel": "SMS", "address": "079 123 45 67"},
            {"address": ["This isn't an address of that channel."]},
        ),
        ({"address": ""}, EITHER),
        ({"contact": "ada@simulator.rme.test"}, EITHER),
        ({"channel": ""}, {"channel": ["This field is required."]}),
        (
            {"expires_at": "2020-01-01T00:00"},
            {"expires_at": ["Choose a time in the future."]},
        ),
    ],
)
def test_invalid_suppression_is_an_error_at_its_field(root, org, fields, expected):
    factories.contact(org)
    assert errors_of(root, **fields) == expected
    assert not Suppression.objects.exists()


@pytest.mark.promise("suppressions-2")
def test_contact_is_found_as_it_is_typed(root, org):
    theirs = factories.contact(factories.organization("other"), email="theirs@x.example")
    ours = factories.contact(org)
    twins = [factories.contact(org, last_name="Twin", email="") for _ in range(2)]
    nobody = {"contact": ["No contact found. Try the email address or the id."]}
    for typed in (str(theirs.pk), "theirs@x.example", "nobody"):
        assert errors_of(root, address="", contact=typed) == nobody
    several = {"contact": ["Several contacts match. Type the id of one."]}
    assert errors_of(root, address="", contact="Twin") == several
    for typed, contact in ((ours.email, ours), (str(twins[0].pk), twins[0])):
        TtlCache.clear_all()
        assert root.post(NEW, form(address="", contact=typed)).status_code == 302
        assert Suppression.objects.latest("pk").contact_id == str(contact.pk)
    shown = root.get(f"{NEW}?contact={ours.pk}").context["form"]
    assert shown["contact"].value() == str(ours.pk)


def test_an_address_is_listed_once(root, org):
    root.post(NEW, form())
    again = root.post(NEW, form(), follow=True)
    assert "This is already on the list." in again.content.decode()
    assert Suppression.objects.count() == 1


@pytest.fixture
def listed(org):
    """Return suppressions by a name: of a contact, of its address, and of a stranger."""
    ada, theirs = factories.contact(org), factories.organization("other")
    suppress(
        [
            NewSuppression(org.pk, "PUSH", "", "MANUAL", "ADMIN", contact_id=str(ada.pk)),
            NewSuppression(org.pk, "EMAIL", ada.email, "HARD_BOUNCE", "PROVIDER"),
            NewSuppression(org.pk, "SMS", "+12127365000", "STOP", "SMS_KEYWORD", note="x"),
            NewSuppression(
                *(org.pk, "SMS", "+12127365001", "STOP", "API"),
                expires_at=clock.now() - timedelta(days=1),
            ),
            NewSuppression(theirs.pk, "SMS", "+12127365000", "STOP", "API"),
        ]
    )
    return {row.channel: row for row in suppressions.current(org.pk)}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, {"Ada Lovelace", "ada@simulator.rme.test", "+12127365000"}),
        ({"recipient": "Lovelace"}, {"Ada Lovelace", "ada@simulator.rme.test"}),
        ({"recipient": "212 736 5000"}, {"+12127365000"}),
        ({"recipient": "736500"}, {"+12127365000"}),
        ({"recipient": "nobody"}, set()),
        ({"channel": "SMS"}, {"+12127365000"}),
        ({"reason": "HARD_BOUNCE"}, {"ada@simulator.rme.test"}),
        ({"source": "ADMIN"}, {"Ada Lovelace"}),
        ({"source": "ADMIN", "channel": "SMS"}, set()),
        ({"channel": "FAX"}, {"Ada Lovelace", "ada@simulator.rme.test", "+12127365000"}),
    ],
)
def test_list_is_filtered(root, org, listed, query, expected):
    lines = root.get(url("suppressions"), query).context["lines"]
    assert {line["whom"] for line in lines} == expected


def test_list_is_paged_with_as_many_statements_for_many(root, org):
    root.get(url("suppressions"))  # the session keeps the organization
    contacts = factories.contacts(org, 60)
    counts, shown = [], []
    for several in (contacts[:5], contacts[5:]):
        suppress(
            [NewSuppression(org.pk, "SMS", "", "STOP", "API", contact_id=str(each.pk))
             for each in several]
        )  # fmt: skip
        TtlCache.clear_all()
        with CaptureQueriesContext(connection) as captured:
            first = root.get(url("suppressions"))
        counts.append(len(captured))
        shown.append(len(first.context["lines"]))
    assert shown == [5, 50]
    assert counts[0] == counts[1]
    second = root.get(url("suppressions"), {"after": str(first.context["following"])})
    assert (len(second.context["lines"]), second.context["following"]) == (10, None)


@pytest.mark.promise("suppressions-13")
@pytest.mark.parametrize("reason", ["COMPLAINT", "STOP"])
def test_suppression_by_the_recipient_is_lifted_only_with_a_reason(root, org, reason):
    row = Suppression.objects.create(
        organization=org, channel="EMAIL", address="a@b.example", reason=reason
    )
    lift = url("lift", row.pk)
    assert lift in root.get(url("suppression", row.pk)).content.decode()
    assert root.post(lift, {"why": "  "}).status_code == 200
    changes = {"note": "n", "expires_at": "2999-01-01T00:00"}
    assert root.post(url("suppression", row.pk), changes).status_code == 302
    row.refresh_from_db()
    assert (row.note, row.expires_at) == ("n", None)
    assert root.post(lift, {"why": "asked by phone"})["Location"] == url("suppressions")
    assert not Suppression.objects.exists()
    assert "reason: asked by phone" in audited.lines()


def test_manual_suppression_is_lifted_only_with_a_reason_too(root, org):
    row = Suppression.objects.create(
        organization=org, channel="EMAIL", address="a@b.example", reason="MANUAL"
    )
    refused = root.post(url("lift", row.pk), {"why": "  "})
    assert refused.context["form"].errors == {"why": ["This field is required."]}
    assert Suppression.objects.exists()


def test_note_and_expiry_are_changed_and_audited(root, org):
    row = Suppression.objects.create(
        organization=org, channel="EMAIL", address="a@b.example", reason="MANUAL"
    )
    page = url("suppression", row.pk)
    past = root.post(page, {"note": "n", "expires_at": "2020-01-01T00:00"})
    assert past.context["form"].errors == {"expires_at": ["Choose a time in the future."]}
    root.post(page, {"note": "n", "expires_at": "2999-01-01T00:00"})
    row.refresh_from_db()
    assert (row.note, row.expires_at.year) == ("n", 2999)
    assert [each.entry.action for each in audited.entries()] == ["CHANGED"]
    assert "note: – → n" in audited.lines(action="CHANGED")


def test_only_people_who_may_see_and_change_contacts_do(org, listed):
    row = listed["SMS"]
    found = {}
    for role in Membership.Role.values:
        client = person(role, org, role)
        pages = [url("suppressions"), url("suppression", row.pk), NEW]
        found[role] = [client.get(each).status_code for each in pages]
        if role not in ("OWNER", "OPERATOR"):
            found[role].append(client.post(url("suppression", row.pk), {"note": "x"}).status_code)
    others = ("SUPPORT", "TEMPLATE_EDITOR", "APPROVER", "DEVELOPER")
    assert found == {
        "OWNER": [200, 200, 200],
        "OPERATOR": [200, 200, 200],
        "VIEWER": [200, 200, 404, 403],
        **{role: [404, 404, 404, 404] for role in others},
    }
