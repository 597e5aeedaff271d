"""Live data of an organization, and a call of each route that could touch it."""

from datetime import UTC, datetime, timedelta

from django.core import serializers

from messaging.models import (
    ConsentEntry,
    Delivery,
    Message,
    Suppression,
    WebhookEndpoint,
)
from push.models import Device
from tests import factories
from tests.rest import message

URL = "https://hooks.example.com/"


LATER = {"mode": "AT", "at": (datetime.now(UTC) + timedelta(days=2)).isoformat()}


LIVE_DATA = (Message, Delivery, ConsentEntry, Suppression, WebhookEndpoint, Device)


class Live:
    """Live data of an organization, and its ids."""

    def __init__(self, api, org, person):
        factories.device(org, person, "simulator-delivered-live")
        self.message = api.send(message(person, schedule=LATER)).json()["messageId"]
        api.call("POST", "/consent", decision(person, "OPTED_OUT"))
        body = {"channel": "EMAIL", "address": "x@live.example", "reason": "MANUAL"}
        self.suppression = api.call("POST", "/suppressions", body).json()["id"]
        made = api.call("POST", "/webhook-endpoints", {"url": URL, "types": ["message.*"]})
        self.endpoint = made.json()["id"]
        self.device = str(Device.objects.get().pk)

    @staticmethod
    def rows():
        """Return the live rows as they are."""
        return [
            serializers.serialize("json", model._default_manager.order_by("pk"))
            for model in LIVE_DATA
        ]


def decision(person, status, category="MARKETING"):
    given = {"contactId": str(person.pk), "channel": "EMAIL", "category": category}
    return {**given, "status": status, "source": "API"}


def calls(live, person):
    """Return a call of each route: its body, its answer's status, and what it must not contain."""
    own = {"contactId": str(person.pk)}
    return {
        ("GET", "messages"): ("/messages", None, 200),
        ("POST", "messages"): ("/messages", message(person), 202),
        ("POST", "messages/bulk"): ("/messages/bulk", {"messages": [message(person)]}, 202),
        ("GET", "messages/<str:message_id>"): (f"/messages/{live.message}", None, 404),
        ("DELETE", "messages/<str:message_id>"): (f"/messages/{live.message}", None, 404),
        ("GET", "consent"): ("/consent?history=true", None, 200),
        ("POST", "consent"): ("/consent", decision(person, "OPTED_IN"), 201),
        ("GET", "devices"): ("/devices", None, 200),
        ("POST", "devices"): (
            "/devices",
            {**own, "platform": "ANDROID", "token": "simulator-delivered-live"},
            201,
        ),
        ("GET", "devices/vapid-key"): ("/devices/vapid-key", None, 200),
        ("DELETE", "devices/<str:device_id>"): (f"/devices/{live.device}", None, 404),
        ("POST", "devices/<str:device_id>/replace"): (
            f"/devices/{live.device}/replace",
            {"token": "simulator-x"},
            404,
        ),
        ("GET", "health"): ("/health", None, 200),
        ("GET", "templates"): ("/templates", None, 200),
        ("POST", "templates/<str:name>/render"): (
            "/templates/welcome/render",
            {"language": "en_US", "channel": "EMAIL"},
            200,
        ),
        ("GET", "suppressions"): ("/suppressions", None, 200),
        ("POST", "suppressions"): (
            "/suppressions",
            {"channel": "EMAIL", "address": "x@live.example", "reason": "COMPLAINT"},
            201,
        ),
        ("DELETE", "suppressions"): (
            "/suppressions?channel=EMAIL&address=y@live.example",
            None,
            404,
        ),
        ("GET", "suppressions/<str:suppression_id>"): (
            f"/suppressions/{live.suppression}",
            None,
            404,
        ),
        ("DELETE", "suppressions/<str:suppression_id>"): (
            f"/suppressions/{live.suppression}",
            None,
            404,
        ),
        ("GET", "webhook-endpoints"): ("/webhook-endpoints", None, 200),
        ("POST", "webhook-endpoints"): (
            "/webhook-endpoints",
            {"url": f"{URL}test", "types": ["consent.changed"]},
            201,
        ),
        **{
            (method, f"webhook-endpoints/<str:endpoint_id>{path}"): (
                f"/webhook-endpoints/{live.endpoint}{path}",
                body,
                404,
            )
            for method, path, body in (
                ("GET", "", None),
                ("PATCH", "", {"url": f"{URL}evil"}),
                ("DELETE", "", None),
                ("POST", "/rotate-secret", None),
                ("POST", "/test", None),
                ("POST", "/replay", {}),
            )
        },
    }
