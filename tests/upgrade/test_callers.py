"""A caller that ends, and a phase in which nobody called, are not taken for success."""

import time

from tests.fakes.http1 import Http1Server, respond
from tests.upgrade.callers import THREADS, Callers

DEMO = {"contact_ids": ["c1"]}


def test_caller_that_ends_with_an_error_is_reported():
    with Http1Server(lambda sock, seen: respond(sock, 202, b"no JSON")) as server:
        callers = Callers(DEMO, "token", lambda: [server.port], phase="first")
        with callers.calling():
            while len(callers.odd) < THREADS:
                time.sleep(0.01)
    assert all("ended: JSONDecodeError" in each for each in callers.odd)


def test_phase_without_calls_is_reported_as_silent():
    callers = Callers(DEMO, "token", list)
    callers.answers.update({("first", kind): 1 for kind in ("202", "replay", "read")})
    callers.answers["second", "202"] += 1
    assert callers.silent_phases(["first", "second", "third"]) == ["second", "third"]
