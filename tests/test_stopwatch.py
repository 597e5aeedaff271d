"""The tests' stopwatch: it counts what a process waits for, and not what the machine takes away."""

import signal
import subprocess
import sys
import time

from tests.service import ROOT
from tests.stopwatch import Stopwatch

_STOPPED = """
import sys
from tests.stopwatch import Stopwatch
with Stopwatch() as watch:
    print("begun", flush=True)
    sys.stdin.readline()
print(watch.seconds, watch.stalled)
"""


def test_all_time_counts_as_waited_or_stalled():
    began = time.monotonic()
    with Stopwatch() as watch:
        time.sleep(0.2)
    took = time.monotonic() - began
    assert 0.2 <= watch.seconds + watch.stalled <= took


def test_time_in_which_a_process_is_stopped_is_stalled():
    process = subprocess.Popen(
        [sys.executable, "-c", _STOPPED],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.5)
    process.send_signal(signal.SIGCONT)
    _, stalled = map(float, process.communicate("go on\n")[0].split())
    assert stalled >= 0.4
