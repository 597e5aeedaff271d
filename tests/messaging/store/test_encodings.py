"""What attempts and contents store shorter than it is read, by this release and the one before."""

from uuid import UUID

import pytest

from messaging.consent.data_export import export_contact
from messaging.models import Attempt, Delivery
from messaging.reports import queries
from messaging.store import event_view
from messaging.store.encodings import body_of, provider_id_of, short_provider_id, stored_body
from messaging.store.lookups import of_message
from tests import factories
from tests.rest import message, work

pytestmark = pytest.mark.django_db
DELIVERY = "019a0000-0000-7000-8000-000000000001"
PROVIDER_IDS = {
    f"{DELIVERY}@acme.example": "@acme.example",
    f"{DELIVERY}@": "@",
    f"{DELIVERY}@@acme.example": f"{DELIVERY}@@acme.example",
    f"{DELIVERY}-1": f"{DELIVERY}-1",
    DELIVERY: DELIVERY,
    "@acme.example": "@@acme.example",
    "@@": "@@@",
    "queue-1": "queue-1",
}


@pytest.mark.parametrize("given", PROVIDER_IDS)
def test_shortened_provider_id_is_read_back(given):
    stored = short_provider_id(given, DELIVERY)
    assert stored == PROVIDER_IDS[given]
    assert provider_id_of(Attempt(delivery_id=UUID(DELIVERY), provider_id=stored)) == given


@pytest.mark.parametrize("count", [1, 2])
def test_attempts_are_read_whole(api, org, count):
    people = factories.contacts(org, count)
    key = api.send(message(*people)).json()["messageId"]
    work()
    first, *others = _attempts(key)
    assert first.message_id is None
    assert [row.message_id for row in others] == [UUID(key)] * (count - 1)
    events = event_view.of_message(UUID(key), [first.delivery_id])
    assert {row.message_id for row in events} == {UUID(key)}
    for stored in (*PROVIDER_IDS.values(), None):
        Attempt.objects.filter(pk=first.pk).update(provider_id=stored)
        first.provider_id = stored
        found = export_contact(org.pk, str(people[0].pk))
        [attempt] = found["messages"][0]["attempts"]
        assert (attempt["message_id"], attempt["provider_id"]) == (key, provider_id_of(first))
        [shown] = [
            step.provider_id
            for step in queries.detail(org.pk, key, with_trace=True).trace[0].steps
            if step.step == "ATTEMPT"
        ]
        assert shown == provider_id_of(first)


def _attempts(message_id):
    deliveries = Delivery.objects.filter(of_message(message_id)).order_by("position")
    return [Attempt.objects.get(delivery_id=row.pk) for row in deliveries]


def test_a_sender_of_the_release_before_is_read():
    sender = {"domain": "acme.example", "local_part": "news", "name": ""}
    assert body_of({"sender": sender}) == {"sender": sender}
    assert body_of(stored_body({"sender": sender})) == {"sender": sender}
    assert body_of({}) == {}
