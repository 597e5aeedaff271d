"""Single calls that are accepted together: what each gets, and what it costs."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from messaging.accept import Call, Submission, idempotency
from messaging.accept.acceptance import accept_set
from messaging.accept.grouping import accept_together, is_quick
from messaging.accept.requests import MESSAGE
from messaging.accept.results import SendResult
from messaging.models import Delivery, IdempotencyKey, Message, SendingRules
from messaging.store.idempotency import StoredAnswer
from rme.core import errors
from rme.core.http.parsing import parse
from tests import factories
from tests.rest import message

pytestmark = pytest.mark.django_db(transaction=True)

UNKNOWN = "01a1fb37-a4a4-7470-9fc2-6927566e64b5"


def call(caller, body, key=None):
    known = idempotency.key_of(key, body)
    return Call(caller, Submission(parse(MESSAGE, body), known), "r")


class Sets:
    """Accepts sets as production does, and notes their sizes."""

    def __init__(self):
        self.sizes = []

    def __call__(self, calls):
        self.sizes.append(len(calls))
        return self.accept(calls)

    def accept(self, calls):
        return accept_set(calls)


@pytest.fixture
def other(db):
    row = factories.organization("other")
    factories.welcome(row)
    return row


def test_calls_of_several_organizations_are_one_set(org, other):
    sets = Sets()
    calls = [
        call(factories.caller(row), message(person))
        for row in (org, other)
        for person in factories.contacts(row, 10)
    ]
    results = accept_together(calls, sets)
    assert sets.sizes == [20]
    stored = dict(Message.objects.values_list("id", "organization_id"))
    assert [stored[row_id] for row_id in stored] == ["acme"] * 10 + ["other"] * 10
    assert {str(each) for each in stored} == {result.message_id for result in results}
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


def test_invalid_call_in_a_set_is_rejected_alone(org):
    sets, caller = Sets(), factories.caller(org)
    good, also = factories.contacts(org, 2)
    calls = [
        call(caller, message(good)),
        call(caller, message(good, category="NONE")),
        call(caller, message(also)),
    ]
    first, bad, last = accept_together(calls, sets)
    assert sets.sizes == [3]
    assert bad.error.code == "INVALID_PAYLOAD"
    assert [first.status, last.status] == ["ACCEPTED", "ACCEPTED"]
    assert Message.objects.count() == 2


def test_repeated_key_within_a_set_gets_the_stored_answer(org):
    sets, caller = Sets(), factories.caller(org)
    body = message(factories.contact(org))
    calls = [call(caller, body), *(call(caller, body, "order-1") for _ in range(3))]
    _, first, *others = accept_together(calls, sets)
    assert sets.sizes == [2, 1, 1]
    assert isinstance(first, SendResult)
    assert [(type(each), each.body) for each in others] == [(StoredAnswer, first.body)] * 2
    assert Message.objects.count() == 2


def test_key_reused_for_another_body_is_rejected_alone(org):
    caller = factories.caller(org)
    one, two = factories.contacts(org, 2)
    calls = [call(caller, message(one), "k"), call(caller, message(two), "k")]
    first, second = accept_together(calls)
    assert isinstance(first, SendResult)
    assert isinstance(second, errors.IdempotencyKeyReused)


def test_same_key_of_two_applications_does_not_conflict(org, other):
    calls = [
        call(factories.caller(row), message(factories.contact(row)), "k") for row in (org, other)
    ]
    results = accept_set(calls)
    assert [type(result) for result in results] == [SendResult, SendResult]
    assert IdempotencyKey.objects.count() == 2


def test_failed_set_is_accepted_one_by_one(org):
    """An expired key that nobody has purged yet breaks the constraint for the whole set."""
    sets, caller = Sets(), factories.caller(org)
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
    results = accept_together(calls, sets)
    assert sets.sizes == [4]
    assert [result.status for result in results] == ["ACCEPTED"] * 4
    assert Message.objects.count() == 4
    assert sorted(IdempotencyKey.objects.values_list("key", flat=True)) == ["new", "old"]


class Away(Sets):
    """The database goes away while a set is being stored."""

    def accept(self, calls):
        raise OperationalError("the connection was lost")


def test_possibly_stored_set_is_not_repeated(org):
    sets, caller = Away(), factories.caller(org)
    calls = [call(caller, message(person)) for person in factories.contacts(org, 4)]
    outcomes = accept_together(calls, sets)
    assert sets.sizes == [4]
    assert [type(each) for each in outcomes] == [OperationalError, *[errors.Unavailable] * 3]
    assert {each.headers["Retry-After"] for each in outcomes[1:]} == {"5"}
    assert Message.objects.count() == 0


def test_ceiling_stops_only_calls_of_its_organization(org, other, redis):
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


@pytest.mark.parametrize(
    ("fields", "quick"),
    [
        ({}, True),
        ({"to": [{"contactId": UNKNOWN}]}, True),
        ({"to": [{"contactId": "003xx000004TmiQ"}]}, False),  # of a remote platform
        ({"to": [{"contactId": UNKNOWN}, {"contactId": "x"}]}, False),
        ({"context": {"recordId": "x"}}, False),
    ],
)
def test_potentially_slow_calls_are_not_quick(org, fields, quick):
    body = message(factories.contact(org), **fields)
    assert is_quick(call(factories.caller(org), body)) is quick
