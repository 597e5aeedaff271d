"""Steps under the same timers: each has its own time, and it is known which took too long."""

import signal
import subprocess
import sys

PRELUDE = """
import os, time
from rme.core.process.time_budget import StepOverrun, ProcessPlace, StepTimers, TimedStep

SECONDS = 0.2

def work(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        sum(range(10_000))

def short_steps(count):
    for number in range(count):
        with TimedStep(timers, SECONDS, b"short %d" % number):
            work(0.12)

place = ProcessPlace()
timers = StepTimers(place)
"""


def _run(program: str) -> str:
    """Return what a program of its own prints: its signals are not the tests'."""
    command = [sys.executable, "-c", PRELUDE + program]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def test_long_step_among_short_ones_is_interrupted_alone():
    found = _run("""
place.take()
with timers.running(SECONDS):
    short_steps(5)
    began = time.process_time()
    try:
        with TimedStep(timers, SECONDS, b"long"):
            work(30)
    except StepOverrun:
        print("interrupted", SECONDS / 2 < time.process_time() - began < 10 * SECONDS)
    short_steps(5)
work(0.5)  # the timers are off
print("done")
""")
    assert found == "interrupted True\ndone\n"


def test_process_ends_in_native_code_and_the_next_one_knows_the_step():
    found = _run("""
child = os.fork()
if not child:
    place.take()
    with timers.running(SECONDS):
        short_steps(5)
        with TimedStep(timers, SECONDS, b"long"):
            sum(range(10**15))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
print(place.take(), place.take())
""")
    status, *_, steps = found.splitlines()  # what is logged stands between
    assert (status, steps) == (f"{-signal.SIGPROF}", "b'long' b''")


def test_process_killed_between_steps_leaves_no_step():
    found = _run("""
child = os.fork()
if not child:
    place.take()
    with timers.running(SECONDS):
        short_steps(1)
        sum(range(10**15))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
print(place.take())
""")
    status, *_, step = found.splitlines()
    assert (status, step) == (f"{-signal.SIGPROF}", "b''")
