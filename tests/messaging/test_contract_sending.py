"""What the contract says of sending: each field, what is answered, schedules, cancelling."""

import datetime as dt

import pytest

from messaging import providers
from messaging.models import Delivery, Event, Message, ProviderAccount
from messaging.models import Suppression as Entry
from messaging.providers.simulator import Simulator
from rme.core import clock, ids
from rme.core.cache import TtlCache
from tests import factories
from tests.rest import error, events, message, work

pytestmark = pytest.mark.django_db

KEY = {"Idempotency-Key": "order-42"}


class Noting(Simulator):
    """Notes what it is handed."""

    kind = "noting"
    handed = []

    def send(self, dispatches, transport):
        self.handed.extend(dispatch.content for dispatch in dispatches)
        return super().send(dispatches, transport)


@pytest.fixture
def handed(org):
    providers.REGISTRY["noting"] = Noting
    Noting.handed = []
    for channel in ("EMAIL", "SMS"):
        ProviderAccount.objects.create(
            organization=org, name=f"noting {channel}", kind="noting", channel=channel
        )
    TtlCache.clear_all()
    yield Noting.handed
    del providers.REGISTRY["noting"]


# --- fields ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "field", "why"),
    [
        (
            {"channels": ["EMAIL"]},
            "channel",
            "give exactly one of channel and channels",
        ),
        ({"channel": None}, "channel", "give exactly one of channel and channels"),
        ({"content": {"text": "x"}}, "template", "give exactly one of template and content"),
        ({"template": None}, "template", "give exactly one of template and content"),
        (
            {"channel": None, "channels": ["SMS", "SMS"]},
            "channels",
            "the same channel twice",
        ),
        ({"fallbackAfter": 29}, "fallbackAfter", None),
        ({"fallbackAfter": 86_401}, "fallbackAfter", None),
        ({"strategy": "FIRST"}, "strategy", None),
        ({"to": [{"contactId": f"c{n}"} for n in range(101)]}, "to", None),
        ({"to": []}, "to", None),
        ({"metadata": {str(n): "x" for n in range(21)}}, "metadata", None),
        ({"metadata": {"n": 1}}, "metadata.n", "must be a string"),
        ({"push": {"priority": "LOW"}}, "push.priority", None),
        ({"push": {"ttl": -1}}, "push.ttl", None),
        (
            {"template": None, "content": {"text": "x", "data": {"n": 1}}},
            "content.data.n",
            "must be a string",
        ),
        ({"category": "NOWHERE"}, "category", "no such category"),
        ({"schedule": {"mode": "SOON"}}, "schedule", "mode must be LOCAL, ORG or AT"),
        ({"schedule": {"mode": "LOCAL", "time": "24:00"}}, "schedule.time", None),
        ({"schedule": {"mode": "AT", "at": "2026-01-01T00:00:00"}}, "schedule.at", None),
    ],
)
def test_what_cannot_be_meant_is_named(api, org, fields, field, why):
    response = api.send(message(factories.contact(org), **fields))
    (detail,) = response.json()["error"]["details"]
    assert (response.status_code, detail["field"]) == (400, field)
    assert why in (None, detail["message"])
    text = f"{field}: {detail['message']}"
    assert response.json() == error("INVALID_PAYLOAD", text, (field, detail["message"]))
    assert not Message.objects.exists()


def test_a_hundred_recipients_are_taken(api, org):
    answer = api.send(message(*factories.contacts(org, 100)))
    assert (answer.status_code, len(answer.json()["recipients"])) == (202, 100)


def test_the_same_contact_twice_is_refused(api, org):
    ada, bob = factories.contacts(org, 2)
    response = api.send(message(ada, bob, ada))
    why = "the same contact twice"
    assert (response.status_code, response.json()) == (
        400,
        error("INVALID_PAYLOAD", f"to[2].contactId: {why}", ("to[2].contactId", why)),
    )


def test_a_template_of_another_category_is_refused(api, org):
    factories.template(org, name="offer", category="MARKETING")
    response = api.send(message(factories.contact(org), template={"name": "offer"}))
    why = "the template's category is MARKETING"
    assert (response.status_code, response.json()) == (
        400,
        error("INVALID_PAYLOAD", f"category: {why}", ("category", why)),
    )


def test_a_template_without_a_version_for_the_channel_is_not_found(api, org):
    factories.template(org, "SMS", name="code")
    response = api.send(message(factories.contact(org), template={"name": "code"}))
    assert (response.status_code, response.json()) == (
        404,
        error("TEMPLATE_NOT_FOUND", "There is no active template code in en_US for EMAIL."),
    )


def test_content_is_sent_as_it_stands_and_metadata_goes_to_nobody(api, org, handed):
    content = {"subject": "{{ contact.first_name }}", "text": "{% if x %} {{ note }}"}
    body = message(
        factories.contact(org), template=None, content=content, metadata={"order": "secret-42"}
    )
    message_id = api.send(body).json()["messageId"]
    work()
    (mail,) = handed
    assert (mail.subject, mail.text) == (content["subject"], content["text"])
    assert "secret-42" not in repr(mail)
    assert api.get(message_id)["metadata"] == {"order": "secret-42"}


def test_from_names_the_sender_on_each_channel(api, org, handed):
    person = factories.contact(org)
    sender = {"domain": "acme.example", "localPart": "billing", "name": "Billing"}
    api.send(message(person, **{"from": sender}))
    api.send(message(person, channel="SMS", **{"from": {"name": "ACME"}}))
    work()
    mail, sms = handed
    assert (mail.from_address, mail.from_name) == ("billing@acme.example", "Billing")
    assert sms.sender == "ACME"


def test_a_recipients_variables_go_over_everybodys(api, org, handed):
    ada, bob = factories.contacts(org, 2)
    body = message(ada, bob, channel="SMS")
    body["to"][1]["variables"] = {"note": "own"}
    api.send(body)
    work()
    assert [sms.text for sms in handed] == ["Note: hello", "Note: own"]


# --- answers --------------------------------------------------------------------------------------


def test_when_all_are_refused_the_first_ones_error_is_the_answer(api, org):
    ada = factories.contact(org, email="")
    bob = factories.contact(org, email="bob@simulator.rme.test")
    Entry.objects.create(organization=org, channel="EMAIL", address=bob.email, reason="MANUAL")
    response = api.send(message(ada, bob))
    kept = str(Message.objects.get().pk)
    text = "No channel asked for has an address or device for this recipient."
    assert (response.status_code, response.json()) == (
        422,
        error("UNREACHABLE", text, message_id=kept),
    )
    assert [(each["status"], each["error"]["code"]) for each in api.get(kept)["recipients"]] == [
        ("BLOCKED", "UNREACHABLE"),
        ("BLOCKED", "SUPPRESSED"),
    ]


def test_who_no_channel_reaches_is_blocked_and_the_others_go(api, org):
    ada, bob = factories.contact(org), factories.contact(org, email="", mobile="")
    answer = api.send(message(ada, bob)).json()
    text = "No channel asked for has an address or device for this recipient."
    assert answer["recipients"][1] == {
        "contactId": str(bob.pk),
        "status": "BLOCKED",
        "resolvedChannel": None,
        "provider": None,
        "scheduledFor": None,
        "error": error("UNREACHABLE", text, message_id=answer["messageId"])["error"],
    }
    assert events(answer["messageId"]) == ["accepted", "blocked"]


# --- schedules ------------------------------------------------------------------------------------


def at_local(minutes, zone=dt.UTC):
    """Write a LOCAL schedule of so many minutes from now, in a zone."""
    moment = (clock.now() + dt.timedelta(minutes=minutes)).astimezone(zone)
    return {"mode": "LOCAL", "time": f"{moment:%H:%M}", "date": f"{moment:%Y-%m-%d}"}


def test_a_local_time_that_passed_is_refused_alone_and_expired_among_several(api, org):
    late, ahead = factories.contact(org, zone="UTC"), factories.contact(org, zone="Etc/GMT+5")
    schedule = at_local(-60)
    why = "this time has passed there"
    refused = error("INVALID_PAYLOAD", f"schedule.time: {why}", ("schedule.time", why))
    alone = api.send(message(late, schedule=schedule))
    assert (alone.status_code, alone.json()) == (400, refused)
    assert not Message.objects.exists()
    answer = api.send(message(late, ahead, schedule=schedule)).json()
    first, second = answer["recipients"]
    assert first == {
        "contactId": str(late.pk),
        "status": "EXPIRED",
        "resolvedChannel": None,
        "provider": None,
        "scheduledFor": None,
        "error": refused["error"] | {"messageId": answer["messageId"]},
    }
    assert second["status"] == "SCHEDULED"
    assert events(answer["messageId"]) == ["expired", "accepted", "scheduled"]


def test_a_local_time_that_passed_just_now_goes_at_once(api, org):
    answer = api.send(message(factories.contact(org, zone="UTC"), schedule=at_local(-10)))
    assert (answer.status_code, answer.json()["status"]) == (202, "ACCEPTED")


def test_org_takes_the_organizations_zone_for_everybody(api, org):
    type(org).objects.filter(pk=org.pk).update(zone="Asia/Kolkata")
    TtlCache.clear_all()
    person = factories.contact(org, zone="America/New_York")
    day = (clock.now() + dt.timedelta(days=3)).date().isoformat()
    schedule = {"mode": "ORG", "time": "09:30", "date": day}
    answer = api.send(message(person, schedule=schedule)).json()
    assert answer["scheduledFor"] == f"{day}T04:00:00Z"


def test_without_a_zone_of_its_own_a_contact_has_the_organizations(api, org):
    type(org).objects.filter(pk=org.pk).update(zone="Asia/Kolkata")
    TtlCache.clear_all()
    day = (clock.now() + dt.timedelta(days=3)).date().isoformat()
    schedule = {"mode": "LOCAL", "time": "09:30", "date": day}
    answer = api.send(message(factories.contact(org, zone=""), schedule=schedule)).json()
    assert answer["scheduledFor"] == f"{day}T04:00:00Z"


# --- cancelling -----------------------------------------------------------------------------------


def test_of_several_those_still_scheduled_are_cancelled(api, org):
    gone, waits = factories.contact(org, zone="UTC"), factories.contact(org, zone="Etc/GMT+5")
    message_id = api.send(message(gone, waits, schedule=at_local(-5))).json()["messageId"]
    work()
    answer = api.call("DELETE", f"/messages/{message_id}")
    body = answer.json()
    statuses = [each["status"] for each in body["recipients"]]
    assert (answer.status_code, body["messageId"], body["status"], statuses) == (
        200,
        message_id,
        "DELIVERED",
        ["DELIVERED", "CANCELLED"],
    )
    again = api.call("DELETE", f"/messages/{message_id}")
    assert (again.status_code, again.content) == (200, answer.content)


def test_one_that_is_cancelled_answers_the_send_result(api, org):
    schedule = {"mode": "AT", "at": (clock.now() + dt.timedelta(hours=1)).isoformat()}
    sent = api.send(message(factories.contact(org), schedule=schedule)).json()
    answer = api.call("DELETE", f"/messages/{sent['messageId']}")
    assert (answer.status_code, answer.json()) == (200, sent | {"status": "CANCELLED"})


def test_several_that_are_cancelled_answer_as_they_were_answered(api, org):
    schedule = {"mode": "AT", "at": (clock.now() + dt.timedelta(hours=1)).isoformat()}
    people = factories.contacts(org, 2)
    body = message(*people, schedule=schedule)
    body["to"].append({"contactId": "01a1fb37-a4a4-7470-9fc2-6927566e64b5"})
    sent = api.send(body).json()
    for one in sent["recipients"][:2]:
        one["status"] = "CANCELLED"
    sent["recipients"][2]["error"]["details"] = []  # which field it was is not kept
    answer = api.call("DELETE", f"/messages/{sent['messageId']}").json()
    for told in (sent, answer):  # what is left of the message as a whole
        for name in ("status", "resolvedChannel", "provider", "scheduledFor"):
            told.pop(name)
        told["recipients"][2].pop("resolvedChannel")
    assert answer == sent


def test_events_of_a_worker_whose_clock_is_behind_are_shown(api, org):
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    delivery = Delivery.objects.get()
    early = ids.at_least(clock.now() - dt.timedelta(minutes=5))
    Event.objects.create(
        id=early,
        organization_id=org.pk,
        message_id=delivery.message_id,
        delivery_id=delivery.pk,
        type="deferred",
        at=clock.now(),
    )
    shown = api.call("GET", f"/messages/{message_id}?include=trace").json()
    assert [event["type"] for event in shown["events"]] == ["accepted", "deferred"]
    assert [step["step"] for step in shown["trace"][0]["steps"]] == ["DECISION", "WAIT"]
