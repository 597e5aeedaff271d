"""`python -m tests.drills failover [SCENE …]`, `restore`, `move` or `kill-moves`: play a drill,
and write its report.

With the numbers of scenes it plays only these, and writes no report.
"""

import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.drills import (
    failover,
    failover_report,
    killed_moves,
    killed_moves_report,
    moving,
    moving_report,
    restore,
    restore_report,
)


def main(arguments: Sequence[str]) -> int:
    """Play a drill; return 1 if it did not end as it must."""
    if arguments[:1] == ["move"]:
        return _move()
    if arguments[:1] == ["kill-moves"]:
        return _kill_moves()
    with failover.migrated_server() as folder:
        if arguments[:1] == ["restore"]:
            lost, restores = restore.drill(folder)
            failures = restore.failures(lost, restores)
            print(lost.figures, *restores, sep="\n")
            restore_report.write(lost, restores)
        else:
            failures = _fail_over(folder, [int(each) for each in arguments[1:]])
    print("\n".join(failures) or "all as it must be")
    return 1 if failures else 0


def _fail_over(folder: Path, numbers: Sequence[int]) -> list[str]:
    accounts = []
    for scene in [failover.SCENES[number] for number in numbers] or failover.SCENES:
        print(f"{scene.name}, {scene.level} ...", flush=True)
        accounts.append(failover.play(scene, folder))
        print(accounts[-1], flush=True)
    if not numbers:
        failover_report.write(accounts)
    return [text for each in accounts for text in failover_report.failures(each)]


def _move() -> int:
    account = moving.play()
    print(account, flush=True)
    failed = moving_report.failures(account)
    print("\n".join(failed) or "all as it must be")
    moving_report.write(account)
    return 1 if failed else 0


def _kill_moves() -> int:
    found = killed_moves.play()
    failed = killed_moves_report.failures(found)
    print("\n".join(failed) or "all as it must be")
    killed_moves_report.write(found)
    return 1 if failed else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # its processes end with it
    sys.exit(main(sys.argv[1:]))
