"""Accepting: the answers, the stored rows, and the number of statements."""

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.accept import Submission, accept_bulk
from messaging.accept.requests import MESSAGE
from messaging.domain.contents import TRACEPARENT, ContentBody
from messaging.models import (
    Category,
    Delivery,
    IdempotencyKey,
    Message,
    MessageContent,
    ProviderAccount,
    SenderDomain,
    Suppression,
)
from messaging.store.encodings import body_of
from rme.core.http.parsing import parse
from rme.crm.models import Case
from tests import factories
from tests.rest import Api, error, events, message

pytestmark = pytest.mark.django_db


def submit(caller, bodies):
    submissions = [Submission(parse(MESSAGE, body)) for body in bodies]
    return orjson.loads(accept_bulk(caller, submissions, key=None, request_id="r").body)


@pytest.mark.promise("key-15", "bulk-6")
@pytest.mark.parametrize("count", [1, 50, 500])
def test_statements_do_not_grow_with_the_bulk(org, count):
    people = factories.contacts(org, count)
    caller = factories.caller(org)
    submit(caller, [message(people[0])])
    with CaptureQueriesContext(connection) as captured:
        answer = submit(caller, [message(person) for person in people])
    assert (answer["accepted"], len(captured)) == (count, 4)  # contacts, by index, gates, insert


@pytest.mark.promise("gates-3")
@pytest.mark.parametrize("count", [1, 100])
def test_statements_do_not_grow_with_the_recipients(org, count):
    people = factories.contacts(org, count)
    caller = factories.caller(org)
    submit(caller, [message(people[0])])
    with CaptureQueriesContext(connection) as captured:
        submit(caller, [message(*people)])
    assert len(captured) == 4


@pytest.mark.promise("answer-1", "answer-12")
def test_a_single_send_answers_the_send_result(api, org):
    person = factories.contact(org)
    response = api.send(message(person))
    body = response.json()
    assert response.status_code == 202
    assert body == {
        "messageId": body["messageId"],
        "status": "ACCEPTED",
        "resolvedChannel": "EMAIL",
        "provider": "simulator",
        "scheduledFor": None,
    }
    assert events(body["messageId"]) == ["accepted"]
    assert response["X-Request-Id"] == "7b0f9f0e-6a53-4a0b-9a53-0d6d8f3c2a11"


@pytest.mark.promise("answer-2", "answer-4")
def test_each_of_several_recipients_has_its_result(api, org):
    ada, bob = factories.contacts(org, 2)
    Suppression.objects.create(
        organization=org, channel="EMAIL", address=bob.email, reason="MANUAL"
    )
    response = api.send(message(ada, bob))
    body = response.json()
    assert response.status_code == 202
    assert body == {
        "messageId": body["messageId"],
        "status": "SENDING",
        "resolvedChannel": "EMAIL",
        "provider": "simulator",
        "scheduledFor": None,
        "recipients": [
            {
                "contactId": str(ada.pk),
                "status": "ACCEPTED",
                "resolvedChannel": "EMAIL",
                "provider": "simulator",
                "scheduledFor": None,
                "error": None,
            },
            {
                "contactId": str(bob.pk),
                "status": "BLOCKED",
                "resolvedChannel": None,
                "provider": None,
                "scheduledFor": None,
                "error": error(
                    "SUPPRESSED",
                    "The recipient is on a suppression list.",
                    message_id=body["messageId"],
                )["error"],
            },
        ],
    }


@pytest.mark.promise("request-23")
def test_unknown_contact_among_several_fails_only_that_recipient(api, org):
    ada = factories.contact(org)
    body = message(ada)
    body["to"].append({"contactId": "nobody"})
    answer = api.send(body).json()
    assert [r["status"] for r in answer["recipients"]] == ["ACCEPTED", "BLOCKED"]
    assert answer["recipients"][1]["error"]["code"] == "NOT_FOUND"


@pytest.mark.promise("bulk-4")
def test_one_bad_item_fails_no_other(api, org):
    ada = factories.contact(org)
    response = api.bulk([message(ada), {"channel": "EMAIL"}, message(ada, category="NOPE")])
    body = response.json()
    assert response.status_code == 202
    assert (body["accepted"], body["rejected"]) == (1, 2)
    assert [item["index"] for item in body["results"]] == [0, 1, 2]
    assert [d["field"] for d in body["results"][1]["error"]["details"]] == ["category", "to"]
    assert body["results"][2]["error"]["details"] == [
        {
            "field": "category",
            "message": "no such category: NOPE (there are MARKETING, TRANSACTIONAL)",
        }
    ]
    assert Message.objects.count() == 1


@pytest.mark.promise("request-22")
def test_values_are_stored_as_they_were_given(api, org):
    ada = factories.contact(org)
    note = 'Zoë\t"quoted" \\N {}, line\nbreak 😀 \'; DROP TABLE x --'
    metadata = {"order": "42", "note": note}
    body = message(ada, metadata=metadata, context={"variables": {"note": note, "n": [1, None]}})
    message_id = api.send(body).json()["messageId"]
    assert api.get(message_id)["metadata"] == metadata
    stored = MessageContent.objects.get(pk=message_id).body
    assert stored["variables"] == {"note": note, "n": [1, None]}


@pytest.mark.promise("request-4")
def test_first_reachable_chooses_the_first_usable_channel(api, org):
    ada = factories.contact(org, mobile="")
    Suppression.objects.create(
        organization=org, channel="EMAIL", address=ada.email, reason="MANUAL"
    )
    factories.device(org, ada)
    body = message(ada, channel=None, channels=["SMS", "EMAIL", "PUSH"])
    assert api.send(body).json()["resolvedChannel"] == "PUSH"


@pytest.mark.promise("request-3")
def test_auto_uses_the_channel_order_of_the_category(api, org):
    ada = factories.contact(org)
    Category.objects.create(
        organization=org,
        name="TRANSACTIONAL",
        regime="OPT_OUT",
        channel_order=["SMS", "EMAIL"],
    )
    assert api.send(message(ada, channel="AUTO")).json()["resolvedChannel"] == "SMS"


@pytest.mark.promise("answer-11")
def test_test_application_ends_in_the_simulator(org):
    api = Api(org, mode="TEST")
    ada = factories.contact(org)
    ProviderAccount.objects.create(organization=org, name="mail", kind="smtp", channel="EMAIL")
    answer = api.send(message(ada)).json()
    assert answer["provider"] == "simulator"
    assert api.get(answer["messageId"])["test"] is True


@pytest.mark.promise("request-18")
def test_from_chooses_among_verified_domains(api, org):
    ada = factories.contact(org)
    SenderDomain.objects.create(organization=org, domain="unverified.example")
    refused = api.send(message(ada, **{"from": {"domain": "unverified.example"}}))
    assert (refused.status_code, refused.json()) == (
        400,
        error(
            "INVALID_PAYLOAD",
            "from.domain: not a verified sender domain",
            ("from.domain", "not a verified sender domain"),
        ),
    )
    taken = api.send(message(ada, **{"from": {"domain": "ACME.example", "name": "Ann"}}))
    content = MessageContent.objects.get(pk=taken.json()["messageId"])
    assert body_of(content.body)["sender"] == {
        "domain": "acme.example",
        "local_part": "no-reply",
        "name": "Ann",
    }


def test_a_content_is_stored_as_its_type_says(api, org):
    """All keys that a body may have are stored as `ContentBody` lists them, and no others."""
    person = factories.contact(org)
    case = Case.objects.create(organization=org, number="7", contact=person)
    request = message(
        person,
        template=None,
        content={"subject": "Hi", "text": "Text"},
        push={"ttl": 5},
        context={"variables": {"a": 1}, "recordId": str(case.pk)},
        channel=None,
        channels=["EMAIL", "SMS"],
        **{"from": {"name": "Desk"}},
    )
    request["to"][0]["variables"] = {"b": 2}
    taken = api.send(request).json()["messageId"]
    body = MessageContent.objects.get(pk=taken).body
    assert body | {"record": None} == {
        "content": {"subject": "Hi", "text": "Text"},
        "push": {"ttl": 5},
        "sender": ["acme.example", "no-reply", "Desk"],
        "sms_sender": "Desk",
        "record": None,
        "variables": {"a": 1},
        "recipients": {taken: {"b": 2}},
    }
    assert set(ContentBody.__annotations__) == {*body, TRACEPARENT}


@pytest.mark.promise("errors-27")
def test_rejected_request_stores_nothing(api, org):
    ada = factories.contact(org)
    for wrong in ({"template": {"name": "nope"}}, {"category": "NOPE"}, {"to": []}):
        response = api.send(message(ada) | wrong, **{"Idempotency-Key": "k"})
        assert response.status_code in (400, 404)
    assert not Message.objects.exists()
    assert not Delivery.objects.exists()
    assert not IdempotencyKey.objects.exists()


@pytest.mark.promise("templates-7")
def test_a_missing_required_variable_is_named(api, org):
    ada = factories.contact(org)
    schema = {"type": "object", "required": ["note"], "properties": {"note": {"type": "string"}}}
    factories.template(org, name="strict", variables=schema)
    without = api.send(message(ada, template={"name": "strict"}, context={"variables": {}}))
    assert without.json() == error(
        "INVALID_PAYLOAD",
        "context.variables.note: is required by the template",
        ("context.variables.note", "is required by the template"),
    )
    own = message(ada, template={"name": "strict"}, context=None)
    own["to"][0]["variables"] = {"note": 5}
    assert api.send(own).json()["error"]["details"] == [
        {"field": "to[0].variables.note", "message": "must be of type string"}
    ]
