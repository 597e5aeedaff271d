"""A cancel against the release of the same message, two thousand times: one of them wins."""

import datetime as dt
import random
import threading
import time
from collections import Counter

import pytest
from django.db import connection, connections

from messaging import cancel, schedule
from messaging.models import Delivery, Event
from rme.core import clock
from rme.core.errors import NotCancellable
from tests import factories
from tests.rest import message

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 2000


def test_cancel_and_release_of_one_message_have_one_winner(api, org):
    at = (clock.now() + dt.timedelta(hours=1)).isoformat()
    body = message(factories.contact(org), schedule={"mode": "AT", "at": at})
    keys = [r["messageId"] for _ in range(4) for r in api.bulk([body] * 500).json()["results"]]
    start = threading.Barrier(2)
    done = threading.Barrier(2)
    cancelled: dict[str, bool] = {}

    def cancel_all() -> None:
        for key in keys:
            start.wait(20)
            time.sleep(random.random() * 0.001)  # sometimes the one is first, sometimes the other
            try:
                cancel.cancel(org.pk, key)
                cancelled[key] = True
            except NotCancellable:
                cancelled[key] = False
            done.wait(20)
        connections.close_all()

    thread = threading.Thread(target=cancel_all)
    thread.start()
    for key in keys:
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE messaging_delivery SET due_at = now() - interval '1 second' "
                "WHERE message_id = %s",
                [key],
            )
        start.wait(20)
        time.sleep(random.random() * 0.001)
        schedule.release()
        done.wait(20)
    thread.join()

    status = {str(key): of for key, of in Delivery.objects.values_list("message_id", "status")}
    found = Counter((cancelled[key], status[key]) for key in keys)
    assert set(found) == {(True, "CANCELLED"), (False, "ACCEPTED")}  # and both do happen
    assert sum(found.values()) == ROUNDS == len(keys)
    assert Event.objects.filter(type="cancelled").count() == found[True, "CANCELLED"]
