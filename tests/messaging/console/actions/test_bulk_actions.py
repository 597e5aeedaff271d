"""Bulk actions: slices of work that may be interrupted at any moment."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.accept import cancel
from messaging.console.actions import bulk_actions
from messaging.models import BulkAction, Delivery, Message
from tests.messaging.console.actions.scene import send, start

pytestmark = pytest.mark.django_db


def test_interrupted_slice_is_repeated_without_failing(org):
    action = start(org, 150)
    cancel.cancel_deliveries(org.pk, action.targets[:60])  # and then the worker was killed
    assert bulk_actions.run_slice(action.pk)
    action.refresh_from_db()
    assert (action.state, action.done, action.failed) == ("RUNNING", 100, 0)


def test_interrupted_resend_sends_nothing_twice(org):
    send(org, 2)
    Delivery.objects.update(status="FAILED", reason="down", due_at=None)
    targets = list(Delivery.objects.values_list("pk", flat=True))
    action = BulkAction.objects.create(
        organization=org, kind="RESEND", scope="all", reason="up", targets=targets, total=2,
        started_by="root", user_id=1,
    )  # fmt: skip
    bulk_actions.run_slice(action.pk)
    BulkAction.objects.update(done=0, state="RUNNING")  # the worker was killed before this
    bulk_actions.run_slice(action.pk)
    action.refresh_from_db()
    assert (action.done, Message.objects.count()) == (2, 4)


def test_slice_needs_the_same_queries_for_100_rows_as_for_2(org):
    counts = []
    for count in (2, 100):
        Delivery.objects.all().delete()
        Message.objects.all().delete()
        action = start(org, count)
        with CaptureQueriesContext(connection) as captured:
            bulk_actions.run_slice(action.pk)
        counts.append(len(captured))
    assert counts == [11, 11]
