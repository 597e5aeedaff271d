"""Entries: who, what and from where; their values apart, which an erasure removes."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from rme.core import ids
from rme.tenants import audit
from rme.tenants.audit import Action, Actor, AuditFilter
from rme.tenants.models import AuditEntry, AuditValues
from tests import factories

pytestmark = pytest.mark.django_db
OLGA = Actor(7, "olga", 8, "sam", "192.0.2.1", "5f2e", "Firefox")


def lines(**wanted):
    found, _ = audit.find(AuditFilter("acme", **wanted), limit=50)
    return found


def test_entry_has_actor_object_changes_and_origin(org):
    ada = factories.contact(org)
    changes = {"email": ["a@x.example", "b@x.example"]}
    audit.record(OLGA, [audit.about(ada, Action.CHANGED, changes=changes, reason="asked to")])
    (row,) = AuditEntry.objects.values()
    assert row == {
        "id": row["id"],
        "organization_id": "acme",
        "at": row["at"],
        "actor_id": 7,
        "actor_name": "olga",
        "acting_as_id": 8,
        "acting_as_name": "sam",
        "action": "CHANGED",
        "kind": "crm.contact",
        "object_id": str(ada.pk),
        "address": "192.0.2.1",
        "request_id": "5f2e",
        "user_agent": "Firefox",
        "digest": row["digest"],
    }
    (values,) = AuditValues.objects.values()
    assert values == {
        "entry_id": row["id"],
        "organization_id": "acme",
        "contact_id": str(ada.pk),
        "salt": values["salt"],
        "label": "Ada Lovelace",
        "text": "",
        "changes": [["email", "a@x.example", "b@x.example"]],
        "reason": "asked to",
    }
    assert (len(values["salt"]), len(row["digest"])) == (32, 64)


def test_invalid_characters_are_removed_and_long_values_truncated(org):
    actor = Actor(1, "o\0lga", user_agent="\ud800" + "x" * 300)
    changes = {"name": ["\0a", "\udcff" + "b" * 600]}
    audit.record(actor, [audit.about(org, Action.CHANGED, changes=changes, reason="r" * 600)])
    (line,) = lines()
    assert (line.entry.actor_name, line.entry.user_agent) == ("olga", "?" + "x" * 199)
    assert line.values.changes == [["name", "a", "?" + "b" * 499]]
    assert (len(line.values.reason), line.is_altered) == (500, False)


def test_an_erasure_removes_the_values_of_one_person_and_no_entry(org):
    ada, bob = factories.contacts(org, 2)
    other = factories.organization("other")
    for row in (ada, bob):
        audit.record(OLGA, [audit.about(row, Action.CHANGED, changes={"zone": ["", "UTC"]})])
    elsewhere = audit.NewEntry(Action.EXPORTED, other.pk, text="x", contact_id=str(ada.pk))
    audit.record(OLGA, [elsewhere])
    assert audit.erase(org.pk, str(ada.pk)) == 1
    assert audit.erase(org.pk, "") == 0
    newest, oldest = lines()
    assert (newest.is_erased, newest.is_altered, newest.lines) == (False, False, ["zone: – → UTC"])
    assert (oldest.is_erased, oldest.is_altered, oldest.lines) == (True, False, [])
    assert (oldest.entry.object_id, len(oldest.entry.digest)) == (str(ada.pk), 64)
    assert AuditEntry.objects.count() == 3


@pytest.mark.parametrize(
    "change", ["label = 'x'", "reason = 'x'", "changes = '[]'", "text = 'x'", "salt = 'x'"]
)
def test_altered_values_are_detected(org, change):
    audit.record(OLGA, [audit.about(org, Action.CHANGED, changes={"zone": ["", "UTC"]})])
    assert [line.is_altered for line in lines()] == [False]
    table = AuditValues._meta.db_table
    with connection.cursor() as cursor:  # as a superuser of the database can
        cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER audit_append_only")
        cursor.execute(f"UPDATE {table} SET {change}")
    assert [line.is_altered for line in lines()] == [True]


@pytest.mark.parametrize("count", [1, 300])
def test_entries_are_one_statement(org, count):
    rows = factories.contacts(org, count)
    entries = [audit.about(each, Action.DELETED) for each in rows]
    with CaptureQueriesContext(connection) as captured:
        audit.record(OLGA, entries)
    assert (len(captured), AuditEntry.objects.count()) == (1, count)


def test_filters_combine(org):
    ada, bob = factories.contacts(org, 2)
    sam = Actor(9, "sam")
    audit.record(OLGA, [audit.about(ada, Action.CHANGED), audit.about(org, Action.EXPORTED)])
    audit.record(sam, [audit.about(bob, Action.DELETED)])
    audit.record(sam, [audit.NewEntry(Action.DELETED, "other"), audit.NewEntry(Action.DELETED)])
    key = {"ada": str(ada.pk), "bob": str(bob.pk), "org": "acme"}
    name = {value: each for each, value in key.items()}

    def found(**wanted):
        return [name[line.entry.object_id] for line in lines(**wanted)]

    assert found() == ["bob", "org", "ada"]
    assert found(person="sam") == ["bob", "org", "ada"]  # who acted, and whom somebody acted as
    assert found(person="olga") == ["org", "ada"]
    assert found(action="DELETED") == ["bob"]
    assert found(kind="crm.contact") == ["bob", "ada"]
    assert found(object=key["ada"]) == ["ada"]
    assert found(object="acm") == ["org"]  # the label is "Acme"
    assert found(object="acm", action="DELETED") == []
    ends = AuditEntry.objects.order_by("pk")
    second, third = (ids.moment(ends[n].pk) for n in (1, 2))
    assert set(found(since=third)) <= {"bob", "org", "ada"}
    assert found(until=second.replace(year=2020)) == []
    deployment, _ = audit.find(AuditFilter(None), limit=5)
    assert [line.entry.organization_id for line in deployment] == [None]


def test_pages_follow_each_other_without_a_gap(org):
    rows = factories.contacts(org, 5)
    for each in rows:
        audit.record(OLGA, [audit.about(each, Action.CHANGED)])
    found, before, sizes = [], None, []
    while True:
        page, before = audit.find(AuditFilter("acme"), before=before, limit=2)
        sizes.append(len(page))
        found += [line.entry.object_id for line in page]
        if before is None:
            break
    assert sizes == [2, 2, 1]
    assert found == [str(each.pk) for each in rows[::-1]]
