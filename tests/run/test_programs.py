"""The command lines of the service."""

import subprocess
import sys

import pytest

from rme.run import programs
from tests.service import ROOT


@pytest.mark.parametrize("value", ["0", "-1", "two", "2.5", "1000"])
@pytest.mark.parametrize("name", list(programs.NUMBERS))
def test_invalid_number_is_reported(name, value):
    assert programs.refusal({name: value}) == f"{name}={value} is not a number from 1 to 999."


def test_numbers_that_can_be_are_taken():
    assert programs.refusal({}) is None
    assert programs.refusal({"WEB_WORKERS": "8", "WEB_THREADS": "", "PORT": "x"}) is None


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["fax"], "there is no queue fax; there are email, sms, push, sweep, default"),
        (["sms,fax"], "there is no queue fax; there are email, sms, push, sweep, default"),
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
        name: {"queue"} if name == "sweep" else set() for name in options
    }
