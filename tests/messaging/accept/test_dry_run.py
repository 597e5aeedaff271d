"""A dry run tells what a send would come to, and leaves nothing behind."""

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


def rehearse(api, body, **headers):
    answer = api.call("POST", "/messages?dryRun=true", body, **headers)
    stored = [model.objects.count() for model in (Message, MessageContent, Delivery, Event)]
    assert (answer.status_code, stored) == (200, [0, 0, 0, 0])
    told = answer.json()
    for recipient in told["recipients"]:
        for step in recipient["trace"]:
            step.pop("at")
    return told


def test_what_would_be_sent(api, org):
    person = factories.contact(org)
    assert rehearse(api, message(person)) == {
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


def test_what_would_be_refused(api, org):
    person = factories.contact(org)
    row = Suppression.objects.create(
        organization=org, channel="EMAIL", address=person.email, reason="STOP"
    )
    told = rehearse(api, message(person))
    refused = error("SUPPRESSED", "The recipient is on a suppression list.")["error"]
    assert told == {
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


def test_what_is_wrong_with_the_request_as_a_whole(api, org):
    told = rehearse(api, message(factories.contact(org), category="NOWHERE"))
    assert (
        told["error"]
        == error("INVALID_PAYLOAD", "category: no such category", ("category", "no such category"))[
            "error"
        ]
    )
    assert (told["wouldSend"], told["recipients"][0]["status"]) == (False, None)


def test_each_recipient_has_its_own_text(api, org):
    ada, grace = factories.contacts(org, 2)
    body = message(ada, grace, channel="SMS")
    body["to"][1]["variables"] = {"note": "for Grace alone €"}
    told = rehearse(api, body)
    assert [one["content"] for one in told["recipients"]] == [
        {
            "text": "Note: hello",
            "sms": {"encoding": "GSM-7", "characters": 11, "units": 11, "segments": 1},
        },
        {
            "text": "Note: for Grace alone €",
            "sms": {"encoding": "GSM-7", "characters": 23, "units": 24, "segments": 1},
        },
    ]
    assert told["result"]["recipients"][0]["contactId"] == str(ada.pk)
    result = {name: value for name, value in told["result"].items() if name != "recipients"}
    assert (
        {name: told[name] for name in result}
        == result
        == {
            "messageId": None,
            "status": "ACCEPTED",
            "resolvedChannel": "SMS",
            "provider": "simulator",
            "scheduledFor": None,
        }
    )


def test_a_scheduled_send_tells_its_time_at_the_top(api, org):
    schedule = {"mode": "AT", "at": (clock.now() + timedelta(hours=1)).isoformat()}
    told = rehearse(api, message(factories.contact(org), schedule=schedule))
    assert (told["status"], told["scheduledFor"]) == ("SCHEDULED", told["result"]["scheduledFor"])
    assert told["scheduledFor"] is not None


def test_a_push_is_shown_as_the_first_device_would_get_it(api, org):
    person = factories.contact(org)
    factories.device(org, person)
    (told,) = rehearse(api, message(person, channel="PUSH", push={"link": "https://x.example"}))[
        "recipients"
    ]
    assert told["content"] == {
        "title": "Hello",
        "body": "Note: hello",
        "data": {},
        "badge": None,
        "image": None,
        "link": "https://x.example",
    }


def test_a_text_that_cannot_be_rendered_says_why(api, org):
    factories.template(org, name="loud", text="{{ note | date: note }}" * 200)
    body = message(factories.contact(org), template={"name": "loud", "language": "en_US"})
    body["context"] = {"variables": {"note": "x" * 100_000}}
    (told,) = rehearse(api, body)["recipients"]
    assert told["content"] is None
    assert told["renderError"]


def test_a_key_is_not_used_up(api, org):
    rehearse(api, message(factories.contact(org)), **{"Idempotency-Key": "k"})
    assert not IdempotencyKey.objects.exists()


def test_it_counts_against_no_cap_and_no_ceiling(api, org, redis):
    Category.objects.create(organization=org, name="TRANSACTIONAL", cap_count=1, regime="OPT_OUT")
    body = message(factories.contact(org))
    for _ in range(3):
        assert rehearse(api, body)["wouldSend"]
    assert [key for key in redis.scan_iter() if b"sends:" in key] == []


@pytest.mark.parametrize("value", ["yes", "", "1"])
def test_what_is_no_switch_is_refused(api, org, value):
    answer = api.call("POST", f"/messages?dryRun={value}", message(factories.contact(org)))
    assert answer.status_code == 400
    assert [each["field"] for each in answer.json()["error"]["details"]] == ["dryRun"]


def test_what_cannot_be_read_is_an_error(api, org):
    answer = api.call("POST", "/messages?dryRun=true", {"channel": "EMAIL"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_PAYLOAD")


def test_a_bulk_has_no_dry_run(api, org):
    answer = api.call("POST", "/messages/bulk?dryRun=true", {"messages": []})
    assert (answer.status_code, answer.json()["error"]["details"][0]["field"]) == (400, "dryRun")
