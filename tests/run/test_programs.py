"""The command lines of the service."""

import os
import subprocess
import sys
from multiprocessing import current_process, util
from pathlib import Path

import pytest

from rme.run import programs
from tests.service import ROOT


@pytest.mark.parametrize("value", ["0", "-1", "two", "2.5", "1000"])
@pytest.mark.parametrize("name", list(programs.NUMBERS))
def test_invalid_number_is_reported(name, value):
    assert programs.refusal({name: value}) == f"{name}={value} is not a number from 1 to 999."


def test_valid_numbers_are_accepted():
    assert programs.refusal({}) is None
    assert programs.refusal({"WEB_WORKERS": "8", "WEB_THREADS": "", "PORT": "x"}) is None


QUEUES = "email, sms, push, sweep, webhooks, default"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["fax"], f"there is no queue fax; there are {QUEUES}"),
        (["sms,fax"], f"there is no queue fax; there are {QUEUES}"),
        (["--concurrency", "0"], "--concurrency is at least 1"),
    ],
)
def test_invalid_workers_are_reported(arguments, told):
    command = [sys.executable, "-m", "rme.workers", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip().rpartition("error: ")[2]) == (2, told)


def test_beat_hints_without_a_time_by_its_clock():
    from rme.celery import app

    options = {name: each.get("options", {}) for name, each in app.conf.beat_schedule.items()}
    assert {name: set(each) for name, each in options.items()} == {
        name: {"queue"} if name in ("sweep", "webhooks") else set() for name in options
    }


def test_ended_worker_leaves_no_temporary_folder(monkeypatch, tmp_path):
    """Celery's pool shares memory by a file of multiprocessing's temporary folder."""
    from rme.workers import __main__ as workers

    def start(_):
        folder = Path(util.get_temp_dir())
        (tmp_path / "folder").write_text(str(folder))
        raise SystemExit(7 if folder.is_dir() else 0)

    monkeypatch.setattr(workers.app, "start", start)
    monkeypatch.delitem(current_process()._config, "tempdir", raising=False)
    beat = workers.beat()
    beat.start()
    _, status = os.waitpid(beat.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    assert not Path((tmp_path / "folder").read_text()).exists()
