"""The state machine: only what the table allows."""

import itertools
import threading
import time

import pytest
from django.db import connection, connections, transaction

from messaging.domain.progress.transitions import Transition
from messaging.domain.statuses import TRANSITIONS, Status
from messaging.models import Delivery
from messaging.store.transitions import apply_transitions
from tests import factories
from tests.rest import message

S = Status


@pytest.mark.promise("events-4")
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


def waits_for_a_lock(backend):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = %s", [backend]
        )
        return cursor.fetchone()[0]


@pytest.mark.django_db(transaction=True)
def test_rows_are_locked_in_the_order_of_their_ids_as_by_receipts(api, org):
    person = factories.contact(org)
    api.bulk([message(person)] * 2)
    first, second = Delivery.objects.order_by("id").values_list("id", flat=True)
    backends = []

    def expire():
        try:
            with connection.cursor() as cursor, transaction.atomic():
                cursor.execute("SELECT pg_backend_pid()")
                backends.append(cursor.fetchone()[0])
                apply_transitions(
                    [Transition(id=each, status=S.EXPIRED, due_at=None) for each in (second, first)]
                )
        finally:
            connections.close_all()

    with transaction.atomic():
        Delivery.objects.select_for_update().get(pk=first)
        worker = threading.Thread(target=expire)
        worker.start()
        until = time.monotonic() + 60
        while not (backends and waits_for_a_lock(backends[0])):
            assert time.monotonic() < until
            time.sleep(0.01)
        Delivery.objects.select_for_update(nowait=True).get(pk=second)
    worker.join(60)
    assert set(Delivery.objects.values_list("status", flat=True)) == {"EXPIRED"}
