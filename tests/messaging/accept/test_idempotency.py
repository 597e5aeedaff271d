"""Idempotency keys: replayed, reused, in progress, in bulks, and when a key stays free."""

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from messaging.models import IdempotencyKey, Message, SendingRules, Suppression
from rme.core.cache import TtlCache
from tests import factories
from tests.rest import Api, error, message, work
from tests.threads import at_once

pytestmark = pytest.mark.django_db

KEY = {"Idempotency-Key": "order-42"}


@pytest.mark.promise("key-2", "key-4", "faults-13")
def test_same_key_gives_the_same_bytes_and_sends_nothing_again(api, org):
    body = message(factories.contact(org))
    first = api.send(body, **KEY)
    again = api.send(dict(reversed(body.items())), **KEY)  # member order does not count
    assert (again.status_code, again.content) == (202, first.content)
    assert (first.get("Idempotent-Replayed"), again["Idempotent-Replayed"]) == (None, "true")
    assert Message.objects.count() == 1


@pytest.mark.promise("key-5")
def test_quoted_and_bare_are_the_same_key(api, org):
    body = message(factories.contact(org))
    first = api.send(body, **KEY)
    assert api.send(body, **{"Idempotency-Key": '"order-42"'}).content == first.content


@pytest.mark.promise("errors-18")
def test_same_key_with_another_request_is_refused(api, org):
    person = factories.contact(org)
    api.send(message(person), **KEY)
    response = api.send(message(person, metadata={"a": "b"}), **KEY)
    assert (response.status_code, response.json()) == (
        422,
        error("IDEMPOTENCY_KEY_REUSED", "This Idempotency-Key was used for another request."),
    )


@pytest.mark.promise("key-1")
@pytest.mark.parametrize("key", ["", "\x07", "x" * 256, "ümlaut"])
def test_bad_key_is_named(api, org, key):
    response = api.send(message(factories.contact(org)), **{"Idempotency-Key": key})
    assert response.json()["error"]["details"] == [
        {"field": "Idempotency-Key", "message": "must be 1 to 255 printable characters"}
    ]


@pytest.mark.promise("key-2")
def test_a_refusal_is_replayed_too(api, org):
    person = factories.contact(org)
    entry = Suppression.objects.create(
        organization=org, channel="EMAIL", address=person.email, reason="MANUAL"
    )
    first = api.send(message(person), **KEY)
    entry.delete()
    again = api.send(message(person), **KEY)
    assert (again.status_code, again.content) == (403, first.content)


@pytest.mark.promise("key-12")
def test_a_failed_validation_does_not_use_the_key(api, org):
    person = factories.contact(org)
    assert api.send(message(person, category="NOPE"), **KEY).status_code == 400
    assert api.send(message(person), **KEY).status_code == 202


@pytest.mark.promise("key-10")
def test_scope_is_organization_and_application(api, org):
    person = factories.contact(org)
    body = message(person)
    first = api.send(body, **KEY).json()
    second = Api(org, mode="TEST").send(body, **KEY).json()
    assert first["messageId"] != second["messageId"]


@pytest.mark.promise("errors-16")
@pytest.mark.django_db(transaction=True)
def test_in_progress_while_the_first_runs(api, org):
    body = message(factories.contact(org))
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        name = f"{org.pk}\n{api.application.pk}\norder-42"
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(hashtextextended(%s, 1))", [name])
            held.set()
            release.wait(10)
            cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 1))", [name])
        connections.close_all()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    response = api.send(body, **KEY)
    release.set()
    thread.join()
    assert (response.status_code, response["Retry-After"], response.json()) == (
        409,
        "1",
        error(
            "IDEMPOTENCY_IN_PROGRESS",
            "The first request with this Idempotency-Key is still running.",
        ),
    )
    assert api.send(body, **KEY).status_code == 202


@pytest.mark.promise("key-8")
def test_bulk_header_covers_the_whole_call(api, org):
    people = factories.contacts(org, 3)
    first = api.bulk([message(person) for person in people], **KEY)
    again = api.bulk([message(person) for person in people], **KEY)
    assert (again.status_code, again.content) == (202, first.content)
    assert again["Idempotent-Replayed"] == "true"
    assert Message.objects.count() == 3


@pytest.mark.promise("key-9")
def test_bulk_may_have_the_key_of_one_of_its_items(api, org):
    ada, bob = factories.contacts(org, 2)
    items = [message(ada) | {"idempotencyKey": "order-42"}, message(bob)]
    first = api.bulk(items, **KEY)
    again = api.bulk(items, **KEY)
    assert (first.status_code, again.content) == (202, first.content)
    assert Message.objects.count() == 2


@pytest.mark.promise("key-9")
def test_bulk_items_share_the_scope_of_single_sends(api, org):
    ada, bob = factories.contacts(org, 2)
    single = api.send(message(ada), **KEY).json()
    items = [message(ada) | {"idempotencyKey": "order-42"}, message(bob)]
    results = api.bulk(items).json()["results"]
    assert results[0] == {"index": 0, **single}
    assert Message.objects.count() == 2


@pytest.mark.promise("key-9")
def test_the_same_key_twice_in_one_bulk_sends_once(api, org):
    item = message(factories.contact(org)) | {"idempotencyKey": "k"}
    other = {**item, "metadata": {"a": "b"}}
    results = api.bulk([item, item, other]).json()["results"]
    assert results[0] == {**results[1], "index": 0}
    assert results[2]["error"]["code"] == "IDEMPOTENCY_KEY_REUSED"
    assert Message.objects.count() == 1


@pytest.mark.promise("key-6")
@pytest.mark.django_db(transaction=True)
def test_an_expired_key_may_be_used_again(api, org):
    body = message(factories.contact(org))
    first = api.send(body, **KEY).json()
    IdempotencyKey.objects.update(expires_at=datetime.now(UTC) - timedelta(seconds=1))
    again = api.send(body, **KEY)
    assert again.status_code == 202
    assert again.json()["messageId"] != first["messageId"]


@pytest.mark.django_db(transaction=True)
def test_a_message_with_an_expired_key_counts_once_and_deletes_no_other_key(api, org, redis):
    SendingRules.objects.create(organization=org, sends_per_day=4)
    TtlCache.clear_all()
    body = message(factories.contact(org))
    for key in ("order-42", "another"):
        api.send(body, **{"Idempotency-Key": key})
    IdempotencyKey.objects.update(expires_at=datetime.now(UTC) - timedelta(hours=1))
    assert api.send(body, **KEY).status_code == 202
    assert [api.send(body).status_code for _ in range(2)] == [202, 429]
    assert set(IdempotencyKey.objects.values_list("key", flat=True)) == {"order-42", "another"}


@pytest.mark.django_db(transaction=True)
def test_parallel_requests_with_one_key_make_one_message(api, org):
    body = message(factories.contact(org))

    def call() -> tuple[int, bytes]:
        response = api.send(body, **KEY)
        return response.status_code, response.content

    answers = at_once(call, 40)
    assert Message.objects.count() == 1
    assert {status for status, _ in answers} <= {202, 409}
    assert len({content for status, content in answers if status == 202}) == 1


@pytest.fixture
def unlimited(org):
    """Let the organization call as often as it likes."""
    org.calls_per_second = 100_000
    org.save()
    TtlCache.clear_all()


def replayed(call) -> list[tuple[int, bytes, str | None]]:
    """Call 1,000 times from 20 threads at once, and return the distinct answers."""

    def answers() -> list[tuple[int, bytes, str | None]]:
        found = [call() for _ in range(50)]
        return [(each.status_code, each.content, each.get("Idempotent-Replayed")) for each in found]

    return list({answer for each in at_once(answers, 20) for answer in each})


@pytest.mark.promise("errors-17")
@pytest.mark.django_db(transaction=True)
def test_a_finished_key_is_replayed_to_any_number_at_once(api, org, unlimited):
    body = message(factories.contact(org))
    first = api.send(body, **KEY)
    assert replayed(lambda: api.send(body, **KEY)) == [(202, first.content, "true")]
    assert Message.objects.count() == 1


@pytest.mark.promise("errors-17")
@pytest.mark.django_db(transaction=True)
def test_a_finished_bulk_is_replayed_to_any_number_at_once(api, org, unlimited):
    items = [message(each) for each in factories.contacts(org, 2)]
    first = api.bulk(items, **KEY)
    assert replayed(lambda: api.bulk(items, **KEY)) == [(202, first.content, "true")]
    assert Message.objects.count() == 2


@pytest.mark.promise("errors-17")
@pytest.mark.django_db(transaction=True)
def test_finished_keys_of_items_are_replayed_to_any_number_at_once(api, org, unlimited):
    people = factories.contacts(org, 3)
    items = [message(each) | {"idempotencyKey": f"k{n}"} for n, each in enumerate(people)]
    first = api.bulk(items)
    assert replayed(lambda: api.bulk(items)) == [(202, first.content, None)]
    assert Message.objects.count() == 3


@pytest.mark.promise("errors-16")
@pytest.mark.django_db(transaction=True)
def test_key_of_a_waiting_request_is_in_progress(api, org):
    """`Prefer: wait` stores its message, and with it a first answer, long before it ends."""
    body = message(factories.contact(org))
    waiting = []
    call = threading.Thread(
        target=lambda: (
            waiting.append(api.send(body, Prefer="wait=30", **KEY)),
            connections.close_all(),
        )
    )
    call.start()
    while not IdempotencyKey.objects.exists():
        time.sleep(0.01)
    assert api.send(body, **KEY).status_code == 409
    work()  # ends the wait
    call.join()
    again = api.send(body, **KEY)
    assert (again.status_code, again.content) == (waiting[0].status_code, waiting[0].content)


def test_a_replay_reads_and_locks_by_one_statement_and_commits_another(api, org):
    body = message(factories.contact(org))
    api.send(body, **KEY)
    with CaptureQueriesContext(connection) as captured:
        api.send(body, **KEY)
    found = [each["sql"] for each in captured if "advisory" in each["sql"]]
    assert (len(found), len(captured)) == (2, 3)
