"""The work of the errands of test_errands.py."""

import os
import re
import signal
import time


def add(left, right):
    return left + right


def refuse(reason):
    raise LookupError(reason)


def process_id():
    return os.getpid(), os.getpriority(os.PRIO_PROCESS, 0)


def spin(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def spin_in_native_code():
    re.fullmatch("(a+)+b", "a" * 60)


def wait_for(path, seconds=0.0):
    """Wait until a file is there, but for so many seconds at least."""
    time.sleep(seconds)
    while not os.path.exists(path):
        time.sleep(0.01)


def repeat(letter, count):
    for _ in range(count):
        yield letter * 1000


def break_off():
    yield b"x" * 200_000
    raise LookupError("none")


def terminate():
    os.kill(os.getpid(), signal.SIGTERM)
    return "it goes on"


def die():
    yield b"x" * 100_000
    os.kill(os.getpid(), signal.SIGKILL)
