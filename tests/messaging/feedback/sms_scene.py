"""An organization that sends SMS by a real service's account, to a gateway on this machine."""

from typing import Any
from uuid import UUID

import orjson
from django.test import Client

from messaging.feedback import callbacks
from messaging.models import Attempt, Delivery, ProviderAccount
from rme.core.cache import TtlCache
from rme.tenants.models import Organization
from rme.transport import AddressPolicy, Transport
from tests.fakes import http1
from tests.fakes.http1 import Http1Server
from tests.fakes.providers import SETTINGS, Call
from tests.rest import Api, message, work

ANSWERS: dict[str, tuple[int, bytes]] = {
    "twilio": (201, b'{"sid": "SM1"}'),
    "vonage": (202, b'{"message_uuid": "u"}'),
    "kannel": (202, b"0: Accepted for delivery"),
    "http_sms": (200, b'{"id": "1"}'),
}


class AccountScene:
    """One account of a service on this machine, which answers as its scene says."""

    status: int
    body: bytes
    headers: dict[str, str] | None = None
    account: ProviderAccount

    def __init__(self, org: Organization) -> None:
        self.org = org
        self.server = Http1Server(
            lambda c, _: http1.respond(c, self.status, self.body, self.headers)
        )
        self.transport = Transport(AddressPolicy(["127.0.0.1"]))

    def __exit__(self, *error: object) -> None:
        self.transport.close()
        self.server.__exit__(*error)

    @property
    def url(self) -> str:
        receiver = callbacks.find_account(self.account.public_id)
        assert receiver is not None
        return receiver.url

    def call(self, call: Call) -> int:
        """Call back; return the status of the answer."""
        return post(self.account.public_id, call)


class Scene(AccountScene):
    """One account and its gateway."""

    def __init__(self, org: Organization, kind: str, **fields: Any) -> None:
        self.kind = kind
        self.status, self.body = ANSWERS[kind]
        super().__init__(org)
        self.fields = fields

    def __enter__(self) -> "Scene":
        self.server.__enter__()
        address = self.server.url.rstrip("/")
        settings = self.fields.pop("settings", {})
        own = {"url" if self.kind == "http_sms" else "base_url": address}
        self.account = ProviderAccount.objects.create(
            organization=self.org,
            name=self.fields.pop("name", self.kind),
            kind=self.kind,
            channel="SMS",
            credentials=orjson.dumps({**SETTINGS[self.kind], **own, **settings}).decode(),
            **self.fields,
        )
        TtlCache.clear_all()
        return self

    def send(self, api: Api, person: Any, **fields: Any) -> str:
        """Send a message to a person and give its id."""
        answer = api.send(message(person, **{"channel": "SMS", **fields}))
        assert answer.status_code == 202
        work(self.transport)
        return str(answer.json()["messageId"])

    def texts(self) -> list[str]:
        """Return the raw requests that the gateway received."""
        return [f"{seen.path} {seen.body.decode()}" for seen in self.server.seen]


def post(public_id: str, call: Call) -> int:
    response = Client(enforce_csrf_checks=True).generic(
        call.method,
        f"/hooks/{public_id}?{call.query}",
        call.body,
        call.headers.get("content-type", "application/octet-stream"),
        headers=call.headers,
    )
    assert response.status_code < 500
    assert response.content == b""
    return response.status_code


def attempt() -> UUID:
    return Attempt.objects.latest("id").pk


def settle() -> int:
    """Apply what came in; gives how many calls that were."""
    return callbacks.apply_due()[0]


def state() -> str:
    return Delivery.objects.get().status
