"""Deadlines of processes: for how long a worker counts as alive."""

import os
import subprocess
import sys
from functools import partial

import pytest

from rme.celery import app
from rme.core.process import liveness, worker
from rme.probe import workers


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """Let this process store deadlines as a worker `email`; return the folder."""
    monkeypatch.setattr(liveness, "_deadline", None)
    liveness.begin(tmp_path, "email")
    yield tmp_path
    os.close(liveness._deadline.file)


def left(folder):
    return liveness.seconds_left(folder, "email")


def test_a_process_counts_as_alive_until_its_deadline(begun):
    assert 50 < left(begun) < 60.01
    liveness.extend(-600)
    assert -610 < left(begun) < -599.99
    liveness.extend(5000)
    liveness.extend(10)
    assert 0 < left(begun) < 10.01
    assert liveness.seconds_left(begun, "sms") is None


def test_task_counts_as_alive_for_its_own_time_limit(begun):
    app.loader.import_default_modules()
    hourly, usual = "messaging.housekeeping", "messaging.sweep"
    limits = {}
    for task in (hourly, usual):
        with worker._counting_as_alive(task):
            limits[task] = left(begun)
        assert 50 < left(begun) < 60.01
    assert 3650.0 < limits[hourly] < 3660.01
    assert app.conf.task_time_limit - 10 < limits[usual] < app.conf.task_time_limit + 0.01


@pytest.mark.django_db
def test_a_worker_has_worked_once_a_task_succeeded(begun):
    def fail():
        raise ValueError

    probe = partial(workers, begun, ["email"], worked=True)
    with pytest.raises(ValueError):
        worker.perform("trial", fail)
    assert workers(begun, ["email"]) == []
    assert probe() == ["email: no task has succeeded yet."]
    worker.perform("trial", lambda: None)
    liveness.extend()
    assert probe() == []


def test_an_ended_process_does_not_count_and_leaves_no_file(begun):
    """Another process may have its number since, as after a restart of a container."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    liveness.extend(-10)
    folder = begun / "alive"
    for name in (f"email@{ended.pid}@1", f"email@{os.getpid()}@1"):
        (folder / name).write_text("9e9")
    assert left(begun) < 0
    liveness.begin(begun, "email")
    assert [path.name.split("@")[1] for path in folder.iterdir()] == [str(os.getpid())]
    assert left(begun) > 59


def test_empty_heartbeat_file_does_not_count_as_alive(begun):
    (path,) = (begun / "alive").iterdir()
    path.write_text("")
    assert left(begun) < 0
