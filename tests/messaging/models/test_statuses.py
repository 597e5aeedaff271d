"""The state machine: only what the table allows."""

import itertools

import pytest

from messaging.models import Delivery
from messaging.models.statuses import TRANSITIONS, Status, aggregate
from messaging.models.transitions import Transition, apply_transitions
from tests import factories
from tests.rest import message

S = Status


@pytest.mark.django_db
def test_every_pair_of_statuses_moves_as_the_table_says(api, org):
    pairs = list(itertools.product(Status, Status))
    person = factories.contact(org)
    api.bulk([message(person)] * len(pairs))
    rows = list(Delivery.objects.order_by("id"))
    for row, (before, _) in zip(rows, pairs, strict=True):
        row.status = before
    Delivery.objects.bulk_update(rows, ["status"])
    changed = apply_transitions(
        [
            Transition(id=row.pk, status=after, due_at=None)
            for row, (_, after) in zip(rows, pairs, strict=True)
        ]
    )
    assert changed == {
        row.pk
        for row, (before, after) in zip(rows, pairs, strict=True)
        if after in TRANSITIONS[before]
    }


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([S.ACCEPTED], S.ACCEPTED),
        ([S.ACCEPTED, S.BLOCKED], S.SENDING),
        ([S.SENT, S.DELIVERED], S.DELIVERED),
        ([S.SENT, S.FAILED, S.BLOCKED], S.SENT),
        ([S.SCHEDULED, S.CANCELLED], S.SCHEDULED),
        ([S.UNKNOWN, S.DELIVERED], S.UNKNOWN),
        ([S.EXPIRED, S.BLOCKED, S.CANCELLED], S.EXPIRED),
    ],
)
def test_aggregate(statuses, expected):
    assert aggregate(statuses) == expected
