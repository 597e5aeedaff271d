"""A REST client for tests: real tokens, whole answers."""

import base64
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import orjson
from django.test import Client

from messaging.delivery import claims, deliver
from messaging.domain.channels import Channel
from messaging.feedback import receipts
from messaging.models import Event
from messaging.store import event_view
from rme.core.outbound import outbound_transport
from rme.tenants.models import Application, Organization
from rme.tenants.oauth import applications, clients, tokens
from rme.transport import Transport
from tests import factories
from tests.sending import PROCESS

FORM = "application/x-www-form-urlencoded"
TOKEN_SECONDS = 3600
REQUEST_ID = "7b0f9f0e-6a53-4a0b-9a53-0d6d8f3c2a11"


def instant(moment: datetime) -> str:
    """Return an instant as answers have it: without a fraction if its milliseconds are 000."""
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z").replace(".000Z", "Z")


def token(client_id: str, secret: str, **fields: str) -> Any:
    """Request a token; return the response."""
    form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
    return Client().post("/services/oauth2/token", urlencode({**form, **fields}), FORM)


def issued_token(application: Application) -> str:
    """Store an access token as the token endpoint does, and return it.

    Most tests begin with one, and few are about how it was requested.
    """
    issued, client = tokens.new(), clients.find(application.client_id)
    assert client is not None
    assert tokens.store(issued, client, scope=tokens.SCOPE, seconds=TOKEN_SECONDS)
    return issued


def basic(client_id: str, secret: str) -> str:
    """Return the header `Authorization` of a client's id and secret."""
    return "Basic " + base64.b64encode(f"{client_id}:{secret}".encode()).decode()


class Api:
    """Calls the REST API as a program of one organization."""

    def __init__(self, org: Organization, mode: str = Application.Mode.LIVE) -> None:
        self.org = org
        self.user = factories.integration_user(f"integration-{org.pk}-{mode}")
        self.application, self.secret = applications.create_application(
            org, "tests", self.user, mode
        )
        self.client = Client()
        self.token = issued_token(self.application)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Call a path below /rme/v1; return the response."""
        content = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
        given = {"Authorization": f"Bearer {self.token}", "X-Request-Id": REQUEST_ID, **headers}
        return self.client.generic(
            method,
            f"/rme/v1{path}",
            content or b"",
            headers.pop("Content-Type", "application/json"),
            headers=given,
        )

    def send(self, body: Any, **headers: str) -> Any:
        return self.call("POST", "/messages", body, **headers)

    def bulk(self, bodies: list[Any], **headers: str) -> Any:
        return self.call("POST", "/messages/bulk", {"messages": bodies}, **headers)

    def get(self, message_id: str) -> Any:
        return self.call("GET", f"/messages/{message_id}").json()


def message(*people: Any, **fields: Any) -> dict[str, Any]:
    """Build a request to send the template `welcome`."""
    body = {
        "channel": "EMAIL",
        "category": "TRANSACTIONAL",
        "to": [{"contactId": str(person.pk)} for person in people],
        "template": {"name": "welcome", "language": "en_US"},
        "context": {"variables": {"note": "hello"}},
        **fields,
    }
    return {name: value for name, value in body.items() if value is not None}


def error(code: str, text: str, *details: tuple[str, str], message_id: Any = None) -> Any:
    """Build the whole body of an error."""
    return {
        "error": {
            "code": code,
            "message": text,
            "messageId": message_id,
            "requestId": REQUEST_ID,
            "details": [{"field": field, "message": why} for field, why in details],
        }
    }


def work(transport: Transport | None = None, *, once: bool = False) -> int:
    """Send as the workers do until nothing is ready; return the number of windows.

    A delivery with a random backoff may be ready again at once: `once` leaves it.
    """
    windows = 0
    for channel in Channel:
        while (waiting := claims.ready(channel)) and not (once and windows):
            for priority, organization_id in claims.choose(waiting):
                window = claims.claim(organization_id, channel, priority)
                own = transport or outbound_transport()
                deliver.deliver([window], own, PROCESS, receipts.apply)
                windows += 1
    return windows


def events(message_id: str) -> list[str]:
    """Return the types of a message's events, in their order."""
    return [each.type for each in all_events() if str(each.message_id) == str(message_id)]


def all_events(*types: str) -> list[Event]:
    """Return the events of all messages, of these types if any are named, by id."""
    events = event_view.select("true", "true", "true")
    found = Event.objects.raw(f"SELECT * FROM {events} found ORDER BY id")
    return [each for each in found if not types or each.type in types]
