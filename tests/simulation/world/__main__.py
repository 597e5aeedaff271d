"""`python -m tests.simulation.world [mutants | SEED …]`: play histories, and report on them.

Environment: SEEDS (how many), FIRST (the first), PROCESSES, MUTANT (a defect to play with).
"""

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence

from tests.simulation.world.parallel import CHUNK, Played, Task, mutant_names, play

MUTANT_SEEDS = 1000
"""Each defect must be found within so many seeds."""
SHOWN = 3
"""The violations that are shown in full."""
PROGRESS_SECONDS = 10.0


def main(arguments: Sequence[str]) -> int:
    """Play what the arguments name; return the exit code."""
    processes = int(os.environ.get("PROCESSES", str(os.cpu_count() or 1)))
    if arguments[:1] == ["mutants"]:
        return _find_mutants(arguments[1:], processes)
    first, count = int(os.environ.get("FIRST", "0")), int(os.environ.get("SEEDS", "100000"))
    seeds = [int(each) for each in arguments] or range(first, first + count)
    mutant = os.environ.get("MUTANT") or None
    tasks = [Task(seeds[at : at + CHUNK], mutant) for at in range(0, len(seeds), CHUNK)]
    return _report(tasks, len(seeds), min(processes, len(tasks)))


def _report(tasks: Sequence[Task], count: int, processes: int) -> int:
    started = shown_at = time.monotonic()
    faults: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    steps = checks = done = violated = 0
    for played in play(tasks, processes):
        done, steps, checks = done + 1, steps + played.steps, checks + played.checks
        faults += played.faults
        broken.update({each.partition(":")[0] for each in played.violations})
        if played.violations:
            violated += 1
            _show(played, whole=violated <= SHOWN)
        elif count == 1:
            print("digest", played.digest)
        if time.monotonic() - shown_at > PROGRESS_SECONDS:
            shown_at = time.monotonic()
            print(f"{done} of {count} seeds, {violated} violated", file=sys.stderr, flush=True)
    seconds = time.monotonic() - started
    print(f"seeds {done}, steps {steps}, invariants checked {checks}, violations {violated}")
    print(f"{seconds:.0f} s with {processes} processes: {done / seconds:.2f} seeds a second")
    print("faults:", ", ".join(f"{kind} {n}" for kind, n in sorted(faults.items())) or "none")
    if broken:
        print("violated:", ", ".join(f"{name} {n}" for name, n in broken.most_common()))
    return 1 if violated or done < count else 0


def _show(played: Played, *, whole: bool) -> None:
    if whole:
        print("\n".join(played.last))
    defect = f"MUTANT='{played.mutant}' " if played.mutant else ""
    print(f"seed {played.seed}: {defect}make simulate ARGS={played.seed}")
    print("\n".join(f"  {each}" for each in played.violations), flush=True)


def _find_mutants(names: Sequence[str], processes: int) -> int:
    """Play each defect until it is found; return 1 if one is not."""
    chosen = names or mutant_names()
    seeds = range(int(os.environ.get("SEEDS", str(MUTANT_SEEDS))))
    stops = "ALL" not in os.environ
    found: dict[str, list[Played]] = {each: [] for each in chosen}
    tasks = [Task(seeds, each, stops) for each in chosen]
    for played in play(tasks, min(processes, len(tasks))):
        found[played.mutant or ""].append(played)
        if played.violations and stops:
            said = f"{played.mutant}: seed {played.seed}: {played.violations[0]}"
            print(said, file=sys.stderr, flush=True)
    for name, some in found.items():
        hits = [each for each in some if each.violations]
        by = Counter(v.partition(":")[0] for each in hits for v in each.violations)
        first = f"first by seed {min(each.seed for each in hits)}" if hits else "NOT FOUND"
        print(f"{name}: {len(hits)} of {len(some)} seeds, {first} ({', '.join(by)})")
    return 0 if all(any(e.violations for e in some) for some in found.values()) else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # its processes end with it
    sys.exit(main(sys.argv[1:]))
