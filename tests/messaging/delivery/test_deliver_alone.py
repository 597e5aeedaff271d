"""What one delivery raises ends that one alone; what many texts cost leaves others their turn."""

from collections import deque
from time import monotonic

import pytest
from django.db import connection

from messaging import providers
from messaging.content.outgoing import OutgoingRenderer
from messaging.delivery import claims, deliver, prepare
from messaging.feedback import receipts
from messaging.models import Attempt, Delivery, MessageContent, ProviderAccount
from messaging.policy import organization_policy
from messaging.providers.simulator import Simulator
from rme.core.outbound import outbound_transport
from rme.core.outcomes import Accepted
from rme.transport import AddressPolicy, Failure, Reply, Request, Transport
from tests import factories
from tests.fakes.http1 import Http1Server, respond
from tests.messaging.delivery.slow_scene import statuses
from tests.rest import Api, events, message, work
from tests.sending import PROCESS

pytestmark = pytest.mark.django_db


def poison(body):
    """Let what one message was given be something that no accept would have stored."""
    victim = Delivery.objects.order_by("id")[1]
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {MessageContent._meta.db_table} SET body = %s::jsonb WHERE id = %s",
            [body, victim.message_id],
        )
    return victim


@pytest.mark.parametrize(
    "body",
    [
        '{"content": 7, "variables": [], "sender": {}}',  # composing it raises
        '{"variables": {"note": {"a": 1}}, "recipients": 5, "sender": 1}',
        "[1, 2]",
        '{"variables": {"note": 1e400}, "sender": {"local_part": 5, "domain": "x", "name": ""}}',
        '"text"',
        "null",
    ],
)
def test_uncomposable_or_unreadable_delivery_fails_alone(api, org, body):
    api.bulk([message(person) for person in factories.contacts(org, 20)])
    victim = poison(body)
    work()
    assert statuses() == {"DELIVERED": 19, "FAILED": 1}
    failed = Delivery.objects.get(status="FAILED")
    assert (failed.pk, failed.reason) == (victim.pk, "TEMPLATE_ERROR")
    assert events(victim.message_id) == ["accepted", "failed"]


class Puzzled(Simulator):
    """A provider that stumbles over one answer, and over one message when it writes it."""

    kind = "puzzled"
    url = ""

    def send(self, dispatches, transport, progress=None):
        return super(Simulator, self).send(dispatches, transport, progress or (lambda known: None))

    def request(self, dispatch):
        if dispatch.content.to.startswith("person1@"):
            raise LookupError
        return Request(self.url, dispatch.content.to.encode())

    def outcome(self, reply: Reply | Failure):
        assert isinstance(reply, Reply)
        return Accepted(str(1 // (reply.status - 201)))


def test_unwritable_or_unclassifiable_delivery_ends_alone(api, org, monkeypatch):
    monkeypatch.setitem(providers.REGISTRY, "puzzled", Puzzled)
    ProviderAccount.objects.create(
        organization=org, name="puzzled", kind="puzzled", channel="EMAIL", credentials="{}"
    )

    def answer(sock, seen):
        respond(sock, 201 if seen.body.startswith(b"person2@") else 200, b"")

    api.bulk([message(person) for person in factories.contacts(org, 20)])
    with Http1Server(answer) as server:
        monkeypatch.setattr(Puzzled, "url", server.url)
        work(Transport(AddressPolicy(["127.0.0.1"])))
    assert statuses() == {"SENT": 18, "FAILED": 1, "UNKNOWN": 1}
    assert Delivery.objects.get(status="UNKNOWN").address.startswith("person2@")
    assert Delivery.objects.get(status="FAILED").address.startswith("person1@")


def test_provider_id_with_invalid_characters_is_stored(api, org, script):
    script("mail", Accepted("id\0\ud800" + "x" * 300))
    api.send(message(factories.contact(org)))
    work()
    assert Attempt.objects.get().provider_id == "id�?" + "x" * 251
    assert statuses() == {"SENT": 1}


# --- the budget of rendering ----------------------------------------------------------------------

COSTLY = "{% for a in (1..1000) %}" * 3 + "x" + "{% endfor %}" * 3
"""A text that uses up all that a render may, and fails."""


@pytest.fixture
def costly(org):
    factories.template(org, name="costly", text=COSTLY)
    return {"template": {"name": "costly"}}


def test_rendering_looks_at_the_clock_between_two_texts(api, org):
    api.bulk([message(person) for person in factories.contacts(org, 20)])
    claim = claims.claim(org.pk, "EMAIL", 0)
    preparation = prepare.Preparation(
        claim, organization_policy.of(org.pk), None, OutgoingRenderer()
    )
    fresh = deque(claim.deliveries)
    assert len(preparation.take(fresh, 50, monotonic() - 1)) == 1
    assert len(preparation.take(fresh, 5, monotonic() + 60)) == 5
    assert len(fresh) == 14


def test_costly_failing_texts_return_the_rest_of_the_claim_in_time(api, org, costly):
    api.bulk([message(person, **costly) for person in factories.contacts(org, 400)])
    claim = claims.claim(org.pk, "EMAIL", 0)
    count = deliver.deliver([claim], outbound_transport(), PROCESS, receipts.apply)[org.pk]
    found = statuses()
    assert 1 <= count <= 300  # each may cost 10,000 turns of a loop
    assert found == {"FAILED": count, "ACCEPTED": 400 - count}
    assert set(Delivery.objects.filter(status="FAILED").values_list("reason", flat=True)) == {
        "TEMPLATE_ERROR"
    }


def test_ready_messages_leave_before_all_costly_ones_are_rendered(api, org, costly):
    people = factories.contacts(org, 400)
    api.bulk([message(people[0])])
    api.bulk([message(person, **costly) for person in people])
    claim = claims.claim(org.pk, "EMAIL", 0)
    deliver.deliver([claim], outbound_transport(), PROCESS, receipts.apply)
    assert statuses()["DELIVERED"] == 1
    assert statuses()["ACCEPTED"] >= 10


def test_another_organization_gets_its_turn_in_between(api, org, costly):
    other = factories.organization("other")
    factories.welcome(other)
    api.bulk([message(person, **costly) for person in factories.contacts(org, 400)])
    Api(other).bulk([message(person) for person in factories.contacts(other, 10)])
    for priority, organization_id in claims.choose(claims.ready("EMAIL")):
        claim = claims.claim(organization_id, "EMAIL", priority)
        deliver.deliver([claim], outbound_transport(), PROCESS, receipts.apply)
    assert statuses(organization_id="other") == {"DELIVERED": 10}
    assert statuses(organization_id=org.pk)["ACCEPTED"] >= 80
