"""Manual review: what is held is listed with its people, and decided with a reason."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.console.actions import bulk_actions
from messaging.delivery import manual_review
from messaging.delivery.manual_review import Decision
from messaging.models import BulkAction, Delivery, Event
from rme.tenants.audit import COMMAND_LINE
from rme.tenants.models import Membership
from tests import audited, factories
from tests.messaging.console.conftest import url
from tests.messaging.delivery.manual_review_scene import hold
from tests.rest import Api
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db
Role = Membership.Role
HELD = {"status": "HELD"}


def order(client, kind, organization_id="acme", **form):
    """Order a decision and return its page."""
    address = url("choose", kind).replace("/acme/", f"/{organization_id}/")
    return client.post(address, {**HELD, "why": "x", **form}, follow=True)


def statuses(rows):
    kept = dict(Delivery.objects.values_list("pk", "status"))
    return [kept[row.pk] for row in rows]


def test_first_page_links_to_the_list(root, org, api):
    hold(api)
    home = root.get("/admin/").content.decode()
    assert f'href="{url("messages")}?status=HELD"' in home
    assert "1 message has an unknown outcome. Review it." in home


def test_the_list_shows_people_and_no_ids(root, org, api):
    (row,) = hold(api)
    shown = root.get(f"{url('messages')}?status=HELD")
    (line,) = shown.context["lines"]
    assert (line.name, line.subject) == ("First0 Last0", "News")
    assert shown.context["offers"] == [
        ("send_again", "Resend"),
        ("give_up", "Give up"),
    ]
    for kind in ("send_again", "give_up"):
        ticked = root.get(f"{url('choose', kind)}?row={row.pk}")
        assert ticked.context["choice"].targets == [row.pk]


@pytest.mark.parametrize(
    ("kind", "status", "effect"),
    [
        ("send_again", "ACCEPTED", "their recipients get them twice"),
        ("give_up", "FAILED", "Give up 2 messages?"),
    ],
)
def test_decision_asks_for_a_reason_first(root, api, kind, status, effect):
    rows = hold(api, 2)
    asked = root.get(f"{url('choose', kind)}?status=HELD")
    assert asked.context["count"] == 2
    assert effect in asked.content.decode()
    assert b"name the recipient." in asked.content
    order(root, kind, why=" ")
    assert statuses(rows) == ["UNKNOWN", "UNKNOWN"]
    shown = order(root, kind, message=str(rows[0].message_id), why="the provider has none")
    assert (shown.context["action"].done, shown.context["action"].failed) == (1, 0)
    assert statuses(rows) == [status, "UNKNOWN"]
    decided = [each for each in audited.entries() if each.entry.action == "DECIDED"]
    assert [(each.entry.actor_name, each.entry.object_id, each.lines) for each in decided] == [
        ("root", str(rows[0].pk), [f"decision: held → {kind.upper()}",
                                   "reason: the provider has none"]),
    ]  # fmt: skip
    order(root, kind)
    assert statuses(rows) == [status, status]


def test_the_messages_page_has_the_decision(root, api):
    (row,) = hold(api)
    page = url("message", row.message_id)
    shown = root.get(page).content.decode()
    for kind in ("send_again", "give_up"):
        assert f'action="{url("choose", kind)}"' in shown
    order(root, "give_up", message=str(row.message_id), why="no answer for a week")
    shown = root.get(page).content.decode()
    assert url("choose", "give_up") not in shown
    assert "no answer for a week" in shown


@pytest.mark.promise("routes-3")
def test_only_owners_and_operators_decide(org, api):
    rows = hold(api)
    for role in (Role.VIEWER, Role.SUPPORT, Role.DEVELOPER):
        client = person(role, org, role)
        listed = client.get(f"{url('messages')}?status=HELD")
        assert [line.row.id for line in listed.context["lines"]] == [rows[0].pk]
        assert "give_up" not in listed.content.decode()
        assert "give_up" not in client.get(url("message", rows[0].message_id)).content.decode()
        assert order(client, "give_up").status_code == 403
        assert (role, statuses(rows)) == (role, ["UNKNOWN"])
    for role in (Role.OWNER, Role.OPERATOR):
        rows = hold(api)
        order(person(role, org, role), "give_up")
        assert statuses(rows) == ["FAILED"]


def test_viewer_of_another_organization_cannot_decide_there(org, api):
    other = factories.organization("other")
    own, theirs = hold(api), hold(Api(other))
    editor = person("editor", org, Role.OPERATOR)
    Membership.objects.create(user_id=editor.session["_auth_user_id"], organization=other,
                              role=Role.VIEWER)  # fmt: skip
    assert order(editor, "give_up", "other").status_code == 403
    order(editor, "give_up", message=str(theirs[0].message_id))
    assert statuses([*own, *theirs]) == ["UNKNOWN", "UNKNOWN"]
    order(editor, "give_up")
    assert statuses([*own, *theirs]) == ["FAILED", "UNKNOWN"]


def test_message_decided_by_someone_else_is_skipped_and_named(root, org, api):
    rows = hold(api, 2)
    action = BulkAction.objects.create(
        organization=org, kind="SEND_AGAIN", scope="all", reason="x", total=2,
        targets=[row.pk for row in rows], started_by="root", user_id=1,
    )  # fmt: skip
    first = {rows[0].pk}
    decided = manual_review.decide("acme", first, Decision.GIVE_UP, reason="x", actor=COMMAND_LINE)
    assert decided == first
    bulk_actions.run_slice(action.pk)
    action.refresh_from_db()
    assert (action.done, action.failed) == (1, 1)
    assert action.problems == [[str(rows[0].pk), "no longer in manual review"]]
    assert statuses(rows) == ["FAILED", "ACCEPTED"]


def test_repeated_slice_decides_nothing_twice_and_reports_no_problem(root, org, api):
    rows = hold(api, 2)
    action = order(root, "give_up").context["action"]
    BulkAction.objects.filter(pk=action.pk).update(state="RUNNING", done=0, failed=0)
    bulk_actions.run_slice(action.pk)
    action.refresh_from_db()
    assert (action.state, action.done, action.failed) == ("DONE", 2, 0)
    assert Event.objects.filter(detail__decision="GIVE_UP").count() == 2
    assert statuses(rows) == ["FAILED", "FAILED"]


def test_filter_of_another_status_decides_nothing(root, api):
    rows = hold(api)
    assert order(root, "give_up", status="FAILED").context["count"] == 0
    assert order(root, "give_up", channel="SMS").context["count"] == 0
    assert statuses(rows) == ["UNKNOWN"]


def test_statements_do_not_grow_with_the_decisions(root, api):
    hold(api)
    order(root, "give_up")  # what is read once for all
    found = []
    for more in (2, 20):
        hold(api, more)
        with CaptureQueriesContext(connection) as captured:
            order(root, "give_up")
        found.append(len(captured))
    assert found == [26, 26]
