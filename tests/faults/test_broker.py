"""Without its broker, Redis or beat the service goes on sending, and says that it is slower."""

import time

import pytest
from redis import Redis

from tests.faults.engines import BUSY_MACHINE, eventually, frozen, on_own_engines
from tests.faults.rabbitmq import SERVER, RabbitMQ
from tests.faults.test_database import soon
from tests.service import data_folder

pytestmark = pytest.mark.xdist_group("service")

SLOW_SECONDS = 15
"""How long what is sent waits at most, where workers find it by themselves."""


@pytest.fixture
def well(broken):
    eventually(lambda: broken.health()["status"] == "ok", 20)


def statuses(broken, *names):
    checks = broken.health()["checks"]
    return [checks[name]["status"] for name in names]


@pytest.mark.promise("faults-6")
def test_due_messages_are_sent_without_redis(broken, well):
    broken.valkey.stop()
    for _ in range(5):
        assert broken.send().status_code == 202
    assert broken.send(schedule=soon(2)).status_code == 202
    assert statuses(broken, "redis", "broker", "workers") == ["down", "down", "degraded"]
    broken.all_left(SLOW_SECONDS)
    broken.valkey.start()
    eventually(lambda: broken.health()["status"] == "ok", 20)
    assert broken.send().status_code == 202
    broken.all_left()
    assert broken.failures() == []


@pytest.mark.promise("faults-6")
def test_a_frozen_redis_delays_no_call(broken, well):
    with frozen(broken.valkey_process()):
        started = time.monotonic()
        for _ in range(5):
            assert broken.send().status_code == 202
        assert time.monotonic() - started < 15
        broken.all_left(SLOW_SECONDS)
    eventually(lambda: broken.health()["status"] == "ok", 20)
    assert broken.failures() == []


@pytest.mark.promise("faults-6")
def test_workers_run_due_work_without_beat(broken, well):
    (beat,) = broken.service.children("rme-beat")
    with frozen(beat):
        assert broken.send(schedule=soon(2)).status_code == 202
        until = time.monotonic() + SLOW_SECONDS * BUSY_MACHINE
        while any(status == "SCHEDULED" for status, *_ in broken.waiting()):
            assert broken.send().status_code == 202  # other tasks come all the time
            assert time.monotonic() < until
            time.sleep(0.2)
        broken.all_left()
        Redis(unix_socket_path=str(broken.valkey.socket)).flushall()  # beat's sign, which fades
        eventually(lambda: statuses(broken, "scheduler", "workers") == ["degraded"] * 2, 20)
        told = broken.health()["checks"]["scheduler"]["detail"]
        assert told == "The scheduler (beat) is not running. Workers do its work, late."
    assert broken.failures() == []


@pytest.mark.promise("faults-6")
@pytest.mark.long
@pytest.mark.skipif(not SERVER.exists(), reason="RabbitMQ is not installed: make broker")
def test_workers_and_beat_survive_a_restart_of_rabbitmq():
    with data_folder() as folder:
        rabbit = RabbitMQ(folder / "rabbitmq")
        rabbit.start()
        try:
            with on_own_engines(folder, CELERY_BROKER_URL=rabbit.url) as broken:
                eventually(lambda: broken.health()["status"] == "ok", 20)
                rabbit.stop()
                started = time.monotonic()
                for _ in range(10):
                    assert broken.send().status_code == 202
                assert time.monotonic() - started < 10
                assert statuses(broken, "broker") == ["down"]
                broken.all_left(SLOW_SECONDS)
                rabbit.start()
                # beat's sweeps come by RabbitMQ again, to every process that works
                eventually(lambda: statuses(broken, "broker", "workers") == ["ok", "ok"], 20)
                broken.valkey.stop()  # and with it the sign that beat left before
                broken.valkey.start()
                eventually(lambda: broken.health()["status"] == "ok", 20)
                assert broken.send(schedule=soon(1)).status_code == 202
                broken.all_left()
                assert broken.failures() == []
        finally:
            rabbit.stop()
