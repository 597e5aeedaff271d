"""Metrics that the processes of a machine share, however these end."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from rme.core.telemetry import metric_files
from rme.core.telemetry.meters import Counter, Histogram
from tests.core.telemetry.counting import processes
from tests.scrape import counted, labels

SECONDS = Histogram("test_seconds", "For this test.", ["kind"], (0.1, 1.0))
COUNT = Counter("test_own_total", "For this test.", ["kind"])
PLAIN = Counter("test_plain_total", "For this test.")


def read(folder: Path) -> dict[str, float]:
    """Return the values of a folder, by name and the value of a label if there is one."""
    return {
        sample.name + "".join(f" {value}" for value in sample.labels.values()): sample.value
        for metric in metric_files.read(folder)
        for sample in metric.samples
    }


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "metrics"


def test_values_are_counted_in_cumulative_buckets(counting):
    # a bound belongs to its bucket, as Prometheus has it; a clock that was set back counts as 0
    SECONDS.observe_each([(0.1, ("a",)), (0.5, ("a",)), (7.0, ("a",)), (-3.0, ("a",))])
    SECONDS.observe(0.2, "b")
    sums = counted("test_seconds_sum")
    assert sums == {labels(kind="a"): pytest.approx(7.6), labels(kind="b"): 0.2}
    assert counted("test_seconds_count") == {labels(kind="a"): 4, labels(kind="b"): 1}
    buckets = {
        tuple(sorted(dict(each).values())): n for each, n in counted("test_seconds_bucket").items()
    }
    assert buckets == {
        ("0.1", "a"): 2,
        ("1.0", "a"): 3,
        ("+Inf", "a"): 4,
        ("0.1", "b"): 0,
        ("1.0", "b"): 1,
        ("+Inf", "b"): 1,
    }


def test_series_is_shown_before_it_has_counted(counting):
    SECONDS.observe_each([])
    assert counted("test_seconds_count") == counted("test_own_total") == {}
    COUNT.show(("a",))
    PLAIN.show()
    assert counted("test_own_total") == {labels(kind="a"): 0}
    assert counted("test_plain_total") == {labels(): 0}


def test_counts_of_several_processes_add_up(folder):
    with processes(folder, 3) as running:
        for number, process in enumerate(running):
            process.run(
                f"count.add('a', by={number + 1}); now.set({number + 1}); highest.set({number})"
            )
        assert read(folder) == {"test_total a": 6, "test_now": 6, "test_highest": 2}


def test_successor_of_a_killed_process_continues_its_counts_in_its_files(folder):
    with processes(folder, 2) as (killed, other):
        killed.run("count.add('a', by=5); now.set(1)")
        other.run("count.add('a'); now.set(2)")
        killed.kill()
        assert read(folder) == {"test_total a": 6, "test_now": 2}
        before = names(folder)
        for number in range(3):
            with processes(folder, 1) as (successor,):
                successor.run("count.add('a', by=10); now.set(4)")
                assert read(folder) == {"test_total a": 16 + 10 * number, "test_now": 6}
                assert names(folder) >= before
                assert {name for name in names(folder) if name.startswith("process-")} == {
                    "process-0",
                    "process-1",
                }


def test_gauges_of_a_killed_process_are_not_those_of_its_successor(folder):
    with processes(folder, 2) as (killed, _):
        killed.run("count.add('a'); now.set(1); highest.set(9)")
        killed.kill()
        with processes(folder, 1) as (successor,):
            successor.run("count.add('a')")
            assert {path.name for path in folder.glob("process-*")} == {"process-0", "process-1"}
            assert read(folder) == {"test_total a": 2}


def test_processes_that_start_at_once_take_different_files(folder):
    with processes(folder, 6, at_once=True) as running:
        for process in running:
            process.order("count.add('a')")
        for process in running:
            process.wait()
        assert read(folder)["test_total a"] == 6
        assert len([*folder.glob("counter_*.db")]) >= 6


def test_forked_child_counts_in_files_of_its_own(folder):
    with processes(folder, 1) as (parent,):
        parent.run("count.add('a'); now.set(1)")
        parent.run("child = os.fork(); child or (count.add('a', by=2), now.set(7), os._exit(0))")
        parent.run("os.waitpid(child, 0); count.add('a')")
        assert read(folder) == {"test_total a": 4, "test_now": 1}
        assert names(folder) >= {"counter_0.db", "counter_1.db"}


def test_child_that_outlives_its_parent_keeps_its_files(folder):
    child_file = folder.parent / "child"
    with processes(folder, 1) as (parent,):
        parent.run("now.set(1); ready, write = os.pipe()")
        work = "count.add('a', by=2), now.set(7), os.write(write, b'x'), signal.pause()"
        parent.run(f"child = os.fork() or ({work})")
        parent.run(f"os.read(ready, 1); open({str(child_file)!r}, 'w').write(str(child))")
    child = int(child_file.read_text())
    try:
        assert read(folder) == {"test_total a": 2, "test_now": 7}
        with processes(folder, 1) as (successor,):
            successor.run("count.add('a'); now.set(2)")
            assert read(folder) == {"test_total a": 3, "test_now": 9}
    finally:
        os.kill(child, signal.SIGKILL)


def test_folder_is_emptied_once_nobody_counts_there(folder):
    with processes(folder, 1) as (first,):
        first.run("count.add('a')")
        with processes(folder, 1) as (second,):
            second.run("count.add('b')")
            assert read(folder) == {"test_total a": 1, "test_total b": 1}
    with processes(folder, 1) as (third,):
        third.run("count.add('c')")
        assert read(folder) == {"test_total c": 1}


@pytest.mark.parametrize("line", ["raise SystemExit", "os._exit(1)", "os.kill(os.getpid(), 9)"])
def test_no_count_is_lost_at_the_end_of_a_process(folder, line):
    with processes(folder, 1) as (process,):
        process.run("count.add('a', by=3)")
        process.order(f"count.add('a'); {line}")
        process.process.wait(10)
    assert read(folder) == {"test_total a": 4}


def test_folder_that_cannot_be_used_stops_no_process(tmp_path):
    (tmp_path / "file").touch()
    with processes(tmp_path / "file" / "metrics", 1) as (process,):
        process.run("count.add('a'); now.set(1); assert not [*meters.read()]")


def test_counting_without_the_folder_raises_nothing(counting):
    shutil.rmtree(counting)
    COUNT.add("a")
    SECONDS.observe(1.0, "a")
    COUNT.show(("b",))
    assert not counting.exists()
