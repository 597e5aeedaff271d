"""A dry run answers with the result that a send would have had, and stores nothing."""

from datetime import timedelta

import pytest

from messaging.models import (
    Category,
    Delivery,
    Event,
    IdempotencyKey,
    Message,
    MessageContent,
    Suppression,
)
from rme.core.db import clock
from tests import factories
from tests.rest import error, message

pytestmark = pytest.mark.django_db


def dry_run(api, body, **headers):
    answer = api.call("POST", "/messages?dryRun=true", body, **headers)
    stored = [model.objects.count() for model in (Message, MessageContent, Delivery, Event)]
    assert (answer.status_code, stored) == (200, [0, 0, 0, 0])
    shown = answer.json()
    for recipient in shown["recipients"]:
        for step in recipient["trace"]:
            step.pop("at")
    return shown


@pytest.mark.promise("answer-15", "answer-16")
def test_dry_run_shows_the_result_of_a_valid_request(api, org):
    person = factories.contact(org)
    assert dry_run(api, message(person)) == {
        "messageId": None,
        "status": "ACCEPTED",
        "resolvedChannel": "EMAIL",
        "provider": "simulator",
        "scheduledFor": None,
        "wouldSend": True,
        "result": {
            "messageId": None,
            "status": "ACCEPTED",
            "resolvedChannel": "EMAIL",
            "provider": "simulator",
            "scheduledFor": None,
        },
        "error": None,
        "recipients": [
            {
                "contactId": str(person.pk),
                "status": "ACCEPTED",
                "resolvedChannel": "EMAIL",
                "provider": "simulator",
                "scheduledFor": None,
                "error": None,
                "trace": [{"step": "DECISION", "channel": "EMAIL", "result": "CHOSEN"}],
                "content": {
                    "from": {"name": "Acme", "address": "no-reply@acme.example"},
                    "subject": "Hello Ada",
                    "text": "Note: hello",
                    "html": None,
                },
                "renderError": None,
            }
        ],
    }


@pytest.mark.promise("answer-15")
def test_dry_run_shows_the_error_of_a_blocked_request(api, org):
    person = factories.contact(org)
    row = Suppression.objects.create(
        organization=org, channel="EMAIL", address=person.email, reason="STOP"
    )
    shown = dry_run(api, message(person))
    refused = error("SUPPRESSED", "The recipient is on a suppression list.")["error"]
    assert shown == {
        "messageId": None,
        "status": None,
        "resolvedChannel": None,
        "provider": None,
        "scheduledFor": None,
        "wouldSend": False,
        "result": None,
        "error": refused,
        "recipients": [
            {
                "contactId": str(person.pk),
                "status": "BLOCKED",
                "resolvedChannel": None,
                "provider": None,
                "scheduledFor": None,
                "error": refused,
                "trace": [
                    {
                        "step": "DECISION",
                        "channel": "EMAIL",
                        "result": "SUPPRESSED",
                        "entry": str(row.pk),
                    }
                ],
                "content": None,
                "renderError": None,
            }
        ],
    }


@pytest.mark.promise("answer-15")
def test_the_error_of_a_whole_request(api, org):
    shown = dry_run(api, message(factories.contact(org), category="NOWHERE"))
    why = "no such category: NOWHERE (there are MARKETING, TRANSACTIONAL)"
    assert (
        shown["error"] == (error("INVALID_PAYLOAD", f"category: {why}", ("category", why))["error"])
    )
    assert (shown["wouldSend"], shown["recipients"][0]["status"]) == (False, None)


@pytest.mark.promise("answer-16")
def test_each_recipient_gets_content_of_its_variables(api, org):
    ada, grace = factories.contacts(org, 2)
    body = message(ada, grace, channel="SMS")
    body["to"][1]["variables"] = {"note": "for Grace alone €"}
    shown = dry_run(api, body)
    assert [one["content"] for one in shown["recipients"]] == [
        {
            "text": "Note: hello",
            "sms": {"encoding": "GSM-7", "characters": 11, "units": 11, "segments": 1},
        },
        {
            "text": "Note: for Grace alone €",
            "sms": {"encoding": "GSM-7", "characters": 23, "units": 24, "segments": 1},
        },
    ]
    assert shown["result"]["recipients"][0]["contactId"] == str(ada.pk)
    result = {name: value for name, value in shown["result"].items() if name != "recipients"}
    assert (
        {name: shown[name] for name in result}
        == result
        == {
            "messageId": None,
            "status": "ACCEPTED",
            "resolvedChannel": "SMS",
            "provider": "simulator",
            "scheduledFor": None,
        }
    )


def test_a_scheduled_send_has_its_time_at_the_top(api, org):
    schedule = {"mode": "AT", "at": (clock.now() + timedelta(hours=1)).isoformat()}
    shown = dry_run(api, message(factories.contact(org), schedule=schedule))
    assert (shown["status"], shown["scheduledFor"]) == (
        "SCHEDULED",
        shown["result"]["scheduledFor"],
    )
    assert shown["scheduledFor"] is not None


@pytest.mark.promise("request-15")
def test_a_push_is_rendered_for_the_first_device(api, org):
    person = factories.contact(org)
    factories.device(org, person)
    (shown,) = dry_run(api, message(person, channel="PUSH", push={"link": "https://x.example"}))[
        "recipients"
    ]
    assert shown["content"] == {
        "title": "Hello",
        "body": "Note: hello",
        "data": {},
        "badge": None,
        "image": None,
        "link": "https://x.example",
    }


def test_unrenderable_content_has_an_error(api, org):
    factories.template(org, name="loud", text="{{ note | date: note }}" * 200)
    body = message(factories.contact(org), template={"name": "loud", "language": "en_US"})
    body["context"] = {"variables": {"note": "x" * 100_000}}
    (shown,) = dry_run(api, body)["recipients"]
    assert shown["content"] is None
    assert shown["renderError"]


def test_a_dry_run_does_not_use_its_key(api, org):
    dry_run(api, message(factories.contact(org)), **{"Idempotency-Key": "k"})
    assert not IdempotencyKey.objects.exists()


def test_a_dry_run_counts_against_no_cap_and_no_ceiling(api, org, redis):
    Category.objects.create(organization=org, name="TRANSACTIONAL", cap_count=1, regime="OPT_OUT")
    body = message(factories.contact(org))
    for _ in range(3):
        assert dry_run(api, body)["wouldSend"]
    assert [key for key in redis.scan_iter() if b"sends:" in key] == []


@pytest.mark.promise("answer-17")
@pytest.mark.parametrize("value", ["yes", "", "1"])
def test_a_value_other_than_true_and_false_is_refused(api, org, value):
    answer = api.call("POST", f"/messages?dryRun={value}", message(factories.contact(org)))
    assert answer.status_code == 400
    assert [each["field"] for each in answer.json()["error"]["details"]] == ["dryRun"]


@pytest.mark.promise("answer-17")
def test_an_invalid_request_is_an_error(api, org):
    answer = api.call("POST", "/messages?dryRun=true", {"channel": "EMAIL"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_PAYLOAD")


def test_a_bulk_has_no_dry_run(api, org):
    answer = api.call("POST", "/messages/bulk?dryRun=true", {"messages": []})
    assert (answer.status_code, answer.json()["error"]["details"][0]["field"]) == (400, "dryRun")
