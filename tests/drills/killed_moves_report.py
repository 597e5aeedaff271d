"""The verdict of the drill of killed moves, and its report, docs/killed-moves-drill.md."""

from collections.abc import Sequence

from tests.drills.killed_moves import STEPS, KilledMove
from tests.drills.machine import described, titled
from tests.service import ROOT

PATH = ROOT / "docs" / "killed-moves-drill.md"
_WORDS = {
    "leaving": "LEAVING",
    "paused": "PAUSED",
    "ready": "it compared the rows",
    "switched": "the switch",
}
_TEXT = """# Drill: moves that are killed

Written by `make drill-kill-moves`, on {machine}. Two cells, each with its own PostgreSQL, Valkey,
web process and workers, and a [router](cells.md) run on loopback. The drill kills a move with
SIGKILL after each of four steps, and nobody runs the command again. The time is from its death
until a call at the router got a 202 and neither cell was paused any more.

{table}
"""


def failures(found: Sequence[KilledMove]) -> list[str]:
    """Return what did not end as it must."""
    wanted = dict.fromkeys(STEPS, ("", "ARRIVING")) | {"switched": ("MOVED", "")}
    return [f"{each.step}: {each.phases}" for each in found if each.phases != wanted[each.step]]


def write(found: Sequence[KilledMove]) -> None:
    """Write the report."""
    rows = [
        [
            _WORDS[each.step],
            f"{each.seconds:.1f}",
            " · ".join(phase or "–" for phase in each.phases),
        ]
        for each in found
    ]
    head = ["killed after", "seconds", "at the end: old cell · new cell"]
    PATH.write_text(_TEXT.format(machine=described(), table=titled(head, rows)))
