"""Push services that misbehave, and messages that go to them.

From rows in the database to outcomes, over TLS to real HTTP/2 servers on loopback. What was
certainly not taken is sent again by itself. What may have been taken is UNKNOWN; with push that is
sent again as well, under the same key, so that the device shows it once.
"""

import json
import time
from collections import Counter
from dataclasses import dataclass, field

from messaging.delivery import sweeper
from messaging.models import Attempt, Delivery, ProviderAccount
from push.models import Device, token_digest
from tests import factories
from tests.fakes import apns as fake_apns
from tests.fakes.http2 import Http2Server
from tests.fakes.tls import ca_pem
from tests.push.subscriptions import Browser
from tests.rest import message, work

PLATFORMS = {"apns": "IOS", "webpush": "WEB"}
REFUSED = ("Retryable", "the stream was refused")


@dataclass
class Service:
    """A push service; `script` answers a stream, and gives None for the usual answer."""

    kind: str
    script: object = lambda connection, stream: None
    settings: dict[str, int] = field(default_factory=dict)
    taken: list[str] = field(default_factory=list)
    """The messages that it has answered with a yes, by their collapse keys."""

    def __post_init__(self):
        self.server = Http2Server(self._answer, **self.settings)

    def __enter__(self):
        self.server.__enter__()
        return self

    def __exit__(self, *error):
        self.server.__exit__(*error)

    def take(self, connection, stream):
        names = {"apns": "apns-collapse-id", "webpush": "topic"}
        self.taken.append(stream.headers[names[self.kind]])
        connection.respond(stream, 200 if self.kind == "apns" else 201)

    def _answer(self, connection, stream):
        scripted = self.script(connection, stream)
        return self.take(connection, stream) if scripted is None else scripted


def account(org, kind, port, *, timeout=5.0, name=None):
    """Let an organization push by a service on this machine."""
    settings = {
        "apns": fake_apns.settings(port, ca_pem(), timeout),
        "webpush": {"subject": "mailto:a@b.example", "ca_pem": ca_pem(), "timeout": timeout},
    }
    return ProviderAccount.objects.create(
        organization=org, name=name or kind, kind=kind, channel="PUSH",
        credentials=json.dumps(settings[kind]),
    )  # fmt: skip


def people(org, kind, port, count, start=0):
    """Make contacts with one device each at a service."""
    made = factories.contacts(org, count)
    browser = Browser(f"https://localhost:{port}/x")
    for number, person in enumerate(made, start):
        subscription = {**browser.subscription, "endpoint": f"https://localhost:{port}/{number}"}
        token = f"{number:064x}" if kind == "apns" else json.dumps(subscription)
        Device.objects.create(
            organization=org, contact_id=str(person.pk), platform=PLATFORMS[kind],
            token=token, token_digest=token_digest(token),
        )  # fmt: skip
    return made


def accept(api, made):
    answer = api.bulk([message(person, channel="PUSH") for person in made])
    assert {result["status"] for result in answer.json()["results"]} == {"ACCEPTED"}


def send(api, org, worker, service, count):
    """Let an organization push so many messages by a service."""
    port = service.server.port
    account(org, service.kind, port)
    accept(api, people(org, service.kind, port, count))
    work(worker)


def standing():
    return Counter(Delivery.objects.values_list("status", flat=True))


def attempts():
    return Counter(Attempt.objects.values_list("outcome", "reason"))


def later(worker, redis):
    """Let all waiting be over, and work again."""
    redis.flushdb()
    Delivery.objects.filter(status__in=["ACCEPTED", "UNKNOWN"]).update(due_at="2020-01-01T00:00Z")
    sweeper.resolve_unknown()
    work(worker)


def settle(worker, redis, count):
    """Work until all are sent: libcurl finds a second later that an HTTP/2 connection has ended,
    and what would have gone over it meanwhile is not sent.
    """
    for _ in range(10):
        later(worker, redis)
        if standing() == {"SENT": count}:
            return
        time.sleep(0.3)
    raise AssertionError(standing(), attempts())


def once_each(service, count):
    """Return whether the service has taken each message, and none twice."""
    return len(service.taken) == len(set(service.taken)) == count
