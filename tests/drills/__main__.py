"""`python -m tests.drills failover [SCENE …]` or `move`: play a drill, and write its report.

With the numbers of scenes it plays only these, and writes no report.
"""

import signal
import sys
from collections.abc import Sequence

from tests.drills import failover, failover_report, moving, moving_report


def main(arguments: Sequence[str]) -> int:
    """Play the drill; return 1 if it did not end as it must."""
    if arguments[:1] == ["move"]:
        return move()
    numbers = [int(each) for each in arguments[1:]]
    scenes = [failover.SCENES[number] for number in numbers] or failover.SCENES
    accounts = []
    with failover.migrated_server() as folder:
        for scene in scenes:
            print(f"{scene.name}, {scene.level} ...", flush=True)
            accounts.append(failover.play(scene, folder))
            print(accounts[-1], flush=True)
    failures = [text for each in accounts for text in failover_report.failures(each)]
    print("\n".join(failures) or "all as it must be")
    if not numbers:
        failover_report.write(accounts)
    return 1 if failures else 0


def move() -> int:
    """Play the drill of a move; return 1 if it did not end as it must."""
    account = moving.play()
    print(account, flush=True)
    failed = moving_report.failures(account)
    print("\n".join(failed) or "all as it must be")
    moving_report.write(account)
    return 1 if failed else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # its processes end with it
    sys.exit(main(sys.argv[1:]))
