"""Work that may take long is done by processes that can be killed."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from psutil import pid_exists

from rme.core import errors
from rme.core.process import admission
from rme.core.process.admission import Budget
from rme.core.process.errands import LINE_SIZE, Errands, Killed, Overrun
from tests.clocks import StandingClock
from tests.core.process import errands_work as work
from tests.service import wait_for
from tests.stopwatch import Stopwatch


@pytest.fixture
def errands():
    return Errands(Budget(rate=0.5, burst=5.0))


def test_errand_returns_its_result_or_raises_its_error(errands):
    assert errands.run("acme", 1.0, work.add, 1, 2) == 3
    with pytest.raises(LookupError, match="none"):
        errands.run("acme", 1.0, work.refuse, "none")


def test_errands_share_a_low_priority_process(errands):
    first, niceness = errands.run("acme", 1.0, work.process_id)
    again, _ = errands.run("other", 1.0, work.process_id)
    assert (first == again, first != os.getpid(), niceness) == (True, True, 10)


@pytest.mark.parametrize("endless", [(work.spin, 60.0), (work.spin_in_native_code,)])
def test_errand_beyond_its_time_is_killed_even_in_native_code(errands, endless):
    errands.run("acme", 1.0, work.add, 1, 1)  # the process has started
    ticks = 0
    with ThreadPoolExecutor(1) as pool, Stopwatch() as watch:
        done = pool.submit(errands.run, "acme", 0.3, *endless)
        while not done.done():
            time.sleep(0.01)
            ticks += 1
    with pytest.raises(Overrun) as raised:
        done.result()
    assert raised.type is Overrun
    assert ticks > 5  # this thread ran all the time
    assert watch.seconds < 5
    assert errands.run("acme", 1.0, work.add, 1, 2) == 3


def test_errand_goes_on_when_all_processes_of_the_service_are_asked_to_stop(errands):
    assert errands.run("acme", 1.0, work.terminate) == "it goes on"


def test_second_errand_of_an_organization_waits_and_another_organization_does_not(
    errands, tmp_path
):
    errands.run("acme", 1.0, work.add, 1, 1)
    gate = str(tmp_path / "gate")
    with ThreadPoolExecutor(16) as pool:
        slow = [pool.submit(errands.run, "acme", 1.0, work.wait_for, gate) for _ in range(16)]
        wait_for(lambda: sum(each.done() for each in slow) == 16 - 1 - LINE_SIZE)
        assert errands.run("other", 1.0, work.add, 1, 2) == 3
        assert not all(each.done() for each in slow)
        (tmp_path / "gate").touch()
        refused = [each for each in slow if isinstance(each.exception(), errors.RateLimited)]
    assert len(refused) == 16 - 1 - LINE_SIZE  # one runs, and as many wait
    assert refused[0].exception().headers == {"Retry-After": "1"}


def test_budget_of_an_organization_runs_out_and_refills(monkeypatch):
    StandingClock(monkeypatch, admission)
    errands = Errands(Budget(rate=1.0, burst=0.2))
    errands.run("acme", 1.0, work.spin, 0.4)
    with pytest.raises(errors.RateLimited) as refusal:
        errands.run("acme", 1.0, work.add, 1, 2)
    assert refusal.value.headers == {"Retry-After": "1"}
    assert errands.run("other", 1.0, work.add, 1, 2) == 3
    errands.budget.charge("acme", -1.0)
    assert errands.run("acme", 1.0, work.add, 1, 2) == 3


def test_long_result_is_streamed_and_its_process_reused(errands):
    pieces = [*errands.stream("acme", 5.0, work.repeat, "ü", 200)]
    assert b"".join(pieces) == "ü".encode() * 200_000
    assert {len(piece) for piece in pieces[:-1]} == {66_000}
    process, _ = errands.run("acme", 1.0, work.process_id)
    assert b"".join(errands.stream("acme", 5.0, work.repeat, b"y", 1)) == b"y" * 1000
    assert errands.run("acme", 1.0, work.process_id)[0] == process


def test_closed_stream_ends_the_work_and_is_charged_only_for_work_done(errands):
    process, _ = errands.run("acme", 1.0, work.process_id)
    pieces = errands.stream("acme", 100.0, work.repeat, b"x", 10_000_000)
    assert len(next(iter(pieces))) == 66_000
    assert pid_exists(process)
    pieces.close()
    assert not pid_exists(process)
    assert errands.run("acme", 1.0, work.add, 1, 2) == 3  # neither its turn nor its budget is used


def test_long_result_breaking_off_raises_an_error_with_its_traceback(errands):
    read = iter(errands.stream("acme", 5.0, work.break_off))
    assert len(next(read)) == 200_000
    with pytest.raises(LookupError, match="none") as error:
        next(read)
    assert "break_off" in error.value.__notes__[0]


def test_errand_of_a_killed_process_is_charged_for_the_time_it_took(errands):
    read = iter(errands.stream("acme", 300.0, work.die))
    assert len(next(read)) == 100_000
    with pytest.raises(Killed):
        next(read)
    assert errands.run("acme", 1.0, work.add, 1, 2) == 3  # the budget of 5 s isn't used up


def test_second_long_result_of_an_organization_waits_for_the_first():
    errands = Errands(Budget(rate=0.5, burst=5.0), line=1)
    first = errands.stream("acme", 5.0, work.repeat, b"x", 1000)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(errands.stream, "acme", 5.0, work.repeat, b"x", 1000)
        wait_for(lambda: errands._pool._lines, 5)
        with pytest.raises(errors.RateLimited):
            errands.stream("acme", 5.0, work.repeat, b"x", 1000)
        assert len(b"".join(errands.stream("other", 5.0, work.repeat, b"x", 1000))) == 1_000_000
        assert not second.done()
        first.close()
        assert len(b"".join(second.result())) == 1_000_000


def test_started_errand_is_not_waited_for_and_pays_for_the_time_on_the_clock(tmp_path, monkeypatch):
    StandingClock(monkeypatch, admission)
    errands = Errands(Budget(rate=0.1, burst=0.2), line=1, by_clock=True)
    running = errands.start("acme", 1.0, work.wait_for, str(tmp_path / "gate"), 0.5)
    assert not running.done()
    (tmp_path / "gate").touch()
    assert running.result(30) is None
    with pytest.raises(errors.RateLimited):
        errands.start("acme", 1.0, work.add, 1, 2)
    assert errands.start("other", 1.0, work.add, 1, 2).result(30) == 3
