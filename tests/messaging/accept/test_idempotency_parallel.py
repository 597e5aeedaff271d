"""Many concurrent requests with one Idempotency-Key: one message, and one answer."""

import copy
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections
from django.test import Client

from messaging.models import Delivery, IdempotencyKey, Message
from tests import factories
from tests.rest import error, message

pytestmark = pytest.mark.django_db(transaction=True)

THREADS = 10
"""As many as the pool has connections."""
IN_PROGRESS = error(
    "IDEMPOTENCY_IN_PROGRESS", "The first request with this Idempotency-Key is still running."
)


@pytest.fixture(autouse=True)
def _no_ceiling(org, redis):
    """Let no limit answer in place of the key."""
    type(org).objects.filter(pk=org.pk).update(calls_per_second=1_000_000)


def at_once(api, requests):
    """Send requests (body and key) by ten threads that start together; gives the answers."""
    start = threading.Barrier(THREADS)

    def some(mine):
        own = copy.copy(api)
        own.client = Client()
        try:
            start.wait(20)
            return [own.send(body, **{"Idempotency-Key": key}) for body, key in mine]
        finally:
            connections.close_all()

    with ThreadPoolExecutor(THREADS) as pool:
        shares = list(pool.map(some, [requests[i::THREADS] for i in range(THREADS)]))
    return [answer for share in shares for answer in share]


def accepted(answers):
    """Check that each answer is a 202 or the 409, and give the bodies of the 202s."""
    refused = [answer for answer in answers if answer.status_code == 409]
    assert [answer.json() for answer in refused] == [IN_PROGRESS] * len(refused)
    assert {answer["Retry-After"] for answer in refused} <= {"1"}
    rest = [answer for answer in answers if answer.status_code != 409]
    assert {answer.status_code for answer in rest} == {202}
    return Counter(answer.content for answer in rest)


@pytest.mark.promise("key-11")
def test_a_thousand_requests_with_one_key_are_one_message(api, org):
    body = message(factories.contact(org))
    answers = at_once(api, [(body, "order-42")] * 1000)
    assert len(answers) == 1000
    assert len(accepted(answers)) == 1
    first = [answer for answer in answers if answer.status_code == 202]
    assert sum("Idempotent-Replayed" not in answer for answer in first) == 1
    assert (Message.objects.count(), Delivery.objects.count()) == (1, 1)
    assert str(Message.objects.get().pk) == first[0].json()["messageId"]


@pytest.mark.promise("key-11")
def test_a_hundred_keys_used_ten_times_each_are_a_hundred_messages(api, org):
    """Every key is new to all ten at the same time: the race at the start, a hundred times."""
    body = message(factories.contact(org))
    requests = [(body, f"order-{i // THREADS}") for i in range(100 * THREADS)]
    answers = at_once(api, requests)
    assert len(answers) == 1000
    assert len(accepted(answers)) == 100
    assert (Message.objects.count(), IdempotencyKey.objects.count()) == (100, 100)


@pytest.mark.promise("key-11")
def test_a_key_of_many_bulks_at_once_stores_each_item_once(api, org):
    """Items share the scope of single sends; two bulks with the same keys cannot deadlock."""
    people = factories.contacts(org, 5)
    items = [message(person) | {"idempotencyKey": f"item-{i}"} for i, person in enumerate(people)]
    start = threading.Barrier(THREADS)

    def send(turn):
        own = copy.copy(api)
        own.client = Client()
        try:
            start.wait(20)
            ordered = items if turn % 2 else items[::-1]
            return own.bulk(ordered).json()["results"]
        finally:
            connections.close_all()

    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(send, range(THREADS)))
    ids = {result.get("messageId") for results in answers for result in results}
    assert (len(ids), Message.objects.count()) == (5, 5)
