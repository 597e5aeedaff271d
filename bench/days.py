"""Thirty days of messages in partitions by day: `python -m bench days`.

Each day its messages are stored, the periodic jobs run as if it had just ended, and it is checked
that nothing is kept too long, nothing is in a default partition and nothing live is lost. On three
of the days the statements of the hot path are looked at. BENCH_DAYS, BENCH_DAY_ROWS and
BENCH_MESSAGE_DAYS make it smaller or larger.
"""

import os
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from bench.scene import Scene

DAYS = int(os.environ.get("BENCH_DAYS", "30"))
ROWS = int(os.environ.get("BENCH_DAY_ROWS", "10000"))
MESSAGE_DAYS = int(os.environ.get("BENCH_MESSAGE_DAYS", "10"))
CONTENT_DAYS = MESSAGE_DAYS // 2
STEADY = MESSAGE_DAYS + 3
"""From this day on as many partitions are dropped as created."""
SENT_AFTER = MESSAGE_DAYS + 4
"""What was scheduled is sent so many days later, when its partitions are gone."""
SHOWN = (3, STEADY, DAYS)


def days(_: Scene) -> None:
    """Let days pass, and print what the statements read on a few of them."""
    from rme.tenants.models import Organization
    from tests.simulation import calls, plans
    from tests.simulation import days as simulated

    Organization.objects.get_or_create(pk=simulated.ORGANIZATION, defaults={"name": "Acme"})
    first, taken, counts = simulated.first_of(DAYS), [], []
    readings = {}
    with simulated.partitions_by_day(messages=MESSAGE_DAYS, contents=CONTENT_DAYS):
        simulated.create_ahead(first)
        for number in range(1, DAYS + 1):
            day = first + timedelta(days=number - 1)
            simulated.fill(day, ROWS)
            simulated.end_live(day - timedelta(days=SENT_AFTER), day)
            started = time.perf_counter()
            simulated.run_jobs(day + timedelta(days=1))
            taken.append(time.perf_counter() - started)
            assert simulated.in_default() == simulated.incomplete() == 0
            assert not any(simulated.past_retention(day + timedelta(days=1)).values())
            if number > 1:  # the last minutes of a day are counted on the next
                assert simulated.counted(day - timedelta(days=1)) == ROWS
            counts.append(len(simulated.leaves()))
            if number in SHOWN:
                own = calls.hot_calls().items()
                readings[number] = {name: plans.read_by(call) for name, call in own}
    for number in (n for n in SHOWN if n in readings):
        print(f"day {number}: {counts[number - 1]} partitions, jobs {taken[number - 1]:.2f} s")
    print(f"the jobs of a day took {max(taken[STEADY - 1 :]):.2f} s at most from day {STEADY} on")
    _print(readings, calls.BY_STATISTICS)
    assert len(set(counts[STEADY - 1 :])) == 1


def _print(readings: Mapping[int, Mapping[str, Any]], by_statistics: Sequence[str]) -> None:
    """Print the partitions, blocks and milliseconds of planning of each call, by day."""
    print(f"{'partitions, blocks, planning on day':<38}" + "".join(f"{n:<24}" for n in readings))
    steady, last = (readings[min(each, DAYS)] for each in (STEADY, DAYS))
    for name, reading in last.items():
        found = [each[name] for each in readings.values()]
        line = "".join(f"{r.partitions:>4}{r.blocks:>7}{r.planning_ms:>8.1f} ms  " for r in found)
        other = "" if reading.nodes == steady[name].nodes else "another plan"
        print(f"{name:<38}{line}{other}")
        assert reading.partitions <= steady[name].partitions, name
        assert not other or name in by_statistics, name
