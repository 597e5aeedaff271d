"""Receipts of a batch whose deliveries are in two partitions, while others change one of them."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, connections, transaction

from messaging.domain.progress.receipts import Receipt
from messaging.domain.statuses import Status
from messaging.feedback import receipts
from messaging.feedback.receipts import AccountReceipt
from messaging.models import Delivery, Message
from rme.core import ids
from rme.core.db import clock
from rme.core.provider import DeliveryReceipt
from rme.tenants.models import Organization
from tests.messaging.delivery import backlog_scene
from tests.service import wait_for

pytestmark = pytest.mark.django_db(transaction=True)

ACCOUNT = 7
"""The account of the scene's attempts, whose ids are those of their deliveries."""
NEXT_MONTH = (datetime.now(UTC).replace(day=1) + timedelta(days=33)).replace(day=2)
WAITS = """SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'"""


@pytest.fixture
def deliveries() -> Callable[[Status], list[Delivery]]:
    """Store six deliveries of this month and six of the next one; the oldest is the first."""

    def store(status: Status) -> list[Delivery]:
        for number in range(4):
            Organization.objects.create(pk=f"o0{number}", name="O")
        for moment in (datetime.now(UTC), NEXT_MONTH):
            backlog_scene.fill(status, 6, since=int(moment.timestamp() * 1000))
        return list(Delivery.objects.order_by("pk"))

    return store


@contextmanager
def changing(delivery: Delivery) -> Iterator[None]:
    """Change a delivery meanwhile, and commit once another transaction waits for that."""
    changed = threading.Event()

    def change() -> None:
        with transaction.atomic():
            Delivery.objects.filter(pk=delivery.pk).update(updated_at=clock.now())
            changed.set()
            wait_for(_is_waited_for)
        connections.close_all()

    thread = threading.Thread(target=change)
    thread.start()
    assert changed.wait(30)
    yield
    thread.join()


def _is_waited_for() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(WAITS)
        return bool(cursor.fetchone()[0])


@pytest.mark.parametrize("position", [0, 5, 6, 11])
def test_provider_receipts_are_all_applied(deliveries, position):
    rows = deliveries(Status.SENT)
    reported = {
        ids.new_id(): [AccountReceipt(ACCOUNT, DeliveryReceipt(row.pk, "delivered"))]
        for row in rows
    }
    with changing(rows[position]), transaction.atomic():
        applied = receipts.apply_provider_receipts(reported)
    assert applied == (reported.keys(), set(), set(), set())
    assert set(Delivery.objects.values_list("status", flat=True)) == {Status.DELIVERED}


@pytest.mark.parametrize("position", [0, 5, 6, 11])
def test_a_confirmed_unknown_outcome_has_its_fallback(deliveries, position):
    """FIRST_DELIVERED: the next channel is due when the message's time is over."""
    rows = deliveries(Status.UNKNOWN)
    Message.objects.update(strategy="FIRST_DELIVERED", fallback_after=120)
    before = clock.now()
    with changing(rows[position]):
        receipts.apply([Receipt(row.pk, "sent") for row in rows])
    found = Delivery.objects.values_list("status", "due_at")
    assert [status for status, _ in found] == [Status.SENT] * len(rows)
    waits = {round((due_at - before).total_seconds() / 30) * 30 for _, due_at in found if due_at}
    assert (waits, len([due for _, due in found if due])) == ({120}, len(rows))
