"""Tasks of a worker: their connection, waiting for the database, and the record of outcomes."""

import os
import subprocess
import sys
import threading
import time

import pytest
from django.db import InternalError, OperationalError, connection
from django.test.utils import CaptureQueriesContext
from psycopg import errors

from messaging.delivery import tasks
from rme.celery import app
from rme.core.process import worker
from rme.core.redis import heartbeats, hints
from rme.core.redis.connection import redis_client
from tests.clocks import StandingClock
from tests.core.db.test_availability import end, pid
from tests.scrape import counted, labels
from tests.service import ROOT, free_port

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def record():
    """Return the record of a process that has done nothing yet."""
    worker.record.clear()
    yield lambda: worker.record.heartbeat(unprompted=False)
    worker.record.clear()


def state_of(heartbeat):
    return heartbeat.failing, heartbeat.works


def test_task_starts_with_an_open_connection(record):
    first = pid()
    end(first)
    assert worker.perform("t", pid) != first
    assert state_of(record()) == ({}, True)


def test_task_continues_once_the_database_is_back(record):
    tries = []

    def job():
        tries.append(pid())
        if len(tries) == 1:
            end(tries[0])
        return pid()

    found = worker.perform("t", job)
    assert (len(tries), found) == (2, tries[1])
    assert state_of(record()) == ({}, True)


def test_task_waits_for_a_writable_primary(record):
    started = []

    def read_only():
        if not started:
            started.append(time.monotonic())
            raise InternalError from errors.ReadOnlySqlTransaction()
        return "done"

    assert worker.perform("t", read_only) == "done"


def test_a_task_without_a_database_gives_up_after_some_seconds(record):
    def job():
        raise OperationalError

    assert worker.perform("t", job, seconds=0.5) is None
    assert state_of(record()) == ({"t": "OperationalError"}, False)


NO_ROOM = """
import resource, sys
from pathlib import Path
import django; django.setup()
from django.db import OperationalError
from rme.core.process import worker

def job():
    raise OperationalError("couldn't get a connection after 10.00 sec")

size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
room = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (size + room, size + room))
print(worker.perform("t", job, seconds=0.1))
"""


@pytest.mark.parametrize(
    ("megabytes", "code"), [(4, os.EX_SOFTWARE), (512, os.EX_OK)], ids=["no room", "room"]
)
def test_process_without_memory_for_a_connection_ends(megabytes, code):
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "rme.settings"}
    done = subprocess.run(
        [sys.executable, "-c", NO_ROOM, str(megabytes * 2**20)],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert ("a task had no memory" in done.stdout + done.stderr) == (code != os.EX_OK)


def test_a_bug_is_raised_and_reported(record, counting):
    def job():
        raise KeyError

    with pytest.raises(KeyError):
        worker.perform("t", job)
    assert state_of(record()) == ({"t": "KeyError"}, False)
    worker.perform("other", lambda: None)
    assert state_of(record()) == ({"t": "KeyError"}, True)
    worker.perform("t", lambda: None)
    assert state_of(record()) == ({}, True)
    tasks = counted("rme_tasks_total")
    for outcome in ("failed", "succeeded"):
        assert tasks[labels(task="t", outcome=outcome)] == 1


def test_each_process_has_its_own_heartbeat(redis):
    heartbeats.store(heartbeats.Heartbeat("a:1", {"t": "KeyError"}, works=False, unprompted=True))
    heartbeats.store(heartbeats.Heartbeat("a:2"))
    assert heartbeats.read() == [
        heartbeats.Heartbeat("a:1", {"t": "KeyError"}, works=False, unprompted=True),
        heartbeats.Heartbeat("a:2"),
    ]
    assert 0 < redis.ttl("rme:alive:a:1") <= heartbeats.LIFE_SECONDS
    redis.delete("rme:alive:a:1")  # it faded
    assert heartbeats.read() == [heartbeats.Heartbeat("a:2")]
    assert redis.smembers(heartbeats.WORKERS) == {b"a:2"}


def test_late_tasks_run_without_a_heartbeat_of_beat(org, api, redis):
    from tests import factories
    from tests.rest import message
    from tests.sending import send_ready

    sent = api.send(message(factories.contact(org))).json()["messageId"]
    redis.flushdb()
    jobs = [
        worker.Expected("sweep", tasks.sweep.run),
        worker.Expected("send", lambda: send_ready("EMAIL")),
    ]
    looking = threading.Thread(target=worker.run_late, args=(jobs,))
    looking.start()
    looking.join(30)
    assert api.get(sent)["status"] in ("SENT", "DELIVERED")
    assert heartbeats.are_alive(["scheduler"]) == [False]
    tasks.sweep.apply()
    assert heartbeats.are_alive(["scheduler"]) == [True]


def test_workers_look_for_frequent_jobs_of_their_queues():
    frequent = {e["task"] for e in app.conf.beat_schedule.values() if e["schedule"] < 10}
    app.loader.import_default_modules()
    app.amqp.queues.select([queue.name for queue in app.conf.task_queues])
    try:
        assert {each.task for each in worker.periodic(app)} == frequent
        app.amqp.queues.select(["email"])
        assert worker.queues(app) == {"email"}
        assert "messaging.poll" not in {each.task for each in worker.periodic(app)}
    finally:
        app.amqp.queues._consume_from = None


def test_task_called_as_a_function_is_not_recorded(record):
    with connection.execute_wrapper(lambda execute, *given: execute(*given)):
        tasks.sweep()
    assert state_of(record()) == ({}, True)


def test_task_is_late_regardless_of_other_arrivals(monkeypatch):
    clock, arrivals = StandingClock(monkeypatch, worker), worker.arrivals
    sweep = worker.Expected("messaging.sweep", lambda: None, every=0.1)
    arrivals.note("messaging.sweep")
    clock.advance(0.3)
    arrivals.note("messaging.send_ready EMAIL")
    assert (sweep.is_late(0.1), sweep.is_late(30)) == (True, False)
    arrivals.note("messaging.sweep")
    assert not sweep.is_late(0.1)


def test_no_two_tasks_share_a_slot():
    app.loader.import_default_modules()
    sends = [f"messaging.send_ready {channel}" for channel in ("EMAIL", "SMS", "PUSH")]
    names = [*(name for name in app.tasks if not name.startswith("celery.")), *sends]
    assert len({worker.slot(name) for name in names}) == len(names)


def test_processes_share_arrivals():
    worker.arrivals.note("messaging.poll")
    began = time.monotonic()
    pid = os.fork()
    if not pid:
        time.sleep(0.2)
        worker.arrivals.note("messaging.poll")
        os._exit(0)
    os.waitpid(pid, 0)
    assert worker.arrivals.age("messaging.poll") <= time.monotonic() - began - 0.2


def test_hint_for_a_job_just_started_costs_no_query(db, redis, django_assert_num_queries):
    assert hints.is_first("messaging.sweep", 60)
    with django_assert_num_queries(0):
        for _ in range(100):
            tasks.sweep.apply()
    hints.forget("messaging.sweep")
    with CaptureQueriesContext(connection) as captured:
        tasks.sweep.apply()
    assert len(captured) > 4
    assert not hints.is_first("messaging.sweep", 60)


def test_hint_of_a_failed_job_can_be_repeated(db, redis):
    assert hints.is_first("messaging.sweep", 60)
    with pytest.raises(ValueError, match="a fault"):
        worker.perform("messaging.sweep", _fail)
    assert hints.is_first("messaging.sweep", 60)


def test_every_hint_is_followed_without_redis(settings):
    settings.REDIS_URL = f"redis://127.0.0.1:{free_port()}/0"
    redis_client.cache_clear()
    try:
        assert [hints.is_first("messaging.sweep", 60) for _ in range(2)] == [True, True]
        hints.forget("messaging.sweep")
    finally:
        redis_client.cache_clear()


def _fail() -> None:
    raise ValueError("a fault")
