"""A cancel against the release of the same message, four hundred times: one of them wins."""

import datetime as dt
import random
import threading
import time
from collections import Counter

import pytest
from django.db import connection, connections, transaction

from messaging.accept import cancel
from messaging.delivery import sweeper
from messaging.models import Delivery, Event
from rme.core.db import clock
from rme.core.errors import NotCancellable
from tests import factories
from tests.rest import events, message
from tests.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 400


@pytest.mark.promise("bulk-11")
def test_cancel_and_release_of_one_message_have_one_winner(api, org):
    at = (clock.now() + dt.timedelta(hours=1)).isoformat()
    body = message(factories.contact(org), schedule={"mode": "AT", "at": at})
    keys = [r["messageId"] for _ in range(4) for r in api.bulk([body] * 100).json()["results"]]
    start = threading.Barrier(2)
    done = threading.Barrier(2)
    cancelled: dict[str, bool] = {}
    lead = 0.0  # who wins begins later the next time, so that both win on any machine

    def cancel_all() -> None:
        for key in keys:
            start.wait(20)
            time.sleep(max(lead, 0.0) + random.random() * 0.001)
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
        time.sleep(max(-lead, 0.0) + random.random() * 0.001)
        sweeper.release()
        done.wait(20)
        lead += 0.0001 if cancelled[key] else -0.0001
    thread.join()

    status = {str(key): of for key, of in Delivery.objects.values_list("message_id", "status")}
    found = Counter((cancelled[key], status[key]) for key in keys)
    assert set(found) == {(True, "CANCELLED"), (False, "ACCEPTED")}  # and both do happen
    assert sum(found.values()) == ROUNDS == len(keys)
    assert Event.objects.filter(type="cancelled").count() == found[True, "CANCELLED"]


def scheduled(api, org, *people):
    at = (clock.now() + dt.timedelta(hours=1)).isoformat()
    return api.send(message(*people, schedule={"mode": "AT", "at": at})).json()["messageId"]


@pytest.mark.promise("bulk-8")
@pytest.mark.parametrize("recipients", [1, 3])
def test_twenty_cancels_at_once_all_succeed(api, org, recipients):
    people = factories.contacts(org, recipients)
    for _ in range(3):
        key = scheduled(api, org, *people)
        answers = at_once(lambda key=key: api.call("DELETE", f"/messages/{key}"), 20)
        assert {(each.status_code, each.content) for each in answers} == {(200, answers[0].content)}
        assert answers[0].json()["status"] == "CANCELLED"
        kinds = Counter(events(key))
        assert kinds == dict.fromkeys(("accepted", "scheduled", "cancelled"), recipients)


def test_cancel_after_a_concurrent_release_is_rejected(api, org):
    """The statuses are read when the lock is there, not before."""
    key = scheduled(api, org, factories.contact(org))
    answers = []
    call = threading.Thread(
        target=lambda: (
            answers.append(api.call("DELETE", f"/messages/{key}")),
            connections.close_all(),
        )
    )
    with transaction.atomic():
        Delivery.objects.filter(message_id=key).update(status="ACCEPTED")
        call.start()
        while not waits_for_a_lock():
            time.sleep(0.01)
    call.join()
    assert [each.status_code for each in answers] == [409]
    assert Event.objects.filter(type="cancelled").count() == 0


def waits_for_a_lock() -> bool:
    """Return whether a connection waits for this one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pg_backend_pid() = ANY (pg_blocking_pids(pid))"
        )
        return bool(cursor.fetchone()[0])
