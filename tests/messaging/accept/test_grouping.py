"""Single calls that are accepted together: what each gets, and what it costs."""

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest
from django.db import OperationalError, connection, connections
from django.test.utils import CaptureQueriesContext

from messaging.accept import Call, Submission, idempotency
from messaging.accept.acceptance import accept_set
from messaging.accept.grouping import Grouping, alone
from messaging.accept.requests import MESSAGE
from messaging.accept.results import SendResult, StoredAnswer
from messaging.models import Delivery, IdempotencyKey, Message, SendingRules
from rme.core import errors
from rme.core.http.parsing import parse
from tests import factories
from tests.rest import message

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 30
"""Within which a thread gets somewhere on a busy machine."""


def call(caller, body, key=None):
    known = idempotency.key_of(key, body)
    return Call(caller, Submission(parse(MESSAGE, body), known), "r")


class Gate:
    """Accepts sets as production does, but the first one waits until it is opened."""

    def __init__(self):
        self.begun, self.opened = threading.Event(), threading.Event()
        self.sets = []

    def __call__(self, calls):
        self.sets.append(list(calls))
        if len(self.sets) == 1:
            self.begun.set()
            assert self.opened.wait(SECONDS)
        return self.accept(calls)

    def accept(self, calls):
        return accept_set(calls)

    @property
    def sizes(self):
        return [len(each) for each in self.sets]


def together(gate, grouping, first, others) -> list[Future]:
    """Send a call, and while it is being stored the others; return what became of each."""

    def run(one):
        try:
            return grouping.accept(one)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(others) + 1) as pool:
        futures = [pool.submit(run, first)]
        assert gate.begun.wait(SECONDS)
        for count, each in enumerate(others, 1):
            futures.append(pool.submit(run, each))
            until = time.monotonic() + SECONDS
            while grouping.waiting < count and not futures[-1].done():
                assert time.monotonic() < until
                time.sleep(0.001)
        gate.opened.set()
    return futures


@pytest.fixture
def other(db):
    row = factories.organization("other")
    factories.welcome(row)
    return row


def test_calls_that_arrive_while_others_are_stored_are_one_set(org, other):
    gate = Gate()
    calls = [
        call(factories.caller(row), message(person))
        for row in (org, other)
        for person in factories.contacts(row, 10)
    ]
    futures = together(gate, Grouping(gate), calls[0], calls[1:])
    assert gate.sizes == [1, 19]
    ids = [future.result().message_id for future in futures]
    stored = dict(Message.objects.values_list("id", "organization_id"))
    assert [stored[row_id] for row_id in stored] == ["acme"] * 10 + ["other"] * 10
    assert {str(each) for each in stored} == set(ids)
    assert Delivery.objects.filter(status="ACCEPTED").count() == 20


@pytest.mark.parametrize("count", [1, 10])
@pytest.mark.parametrize(
    ("key", "channel", "statements"),
    [
        (False, "EMAIL", 4),  # contacts, by index, gates, insert
        (False, "PUSH", 5),  # devices
        (True, "EMAIL", 6),  # hold and release the keys
    ],
)
def test_statements_do_not_grow_with_the_set(org, other, count, key, channel, statements):
    warm, fresh = [], []
    for row in (org, other):
        for place, person in enumerate(factories.contacts(row, count + 1)):
            factories.device(row, person, f"simulator-{place}")
            given = f"{row.pk}-{place}" if key else None
            one = call(factories.caller(row), message(person, channel=channel), given)
            (fresh if place else warm).append(one)
    accept_set(warm)
    with CaptureQueriesContext(connection) as captured:
        results = accept_set(fresh)
    assert len(captured) == statements
    assert [type(result) for result in results] == [SendResult] * (2 * count)


def test_a_bad_call_fails_no_other(org):
    gate, caller = Gate(), factories.caller(org)
    good, also = factories.contacts(org, 2)
    calls = [
        call(caller, message(good)),
        call(caller, message(good, category="NONE")),
        call(caller, message(also)),
    ]
    first, bad, last = together(gate, Grouping(gate), calls[0], calls[1:])
    assert gate.sizes == [1, 2]
    assert bad.result().error.code == "INVALID_PAYLOAD"
    assert [first.result().status, last.result().status] == ["ACCEPTED", "ACCEPTED"]
    assert Message.objects.count() == 2


def test_a_key_that_is_in_the_set_gets_the_stored_answer(org):
    gate, caller = Gate(), factories.caller(org)
    body = message(factories.contact(org))
    calls = [call(caller, body), *(call(caller, body, "order-1") for _ in range(3))]
    _, *repeats = together(gate, Grouping(gate), calls[0], calls[1:])
    assert gate.sizes == [1, 1, 1, 1]
    first, *others = [future.result() for future in repeats]
    assert isinstance(first, SendResult)
    assert [(type(each), each.body) for each in others] == [(StoredAnswer, first.body)] * 2
    assert Message.objects.count() == 2


def test_a_key_for_another_body_is_refused_alone(org):
    gate, caller = Gate(), factories.caller(org)
    one, two = factories.contacts(org, 2)
    calls = [call(caller, message(one), "k"), call(caller, message(two), "k")]
    first, second = together(gate, Grouping(gate), calls[0], calls[1:])
    assert isinstance(first.result(), SendResult)
    assert isinstance(second.exception(), errors.IdempotencyKeyReused)


def test_a_key_of_two_applications_is_two_keys(org, other):
    calls = [
        call(factories.caller(row), message(factories.contact(row)), "k") for row in (org, other)
    ]
    results = accept_set(calls)
    assert [type(result) for result in results] == [SendResult, SendResult]
    assert IdempotencyKey.objects.count() == 2


def test_a_set_that_fails_is_accepted_one_by_one(org):
    """An expired key that nobody has purged yet breaks the constraint for the whole set."""
    gate, caller = Gate(), factories.caller(org)
    people = factories.contacts(org, 4)
    IdempotencyKey.objects.create(
        organization_id=org.pk,
        application_id=caller.application_id,
        key="old",
        digest="d",
        status=202,
        body="{}",
        expires_at=datetime.now(UTC) - timedelta(hours=1),
    )
    keys = [None, None, "old", "new"]
    calls = [call(caller, message(person), key) for person, key in zip(people, keys, strict=True)]
    futures = together(gate, Grouping(gate), calls[0], calls[1:])
    assert gate.sizes == [1, 3]
    assert [future.result().status for future in futures] == ["ACCEPTED"] * 4
    assert Message.objects.count() == 4
    assert sorted(IdempotencyKey.objects.values_list("key", flat=True)) == ["new", "old"]


class Away(Gate):
    """The database goes away while the second set is being stored."""

    def accept(self, calls):
        if len(self.sets) == 2:
            raise OperationalError("the connection was lost")
        return accept_set(calls)


def test_a_set_that_may_have_been_stored_is_not_repeated(org):
    gate, caller = Away(), factories.caller(org)
    calls = [call(caller, message(person)) for person in factories.contacts(org, 5)]
    grouping = Grouping(gate)
    first, *rest = together(gate, grouping, calls[0], calls[1:])
    assert gate.sizes == [1, 4]
    assert first.result().status == "ACCEPTED"
    kinds = [type(future.exception()) for future in rest]
    assert kinds == [OperationalError, *[errors.Unavailable] * 3]
    assert {future.exception().headers["Retry-After"] for future in rest[1:]} == {"5"}
    assert Message.objects.count() == 1
    assert grouping.accept(calls[1]).status == "ACCEPTED"  # the next set runs


def test_more_calls_than_may_wait_get_503(org):
    gate, caller = Gate(), factories.caller(org)
    calls = [call(caller, message(person)) for person in factories.contacts(org, 4)]
    *accepted, refused = together(gate, Grouping(gate, queue_size=2), calls[0], calls[1:])
    assert gate.sizes == [1, 2]
    assert [future.result().status for future in accepted] == ["ACCEPTED"] * 3
    error = refused.exception()
    assert (type(error), error.headers) == (errors.Unavailable, {"Retry-After": "1"})


def test_a_call_that_has_waited_too_long_gets_503(org, settings):
    settings.DATABASE_SECONDS = 0.05
    gate, caller = Gate(), factories.caller(org)
    one, two = factories.contacts(org, 2)
    grouping = Grouping(gate)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(grouping.accept, call(caller, message(one)))
        assert gate.begun.wait(SECONDS)
        with pytest.raises(errors.Unavailable) as caught:
            grouping.accept(call(caller, message(two)))
        gate.opened.set()
        assert first.result().status == "ACCEPTED"
        pool.submit(connections.close_all).result()
    assert caught.value.headers == {"Retry-After": "1"}
    assert (gate.sizes, grouping.waiting, Message.objects.count()) == ([1], 0, 1)


def test_the_ceiling_of_an_organization_stops_its_own_calls_alone(org, other, redis):
    SendingRules.objects.create(organization=org, sends_per_day=3)
    callers = [factories.caller(row) for row in (org, other)]
    people = [factories.contacts(row, 5) for row in (org, other)]
    calls = [
        call(caller, message(person))
        for place in range(5)
        for caller, person in ((callers[0], people[0][place]), (callers[1], people[1][place]))
    ]
    results = accept_set(calls)
    kinds = [errors.RateLimited if i % 2 == 0 and i >= 6 else SendResult for i in range(10)]
    assert [type(result) for result in results] == kinds
    assert Message.objects.filter(organization_id=org.pk).count() == 3


def test_calls_that_go_by_themselves_are_bounded(api, org, settings):
    """Each of them has a database connection, of which a process has few."""
    settings.DATABASE_SECONDS = 0.05
    body = message(*factories.contacts(org, 2))
    with ExitStack() as stack:
        for _ in range(settings.WEB_THREADS):
            stack.enter_context(alone)
        refused = api.send(body)
    assert (refused.status_code, refused["Retry-After"]) == (503, "1")
    assert api.send(body).status_code == 202
