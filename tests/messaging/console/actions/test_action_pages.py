"""Actions on what a filter matches: the number first, then a reason, then slices of work."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.console.actions import bulk_actions, tasks
from messaging.models import (
    BulkAction,
    Delivery,
    Event,
    Message,
    MessageContent,
    Pause,
    SenderDomain,
    Suppression,
)
from rme.core import ids
from rme.tenants.models import Membership
from tests import audited, factories
from tests.messaging.console.actions.scene import LATER, send, start
from tests.messaging.console.conftest import url
from tests.rest import Api, message
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db


def order(client, kind, **form):
    """Order an action and return its page."""
    return client.post(url("choose", kind), form, follow=True)


def test_count_is_shown_before_an_action_starts(root, org):
    send(org, 3, schedule=LATER)
    shown = root.get(f"{url('choose', 'cancel')}?status=SCHEDULED&channel=EMAIL")
    assert "Cancel 3 scheduled sends?</strong> They are not sent." in shown.content.decode()
    assert set(Delivery.objects.values_list("status", flat=True)) == {"SCHEDULED"}


def test_scheduled_sends_are_cancelled_and_the_reason_is_audited(root, org):
    send(org, 3, schedule=LATER)
    send(org, 1)
    shown = order(root, "cancel", why="the congress is off")
    action = shown.context["action"]
    assert (action.state, action.total, action.done, action.failed) == ("DONE", 3, 3, 0)
    assert sorted(Delivery.objects.values_list("status", flat=True)) == [
        "ACCEPTED", "CANCELLED", "CANCELLED", "CANCELLED",
    ]  # fmt: skip
    assert Event.objects.filter(type="cancelled").count() == 3
    lines = audited.lines()
    assert "rows: – → 3" in lines
    assert "reason: the congress is off" in lines


def test_search_text_matching_several_people_is_not_stored(root, org):
    mails = ("a@simulator.rme.test", "b@simulator.rme.test")
    people = [factories.contact(org, last_name="Meier", email=each) for each in mails]
    Api(org).send(message(*people, schedule=LATER))
    shown = order(root, "cancel", why="off", person="Meier", channel="EMAIL")
    action = shown.context["action"]
    assert (action.scope, action.contact_id) == ("Person: 2 people, Channel: Email", "")


def test_an_action_on_one_person_names_the_contact(root, org):
    contact = factories.contact(org, last_name="Meier")
    Api(org).send(message(contact, schedule=LATER))
    action = order(root, "cancel", why="off", person="Meier").context["action"]
    assert (action.scope, action.contact_id) == ("Person: Meier", str(contact.pk))


@pytest.mark.parametrize("kind", ["cancel", "resend", "lift"])
def test_action_needs_a_reason_and_a_target(root, org, kind):
    shown = order(root, kind, why="because")
    assert "Nothing to do" in shown.content.decode()
    send(org, 1, schedule=LATER)
    assert order(root, "cancel", why="").context["count"] == 1
    assert not BulkAction.objects.exists()


def test_messages_after_the_shown_count_are_not_included(root, org):
    send(org, 2, schedule=LATER)
    hidden = root.get(url("choose", "cancel")).context["hidden"]
    future = ids.at_least(datetime.now(UTC) + timedelta(minutes=5))
    late = Message.objects.order_by("pk").last()
    Delivery.objects.filter(message_id=late.pk).update(message_id=future)
    Message.objects.filter(pk=late.pk).delete()
    late.pk = future
    late.save(force_insert=True)
    assert order(root, "cancel", why="off", **hidden).context["action"].total == 1


def test_failed_messages_are_sent_again_as_new_ones(root, org):
    send(org, 2)
    Delivery.objects.update(status="FAILED", reason="down", provider="simulator", due_at=None)
    shown = order(root, "resend", why="it is up", provider="simulator", status="FAILED")
    assert shown.context["action"].done == 2
    assert sorted(Delivery.objects.values_list("status", flat=True)) == [
        "ACCEPTED", "ACCEPTED", "FAILED", "FAILED",
    ]  # fmt: skip
    failed = {str(pk) for pk in Delivery.objects.filter(status="FAILED").values_list(
        "message_id", flat=True)}  # fmt: skip
    new = Message.objects.exclude(pk__in=failed)
    assert {each.metadata["resentFrom"] for each in new} == failed
    assert {each.template for each in new} == {"welcome"}


def test_a_resend_passes_the_gates_again(root, org):
    send(org, 1)
    Delivery.objects.update(status="FAILED", reason="down", due_at=None)
    address = Delivery.objects.get().address
    Suppression.objects.create(organization=org, channel="EMAIL", address=address, reason="STOP")
    action = order(root, "resend", why="try").context["action"]
    assert (action.done, action.failed) == (0, 1)
    assert action.problems[0][1] == "The recipient is on a suppression list."


def test_resend_keeps_variables_sender_and_metadata(root, org):
    person_ = factories.contact(org)
    sent = message(
        person_, channel="EMAIL", category="TRANSACTIONAL", metadata={"order": "7"},
        to=[{"contactId": str(person_.pk), "variables": {"note": "own"}}],
        context={"variables": {"note": "all"}}, **{"from": {"name": "Desk"}},
    )  # fmt: skip
    Api(org).send(sent)
    Delivery.objects.update(status="FAILED", reason="down", due_at=None)
    first = Message.objects.get()
    order(root, "resend", why="try")
    page = root.get(url("message", Message.objects.exclude(pk=first.pk).get().pk))
    email = page.context["content"].email
    assert (email.text, email.from_name) == ("Note: own", "Desk")
    assert page.context["message"].metadata == {"order": "7", "resentFrom": str(first.pk)}


@pytest.mark.parametrize(
    ("domain_name", "given", "shown"),
    [
        ("Acme", "Desk", "Desk"),
        ("Acme", "Acme", "Acme"),
        ("Acme", "", ""),
        ("Zürich AG 1234", "", ""),
    ],
)
def test_a_resent_sms_shows_the_sender_of_the_first(root, org, domain_name, given, shown):
    SenderDomain.objects.update(name=domain_name)
    names = {"from": {"name": given}} if given else {}
    assert Api(org).send(message(factories.contact(org), channel="SMS", **names)).status_code == 202
    Delivery.objects.update(status="FAILED", reason="down", due_at=None)
    first = Message.objects.get()
    order(root, "resend", why="try")
    resent = MessageContent.objects.exclude(pk=first.pk).get()
    assert resent.body["sms_sender"] == shown


def test_suppressions_of_blocked_messages_are_lifted(root, org):
    ada = factories.contact(org)
    Suppression.objects.create(organization=org, channel="EMAIL", address=ada.email, reason="STOP")
    other = Suppression.objects.create(
        organization=org, channel="EMAIL", address="x@y.example", reason="STOP"
    )
    Api(org).send(message(ada))
    assert order(root, "lift", why="asked to").context["action"].done == 1
    assert list(Suppression.objects.all()) == [other]


def test_lifting_30_asks_as_often_as_lifting_3(root, org):
    user = factories.integration_user()
    ContentType.objects.get_for_model(Suppression)  # kept by the process
    counts = []
    for count in (3, 30):
        rows = Suppression.objects.bulk_create(
            Suppression(organization=org, channel="EMAIL", address=f"{i}@{count}.example")
            for i in range(count)
        )
        action = BulkAction.objects.create(
            organization=org, kind="LIFT", targets=[row.pk for row in rows], total=count,
            reason="asked to", user_id=user.pk,
        )  # fmt: skip
        with CaptureQueriesContext(connection) as captured:
            bulk_actions.run_slice(action.pk)
        counts.append(len(captured))
    assert len(audited.entries(action="DELETED")) == 33
    assert counts == [12, 12]


def test_pause_holds_the_filtered_channel(root, org):
    shown = root.post(url("pause"), {"channel": "SMS", "why": "maintenance"})
    row = Pause.objects.get()
    assert (row.channel, row.category, row.template, row.reason) == ("SMS", "", "", "maintenance")
    assert shown["Location"].endswith(f"/pause/{row.pk}/change/")
    refused = root.post(url("pause"), {"status": "FAILED", "why": "maintenance"})
    assert "Remove these filters first: Status" in refused.content.decode()
    assert Pause.objects.count() == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"since": "31 December"}, "From: 31 December"),
        ({"status": "SCHEDULD"}, "Status: SCHEDULD"),
        ({"person": "x" * 321}, "Person: xxx"),
    ],
)
def test_filter_that_is_not_valid_chooses_no_message(root, org, wrong, words):
    send(org, 2, schedule=LATER)
    shown = order(root, "cancel", why="off", channel="EMAIL", **wrong).content.decode()
    assert f"Some filters aren&#x27;t valid: {words}" in shown
    assert not BulkAction.objects.exists()


@pytest.mark.parametrize(
    ("wrong", "label"), [({"channel": "MAIL"}, "Channel"), ({"since": "31 December"}, "From")]
)
def test_filter_that_is_not_valid_pauses_nothing(root, org, wrong, label):
    refused = root.post(url("pause"), {**wrong, "why": "maintenance"}).content.decode()
    assert f"Remove these filters first: {label}" in refused
    assert not Pause.objects.exists()


def test_double_click_resends_once(root, org):
    send(org, 2)
    Delivery.objects.update(status="FAILED", reason="down", due_at=None)
    first = order(root, "resend", why="it is up").context["action"]
    assert order(root, "resend", why="it is up").context["action"] == first
    assert Message.objects.count() == 4
    assert len(audited.entries(action="ORDERED")) == 1
    order(root, "resend", why="once more")
    assert Message.objects.count() == 6


def test_address_in_a_scope_is_hidden_from_the_support_role(root, org):
    ada = factories.contact(org, email="ada@x.example")
    Api(org).send(message(ada, schedule=LATER))
    action = order(root, "cancel", why="ada@x.example asked", person=ada.email).context["action"]
    row = Suppression.objects.create(
        organization=org, channel="SMS", address="+41791234567", reason="STOP"
    )
    root.post(url("lift", row.pk), {"why": "079 123 45 67 asked"})
    support = person("s", org, Membership.Role.SUPPORT)
    lift = BulkAction.objects.get(kind="LIFT")
    pages = [url("actions"), url("action", action.pk), url("action", lift.pk)]
    for each in pages:
        assert ("ada@" in support.get(each).content.decode()) is False
        assert "+41791234567" not in support.get(each).content.decode()
    assert "ada@x.example" in root.get(pages[0]).content.decode()
    assert "a…@x.example asked" in support.get(pages[1]).content.decode()


# --- by slices ----------------------------------------------------------------------------------
def test_a_stopped_action_goes_no_further(root, org):
    action = start(org, 150)
    bulk_actions.run_slice(action.pk)
    assert root.post(url("action", action.pk)).status_code == 302
    tasks.run_bulk_actions()
    action.refresh_from_db()
    assert (action.state, action.done) == ("STOPPED", 100)


def test_action_without_permission_is_forbidden(org):
    action = start(org, 1)
    viewer = person("v", org, Membership.Role.VIEWER)
    for name, *args in (("choose", "cancel"), ("pause",)):
        assert viewer.get(url(name, *args)).status_code == 403
    assert viewer.get(url("action", action.pk)).status_code == 200
    assert viewer.post(url("action", action.pk)).status_code == 403
    stranger = person("s", factories.organization("other"), Membership.Role.OWNER)
    assert stranger.get(url("action", action.pk)).status_code == 404
    assert stranger.get(url("action", action.pk, org="other")).status_code == 404
    assert stranger.get(url("actions", org="other")).context["actions"] == []


def test_an_unknown_kind_is_404(root, org):
    assert root.get(url("choose", "explode")).status_code == 404
