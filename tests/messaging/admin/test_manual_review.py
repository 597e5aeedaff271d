"""The page where a person decides what is held with an unknown outcome."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.models import Delivery
from rme.tenants.models import Membership
from tests import audited, factories
from tests.admin.scene import page, person
from tests.messaging.delivery.manual_review_scene import hold
from tests.rest import Api, message, work

pytestmark = pytest.mark.django_db
Role = Membership.Role
LIST = page(Delivery, "changelist")


def choose(rows, action, **fields):
    return {"action": action, "_selected_action": [str(row.pk) for row in rows], **fields}


def statuses(rows):
    kept = dict(Delivery.objects.values_list("pk", "status"))
    return [kept[row.pk] for row in rows]


def test_the_list_has_what_is_held_and_nothing_else(root, org, api):
    api.send(message(factories.contact(org)))
    work()
    (sent,) = Delivery.objects.all()
    (row,) = hold(api)
    shown = root.get(LIST).content.decode()
    assert page(Delivery, "change", row.pk) in shown
    assert page(Delivery, "change", sent.pk) not in shown


@pytest.mark.parametrize(
    ("action", "status", "expected"),
    [
        ("send_again", "ACCEPTED", b"recipients get them twice"),
        ("give_up", "FAILED", b"end as FAILED"),
    ],
)
def test_it_asks_for_a_reason_before_anything_happens(root, api, action, status, expected):
    rows = hold(api, 2)
    asked = root.post(LIST, choose(rows, action))
    assert expected in asked.content
    assert b"2 chosen deliveries" in asked.content
    assert root.post(LIST, choose(rows, action, reason=" ")).status_code == 200
    assert statuses(rows) == ["UNKNOWN", "UNKNOWN"]
    answer = root.post(LIST, choose(rows[:1], action, reason="the provider has none"), follow=True)
    assert b": 1." in answer.content
    assert statuses(rows) == [status, "UNKNOWN"]
    (line,) = audited.entries()
    assert (line.entry.actor_name, line.entry.object_id) == ("root", str(rows[0].pk))
    assert line.lines == [
        f"decision: held → {action.upper()}",
        "reason: the provider has none",
    ]
    history = root.get(page(Delivery, "history", rows[0].pk)).content
    assert b"the provider has none" in history


def test_only_owners_and_operators_decide(org, api):
    rows = hold(api)
    for role in (Role.VIEWER, Role.SUPPORT, Role.DEVELOPER):
        browser = person(role, org, role)
        listed = browser.get(LIST).content.decode()
        assert page(Delivery, "change", rows[0].pk) in listed
        assert 'value="give_up"' not in listed
        browser.post(LIST, choose(rows, "give_up", reason="x"))
        assert (role, statuses(rows)) == (role, ["UNKNOWN"])
    for role in (Role.OWNER, Role.OPERATOR):
        rows = hold(api)
        person(role, org, role).post(LIST, choose(rows, "give_up", reason="x"))
        assert (role, statuses(rows)) == (role, ["FAILED"])


def test_who_reads_in_one_organization_decides_in_its_own_alone(org, api):
    other = factories.organization("other")
    own, theirs = hold(api), hold(Api(other))
    strange = hold(Api(factories.organization("strange")))
    editor = person("editor", org, Role.OPERATOR)
    Membership.objects.create(user_id=editor.session["_auth_user_id"], organization=other,
                              role=Role.VIEWER)  # fmt: skip
    asked = editor.post(LIST, choose([*own, *theirs, *strange], "give_up"))
    assert b"1 chosen delivery" in asked.content
    editor.post(LIST, choose([*own, *theirs, *strange], "give_up", reason="x"))
    assert statuses([*own, *theirs, *strange]) == ["FAILED", "UNKNOWN", "UNKNOWN"]


def test_what_was_decided_meanwhile_is_left_alone(root, api):
    rows = hold(api, 2)
    root.post(LIST, choose(rows[:1], "give_up", reason="x"))
    answer = root.post(LIST, choose(rows, "send_again", reason="x"), follow=True).content
    assert b"Send again: 1." in answer
    assert b"1 were already decided" in answer
    assert statuses(rows) == ["FAILED", "ACCEPTED"]
    asked = root.post(LIST, choose(rows, "send_again"))
    assert b"none is on hold any more" in asked.content


def test_the_first_page_leads_there(root, org, api):
    hold(api)
    shown = root.get("/admin/").content.decode()
    assert f'href="{LIST}">Acme: 1 messages are on hold' in shown


def test_the_list_asks_no_more_for_more_rows(root, api):
    root.get(LIST)
    found = []
    for more in (3, 30):
        hold(api, more)
        with CaptureQueriesContext(connection) as captured:
            assert root.get(LIST).status_code == 200
        found.append(len(captured))
    assert found == [6, 6]
