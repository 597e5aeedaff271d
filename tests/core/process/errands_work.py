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


def sleep(seconds):
    time.sleep(seconds)


def repeat(letter, count):
    for _ in range(count):
        yield letter * 1000


def break_off():
    yield b"x" * 200_000
    raise LookupError("none")


def die():
    yield b"x" * 100_000
    os.kill(os.getpid(), signal.SIGKILL)
