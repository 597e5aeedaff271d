"""The contract's rules for sending: each field, and the answers."""

import pytest

from messaging.models import Message
from messaging.models import Suppression as Entry
from tests import factories
from tests.rest import error, events, message, work

pytestmark = pytest.mark.django_db


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
def test_a_contradictory_request_is_refused_with_its_field(api, org, fields, field, why):
    response = api.send(message(factories.contact(org), **fields))
    (detail,) = response.json()["error"]["details"]
    assert (response.status_code, detail["field"]) == (400, field)
    assert why in (None, detail["message"])
    text = f"{field}: {detail['message']}"
    assert response.json() == error("INVALID_PAYLOAD", text, (field, detail["message"]))
    assert not Message.objects.exists()


def test_a_hundred_recipients_are_accepted(api, org):
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


def test_content_is_sent_unchanged_and_metadata_is_not_sent(api, org, handed):
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


def test_a_recipients_variables_override_the_common_ones(api, org, handed):
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


def test_an_unreachable_recipient_is_blocked_and_the_others_are_sent(api, org):
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
