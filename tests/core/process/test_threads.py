"""Threads that do jobs: the last used first, at most so many, and jobs that wait for one."""

import os
import subprocess
import sys
import threading

import pytest

from rme.core.process.threads import Threads
from tests.service import ROOT


def test_most_recently_idle_thread_is_used_first():
    threads, used = Threads(4, "test"), []
    for _ in range(20):
        done = threading.Event()
        idle = threading.Event()

        def job(number, done=done):
            used.append(number)
            done.set()

        threads.submit(job)
        assert done.wait(30)
        while not threads._idle:
            idle.wait(0.001)
    assert used == [0] * 20


def test_jobs_wait_for_a_free_thread():
    threads, go, used = Threads(2, "test"), threading.Event(), []
    ended = threading.Semaphore(0)

    def job(number):
        go.wait(30)
        used.append(number)
        ended.release()

    for _ in range(6):
        threads.submit(job)
    assert used == []
    go.set()
    for _ in range(6):
        assert ended.acquire(timeout=30)
    assert set(used) == {0, 1}
    assert len(used) == 6


DIES_WHILE_IT_STARTS = """
import threading, time
from rme.core.process import threads

class Dying(threading.Thread):
    def _bootstrap(self):
        \"\"\"End before `start` hears of it, as a thread without memory does.\"\"\"

def look():
    watch = threads.StartWatch()
    while True:
        watch.look()
        time.sleep(0.1)

threads.start(look, name="looking")
Dying(name="dying").start()
"""
NO_ROOM = """
import resource
from pathlib import Path
from rme.core.process import threads

pool = threads.Threads(2, "sending")
size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size, size))
pool.submit(print)
"""

HAS_NO_MEMORY = """
import time
from rme.core.process import threads

threads.start(bytearray, 2**62, name="large")
time.sleep(20)
"""


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (DIES_WHILE_IT_STARTS, "a thread died while it started"),
        (NO_ROOM, "a thread cannot be started"),
        (HAS_NO_MEMORY, "a thread had no memory"),
    ],
)
def test_process_ends_when_it_has_no_memory_for_a_thread(code, reason):
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == os.EX_SOFTWARE
    assert reason in done.stdout + done.stderr
