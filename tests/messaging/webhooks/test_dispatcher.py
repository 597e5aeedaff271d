"""The dispatcher: what is sent, and which addresses are refused."""

import time
import uuid
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from django.db import connection
from standardwebhooks.webhooks import WebhookVerificationError

from messaging.models import Delivery, Message, WebhookDelivery, WebhookEndpoint
from messaging.webhooks import delivery_log, endpoints
from rme.core import ids
from rme.core.db.clock import iso
from rme.transport import AddressPolicy, Transport
from tests import factories
from tests.messaging.webhooks.dispatcher_scene import queue, states
from tests.messaging.webhooks.webhook_scene import Receiver, dispatch_all, endpoint, verified
from tests.rest import all_events, message, work

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback")]
S = WebhookDelivery.Status


# --- what is sent ---------------------------------------------------------------------------------


@pytest.mark.promise("request-1")
def test_a_payload_holds_the_whole_event(api, org, receiver):
    row = endpoint(org, f"{receiver.url}hook?a=1", "message.sent")
    ada = factories.contact(org)
    sent = api.send(message(ada, metadata={"order": "7"})).json()["messageId"]
    work()
    dispatch_all()
    (seen,) = receiver.seen
    (event,) = all_events("sent")
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


def test_a_refusal_has_its_reason_in_the_payload(api, org, receiver):
    endpoint(org, receiver.url)
    api.send(message(factories.contact(org, email="", mobile="")))
    dispatch_all()
    (seen,) = receiver.seen
    payload = orjson.loads(seen.body)
    assert (payload["type"], payload["data"]["status"], payload["data"]["detail"]) == (
        "message.blocked",
        "BLOCKED",
        {"reason": "UNREACHABLE"},
    )


def test_test_webhook_has_its_own_body(org, receiver):
    row = endpoint(org, receiver.url, "message.sent", description="CRM")
    (identifier,) = queue(row)
    dispatch_all()
    (seen,) = receiver.seen
    assert seen.header("webhook-id") == str(identifier)
    at = iso(ids.moment(identifier))
    assert verified(seen, row.secret) == [
        {"type": "webhook.test", "timestamp": at, "data": {"endpoint": "CRM"}}
    ]


@pytest.mark.promise("webhooks-6")
def test_both_secrets_sign_for_a_day(org, receiver):
    row = endpoint(org, receiver.url)
    fresh = endpoints.rotate_secret(row)
    queue(row)
    dispatch_all()
    WebhookEndpoint.objects.update(former_until=datetime.now(UTC) - timedelta(seconds=1))
    queue(row)
    dispatch_all()
    both, one = receiver.seen
    assert len(both.header("webhook-signature").split()) == 2
    assert len(verified(both, row.secret, fresh)) == 2
    assert len(verified(one, fresh)) == 1
    with pytest.raises(WebhookVerificationError):
        verified(one, row.secret)
    delivery_log.purge()
    stored = WebhookEndpoint.objects.get()
    assert (stored.secret, stored.former_secret, stored.former_until) == (fresh, "", None)


def test_secrets_are_encrypted_in_the_database(org):
    row = endpoint(org, "https://hooks.example.com/")
    endpoints.rotate_secret(row)
    with connection.cursor() as cursor:
        cursor.execute("SELECT secret || former_secret FROM messaging_webhookendpoint")
        (stored,) = cursor.fetchone()
    assert "whsec_" not in stored


def test_delivery_without_its_event_fails(api, org, receiver):
    endpoint(org, receiver.url, "message.accepted")
    for _ in range(3):
        api.send(message(factories.contact(org)))
    first, second, _ = all_events("accepted")
    Delivery.objects.filter(pk=first.pk).delete()
    Message.objects.filter(pk=second.message_id).delete()
    dispatch_all()
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


@pytest.mark.promise("webhooks-10")
@pytest.mark.parametrize("url", PRIVATE)
def test_a_non_public_address_is_never_called(org, settings, url):
    settings.OUTBOUND_OPEN_HOSTS = []
    queue(endpoint(org, url))
    resolve = ["rebound.example:443:127.0.0.1", "localhost:443:127.0.0.1"]
    dispatch_all(transport=Transport(AddressPolicy(), resolve=resolve))
    (delivery,) = WebhookDelivery.objects.all()
    (attempt,) = delivery.attempts
    assert (delivery.status, attempt["status"]) == (S.PENDING, None)
    assert attempt["error"] in {
        "the address is not public",
        "the address is not https",
        "not an address to call",
    }


@pytest.mark.promise("webhooks-10")
def test_a_redirect_is_never_followed(org, settings):
    with Receiver() as inside, Receiver(307, headers={"Location": inside.url}) as outside:
        settings.OUTBOUND_OPEN_HOSTS = [f"127.0.0.1:{outside.port}"]
        queue(endpoint(org, outside.url))
        dispatch_all()
        assert (len(outside.seen), inside.seen) == (1, [])


def test_an_invalid_url_fails_alone(org, receiver):
    queue(endpoint(org, "https://hooks.example.com/\u00e9 \n"))
    queue(endpoint(org, receiver.url))
    dispatch_all()
    assert states() == [(S.PENDING, 1), (S.DELIVERED, 1)]


def test_another_organizations_event_is_not_delivered(org, api, receiver):
    endpoint(org, receiver.url)
    api.send(message(factories.contact(org)))
    (event,) = all_events()
    Delivery.objects.update(organization_id="other")
    dispatch_all()
    assert receiver.seen == []
    assert Delivery.objects.count() == 1
    assert uuid.UUID(str(WebhookDelivery.objects.get().event_id)) == event.pk
