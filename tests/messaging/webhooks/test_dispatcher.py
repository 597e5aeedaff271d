"""Telling endpoints of events: what is sent, and where it may be sent to."""

import time
import uuid
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from django.db import connection
from standardwebhooks.webhooks import WebhookVerificationError

from messaging.models import Delivery, Event, Message, WebhookDelivery, WebhookEndpoint
from messaging.webhooks import endpoints, outbox
from rme.core.db.clock import iso
from rme.transport import AddressPolicy, Transport
from tests import factories
from tests.messaging.webhooks.dispatcher_scene import note, states
from tests.messaging.webhooks.hooks_scene import Receiver, endpoint, tell, verified
from tests.rest import message, work

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback")]
S = WebhookDelivery.Status


# --- what is sent ---------------------------------------------------------------------------------


def test_an_event_is_told_whole(api, org, receiver):
    row = endpoint(org, f"{receiver.url}hook?a=1", "message.sent")
    ada = factories.contact(org)
    sent = api.send(message(ada, metadata={"order": "7"})).json()["messageId"]
    work()
    tell()
    (seen,) = receiver.seen
    event = Event.objects.get(type="sent")
    assert (seen.method, seen.path) == ("POST", "/hook?a=1")
    assert seen.header("content-type") == "application/json"
    assert seen.header("webhook-id") == str(event.pk)
    assert abs(time.time() - int(seen.header("webhook-timestamp"))) < 30
    assert verified(seen, row.secret) == [
        {
            "type": "message.sent",
            "timestamp": iso(event.at),
            "data": {
                "messageId": sent,
                "contactId": str(ada.pk),
                "channel": "EMAIL",
                "category": "TRANSACTIONAL",
                "status": "DELIVERED",
                "provider": "simulator",
                "test": False,
                "metadata": {"order": "7"},
                "detail": None,
            },
        }
    ]
    assert states() == [(S.DELIVERED, 1)]


def test_a_refusal_tells_why(api, org, receiver):
    endpoint(org, receiver.url)
    api.send(message(factories.contact(org, email="", mobile="")))
    tell()
    (seen,) = receiver.seen
    told = orjson.loads(seen.body)
    assert (told["type"], told["data"]["status"], told["data"]["detail"]) == (
        "message.blocked",
        "BLOCKED",
        {"reason": "UNREACHABLE"},
    )


def test_a_test_has_a_body_of_its_own(org, receiver):
    row = endpoint(org, receiver.url, "message.sent", description="CRM")
    (identifier,) = note(row)
    noted = WebhookDelivery.objects.get().queued_at
    tell()
    (seen,) = receiver.seen
    assert seen.header("webhook-id") == str(identifier)
    assert verified(seen, row.secret) == [
        {"type": "webhook.test", "timestamp": iso(noted), "data": {"endpoint": "CRM"}}
    ]


def test_both_secrets_sign_for_a_day(org, receiver):
    row = endpoint(org, receiver.url)
    fresh = endpoints.rotate_secret(row)
    note(row)
    tell()
    WebhookEndpoint.objects.update(former_until=datetime.now(UTC) - timedelta(seconds=1))
    note(row)
    tell()
    both, one = receiver.seen
    assert len(both.header("webhook-signature").split()) == 2
    assert len(verified(both, row.secret, fresh)) == 2
    assert len(verified(one, fresh)) == 1
    with pytest.raises(WebhookVerificationError):
        verified(one, row.secret)
    outbox.purge()
    stored = WebhookEndpoint.objects.get()
    assert (stored.secret, stored.former_secret, stored.former_until) == (fresh, "", None)


def test_secrets_are_encrypted_in_the_database(org):
    row = endpoint(org, "https://hooks.example.com/")
    endpoints.rotate_secret(row)
    with connection.cursor() as cursor:
        cursor.execute("SELECT secret || former_secret FROM messaging_webhookendpoint")
        (stored,) = cursor.fetchone()
    assert "whsec_" not in stored


def test_what_there_is_nothing_to_tell_of_any_more_is_given_up(api, org, receiver):
    endpoint(org, receiver.url, "message.accepted")
    for _ in range(3):
        api.send(message(factories.contact(org)))
    first, second, _ = Event.objects.filter(type="accepted").order_by("id")
    Event.objects.filter(pk=first.pk).delete()
    Message.objects.filter(pk=second.message_id).delete()
    tell()
    assert states() == [(S.FAILED, 1), (S.FAILED, 1), (S.DELIVERED, 1)]
    assert len(receiver.seen) == 1


# --- addresses ------------------------------------------------------------------------------------

PRIVATE = [
    "https://127.0.0.1/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://10.0.0.1/",
    "https://169.254.169.254/latest/meta-data",
    "https://192.168.1.1/",
    "https://0.0.0.0/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[fe80::1]/",
    "https://[fd00::1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://localhost/",
    "https://rebound.example/",
    "http://93.184.216.34/",
    "ftp://example.com/",
    "https://user:pw@example.com/",
    "smtp://example.com/",
]


@pytest.mark.parametrize("url", PRIVATE)
def test_what_is_not_public_is_never_called(org, settings, url):
    settings.OUTBOUND_OPEN_HOSTS = []
    note(endpoint(org, url))
    resolve = ["rebound.example:443:127.0.0.1", "localhost:443:127.0.0.1"]
    tell(transport=Transport(AddressPolicy(), resolve=resolve))
    (notice,) = WebhookDelivery.objects.all()
    (attempt,) = notice.attempts
    assert (notice.status, attempt["status"]) == (S.PENDING, None)
    assert attempt["error"] in {
        "the address is not public",
        "the address is not https",
        "not an address to call",
    }


def test_a_redirect_is_never_followed(org, settings):
    with Receiver() as inside, Receiver(307, headers={"Location": inside.url}) as outside:
        settings.OUTBOUND_OPEN_HOSTS = [f"127.0.0.1:{outside.port}"]
        note(endpoint(org, outside.url))
        tell()
        assert (len(outside.seen), inside.seen) == (1, [])


def test_a_url_with_what_no_url_has_fails_alone(org, receiver):
    note(endpoint(org, "https://hooks.example.com/\u00e9 \n"))
    note(endpoint(org, receiver.url))
    tell()
    assert states() == [(S.PENDING, 1), (S.DELIVERED, 1)]


def test_another_organizations_event_is_not_told(org, api, receiver):
    endpoint(org, receiver.url)
    api.send(message(factories.contact(org)))
    Event.objects.update(organization_id="other")
    tell()
    assert receiver.seen == []
    assert Delivery.objects.count() == 1
    assert uuid.UUID(str(WebhookDelivery.objects.get().event_id)) == Event.objects.get().pk
