"""Messages while a component is unavailable, runs twice, or has a wrong clock."""

import datetime as dt
import os
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager

import orjson
import pytest
import time_machine
from celery import current_app
from django.db import OperationalError, connection

from messaging import providers
from messaging.delivery import claims, deliver, sweeper, tasks
from messaging.domain.channels import Channel
from messaging.feedback import receipts
from messaging.models import Attempt, Delivery, Event, IdempotencyKey, Message, ProviderAccount
from messaging.store import due_organizations
from rme.core.cache import TtlCache
from rme.core.db import clock
from rme.core.outbound import outbound_transport
from rme.core.provider import Provider
from rme.core.redis.connection import redis_client
from tests import databases, factories
from tests.rest import all_events, error, events, message, work
from tests.sending import PROCESS, send_ready
from tests.service import ROOT
from tests.stopwatch import Stopwatch
from tests.threads import at_once

pytestmark = pytest.mark.django_db

NOWHERE = "redis://127.0.0.1:1/0"


@contextmanager
def redis_away(settings):
    address, settings.REDIS_URL = settings.REDIS_URL, NOWHERE
    redis_client.cache_clear()
    try:
        yield
    finally:
        settings.REDIS_URL = address
        redis_client.cache_clear()


@contextmanager
def broker_away():
    """Point Celery at an address without a server."""
    address, current_app.conf.broker_write_url = current_app.conf.broker_write_url, NOWHERE
    try:
        _connect_anew()
        yield
    finally:
        current_app.conf.broker_write_url = address
        _connect_anew()


def _connect_anew():
    """Forget the connections, as Celery does after a fork."""
    current_app._pool = current_app.amqp._producer_pool = None


@pytest.mark.promise("reliability-2", "faults-2")
def test_without_redis_a_send_is_accepted_and_found_when_it_is_back(api, org, redis, settings):
    person = factories.contact(org)
    with redis_away(settings):
        answer = api.send(message(person))
        assert due_organizations.waiting_channels() == ["EMAIL"]
    assert answer.status_code == 202
    assert redis.exists("rme:wakeup:EMAIL") == 0
    tasks.sweep()
    assert redis.exists("rme:wakeup:EMAIL") == 1  # a worker is called
    work()
    assert events(answer.json()["messageId"]) == ["accepted", "sent", "delivered"]


@pytest.mark.promise("reliability-2", "faults-2")
def test_emptied_redis_loses_no_message(api, org, redis):
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    redis.flushdb()
    tasks.sweep()
    assert redis.exists("rme:wakeup:EMAIL") == 1
    send_ready("EMAIL")
    assert events(message_id) == ["accepted", "sent", "delivered"]


@pytest.mark.promise("faults-3")
def test_without_a_broker_a_send_is_accepted(api, org, redis):
    with broker_away():
        with Stopwatch() as watch:
            answer = api.send(message(factories.contact(org)))
        assert watch.seconds < 5  # kombu would try again for six seconds
    assert (answer.status_code, answer.json()["status"]) == (202, "ACCEPTED")
    redis.delete("rme:wakeup:EMAIL")  # as it is by itself, three seconds later
    tasks.sweep()
    assert redis.exists("rme:wakeup:EMAIL") == 1


@pytest.mark.promise("reliability-3")
def test_tasks_have_no_ids_and_no_time(org, api, redis):
    """What is enqueued names a channel, at once, and nothing that could be lost."""
    api.send(message(factories.contact(org), channel="SMS"))
    (raw,) = redis.lrange("sms", 0, -1)
    headers = orjson.loads(raw)["headers"]
    assert (headers["task"], headers["argsrepr"]) == ("messaging.send_ready", "('SMS',)")
    assert (headers["eta"], headers["retries"]) == (None, 0)


@pytest.mark.promise("key-15", "reliability-1")
def test_202_means_all_rows_are_committed(api, org):
    key = {"Idempotency-Key": "k"}
    message_id = api.send(message(factories.contact(org)), **key).json()["messageId"]
    counts = [model.objects.count() for model in (Message, Delivery, IdempotencyKey)]
    assert [*counts, len(all_events("accepted"))] == [1, 1, 1, 1]
    assert str(Message.objects.get().pk) == message_id


# --- anything may run twice -----------------------------------------------------------------------


@pytest.mark.promise("reliability-7")
@pytest.mark.django_db(transaction=True)
def test_workers_side_by_side_send_each_message_once(api, org):
    api.bulk([message(person) for person in factories.contacts(org, 300)])

    def send_some():
        while (window := claims.claim(org.pk, "EMAIL", 0, 20)).deliveries:
            deliver.deliver([window], outbound_transport(), PROCESS, receipts.apply)

    at_once(send_some, 4)
    assert Counter(Delivery.objects.values_list("status", "fence")) == {("DELIVERED", 1): 300}
    assert Attempt.objects.count() == 300
    assert Counter(event.type for event in all_events()) == {
        "accepted": 300,
        "sent": 300,
        "delivered": 300,
    }


@pytest.mark.promise("reliability-8")
@pytest.mark.django_db(transaction=True)
def test_concurrent_sweeps_do_everything_once(api, org):
    at = (clock.now() + dt.timedelta(hours=1)).isoformat()
    body = {"schedule": {"mode": "AT", "at": at}}
    factories.template(org, name="offer", category="NEWS")
    org.categories.create(name="NEWS", regime="OPT_OUT")
    people = factories.contacts(org, 200)
    api.bulk([message(person, **body) for person in people])
    late = {"category": "NEWS", "template": {"name": "offer"}}
    api.bulk([message(person, **body, **late) for person in people])
    long_ago = clock.now() - dt.timedelta(hours=2)
    Delivery.objects.update(due_at=long_ago, scheduled_for=long_ago)
    at_once(tasks.sweep, 4)
    tasks.sweep()
    assert Counter(Delivery.objects.values_list("category", "status")) == {
        ("TRANSACTIONAL", "ACCEPTED"): 200,
        ("NEWS", "EXPIRED"): 200,
    }
    assert Event.objects.filter(type="expired").count() == 200


# --- clocks ---------------------------------------------------------------------------------------


@pytest.mark.promise("faults-14")
@pytest.mark.parametrize("minutes", [-10, 10])
def test_wrong_machine_clock_causes_no_early_send_and_ends_no_lease(api, org, minutes):
    true = dt.datetime.now(dt.UTC)
    person = factories.contact(org)
    api.send(message(person))
    at = {"mode": "AT", "at": (true + dt.timedelta(minutes=5)).isoformat()}
    scheduled = api.send(message(person, schedule=at)).json()["messageId"]
    claims.claim(org.pk, "EMAIL", 0)
    with time_machine.travel(true + dt.timedelta(minutes=minutes)):
        clock._readings.clear()
        assert (sweeper.release(), sweeper.reclaim()) == (0, 0)
        later = api.send(message(person)).json()["messageId"]
        created = dt.datetime.fromisoformat(api.get(later)["createdAt"])
        assert abs(created - true) < dt.timedelta(seconds=30)
        (row,) = Delivery.objects.filter(message_id=later)
        assert abs(row.due_at - true) < dt.timedelta(seconds=30)
    assert api.get(scheduled)["status"] == "SCHEDULED"
    assert Delivery.objects.get(status="SENDING").fence == 1


@contextmanager
def full_disk(table):
    """Let PostgreSQL say, of every row written to a table, that there is no room for it (53100)."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END $$"
        )
        cursor.execute(
            f"CREATE TRIGGER no_room BEFORE INSERT ON {table} EXECUTE FUNCTION no_room()"
        )
        try:
            yield
        finally:
            cursor.execute("DROP FUNCTION no_room CASCADE")


@pytest.mark.promise("faults-16")
@pytest.mark.django_db(transaction=True)
def test_full_disk_rejects_messages_without_using_their_key(api, org):
    body, key = message(factories.contact(org)), {"Idempotency-Key": "k"}
    with full_disk(Message._meta.db_table):
        refused = api.send(body, **key)
    assert (refused.status_code, refused.json()) == (
        503,
        error("UNAVAILABLE", "The service cannot take requests right now."),
    )
    assert refused["Retry-After"] == "5"
    assert (Message.objects.count(), Delivery.objects.count()) == (0, 0)
    again = api.send(body, **key)
    assert (again.status_code, again.headers.get("Idempotent-Replayed")) == (202, None)


@pytest.mark.promise("faults-16")
@pytest.mark.django_db(transaction=True)
def test_a_full_disk_while_sending_loses_nothing(api, org):
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    with full_disk(Attempt._meta.db_table), pytest.raises(OperationalError):
        work()
    assert Attempt.objects.count() == 0  # so it has not left
    Delivery.objects.update(due_at=clock.now())  # the lease runs out
    sweeper.reclaim()
    work()
    assert events(message_id) == ["accepted", "sent", "delivered"]


class Hungry(Provider):
    """Wants more memory than there is."""

    kind = "hungry"
    label = "Hungry"
    channels = frozenset(Channel)

    def send(self, dispatches, transport, progress=None):
        bytearray(sys.maxsize)
        raise AssertionError


SEND_WITHOUT_MEMORY = """
import django
django.setup()
from messaging import providers
from tests.messaging.contract.test_faults import Hungry
from tests.sending import send_ready

providers.REGISTRY["hungry"] = Hungry
send_ready("EMAIL")
"""


@pytest.mark.promise("faults-17")
@pytest.mark.django_db(transaction=True)
def test_process_out_of_memory_while_sending_leaves_its_window_unknown(
    api, org, settings, monkeypatch
):
    """The process ends, as by a kill."""
    monkeypatch.setitem(providers.REGISTRY, "hungry", Hungry)
    row = ProviderAccount.objects.create(organization=org, name="a", kind="hungry", channel="EMAIL")
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    database = databases.url_of(connection.settings_dict["NAME"])
    env = os.environ | {"DATABASE_URL": database, "REDIS_URL": settings.REDIS_URL}
    code = [sys.executable, "-c", SEND_WITHOUT_MEMORY]
    assert subprocess.run(code, cwd=ROOT, env=env, check=False).returncode == os.EX_SOFTWARE
    Delivery.objects.update(due_at=clock.now())  # the lease runs out
    sweeper.reclaim()
    assert Delivery.objects.get().status == "UNKNOWN"
    row.delete()
    TtlCache.clear_all()
    Delivery.objects.update(due_at=clock.now())  # and the time for a receipt
    sweeper.resolve_unknown()
    work()
    assert events(message_id) == ["accepted", "deferred", "sent", "delivered"]
