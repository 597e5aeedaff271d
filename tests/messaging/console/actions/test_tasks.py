"""The task of the console, which does what people ordered."""

import pytest

from messaging.console.actions import tasks
from messaging.models import Delivery
from tests.messaging.console.actions.scene import start

pytestmark = pytest.mark.django_db


def test_a_worker_does_all_slices(org):
    action = start(org, 250)
    tasks.run_bulk_actions()
    action.refresh_from_db()
    assert (action.state, action.done, action.failed) == ("DONE", 250, 0)
    assert set(Delivery.objects.values_list("status", flat=True)) == {"CANCELLED"}
