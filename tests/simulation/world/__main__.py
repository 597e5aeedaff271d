"""`python -m tests.simulation.world [mutants | merge FILE … | SEED …]`: play histories, and report.

Environment: SEEDS (how many), FIRST (the first), PROCESSES, MUTANT (a defect to play with), REPORT
(a page into which the report is written, between its marks), PART (a file for what was counted,
to be merged with those of other runs).
"""

import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.simulation.world import report
from tests.simulation.world.parallel import CHUNK, Played, Task, mutant_names, play
from tests.simulation.world.report import Defect, Run

MUTANT_SEEDS = 1000
"""Each defect must be found within so many seeds."""
SHOWN = 3
"""The violations that are shown in full."""
PROGRESS_SECONDS = 10.0
_GIVEN = ("SEEDS", "FIRST", "PROCESSES", "MUTANT")


def main(arguments: Sequence[str]) -> int:
    """Play what the arguments name; return the exit code."""
    processes = int(os.environ.get("PROCESSES", str(os.cpu_count() or 1)))
    if arguments[:1] == ["mutants"]:
        return _find_mutants(arguments[1:], processes)
    if arguments[:1] == ["merge"]:
        return _close(report.merged([Path(each) for each in arguments[1:]]))
    first, count = int(os.environ.get("FIRST", "0")), int(os.environ.get("SEEDS", "100000"))
    seeds = [int(each) for each in arguments] or range(first, first + count)
    mutant = os.environ.get("MUTANT") or None
    tasks = [Task(seeds[at : at + CHUNK], mutant) for at in range(0, len(seeds), CHUNK)]
    running = min(processes, len(tasks))
    run = Run(_command(), len(seeds), running, seeds[0], commit=report.commit())
    return _report(tasks, run)


def _report(tasks: Sequence[Task], run: Run) -> int:
    """Play tasks, and report; if it is stopped, on what was played until then."""
    count = run.wanted
    started = shown_at = time.monotonic()
    try:
        for played in play(tasks, run.processes):
            run.add(played)
            if played.violations:
                _show(played, whole=run.violated <= SHOWN)
            elif count == 1:
                print("digest", played.digest)
            if time.monotonic() - shown_at > PROGRESS_SECONDS:
                shown_at = time.monotonic()
                progress = f"{run.seeds} of {count} seeds, {run.violated} violated"
                print(progress, file=sys.stderr, flush=True)
    finally:
        run.seconds = time.monotonic() - started
        code = _close(run)
    return code


def _close(run: Run) -> int:
    """Report on a run, where the environment says; return the exit code."""
    print("\n".join(run.lines()), flush=True)
    if "REPORT" in os.environ:
        report.write(Path(os.environ["REPORT"]), "run", run.text())
    if "PART" in os.environ:
        run.save(Path(os.environ["PART"]))
    return 1 if run.violated or run.seeds < run.wanted else 0


def _command() -> str:
    given = [f"{name}={os.environ[name]}" for name in _GIVEN if name in os.environ]
    return " ".join([*given, "make simulate"])


def _show(played: Played, *, whole: bool) -> None:
    if whole:
        print("\n".join(played.last))
    defect = f"MUTANT='{played.mutant}' " if played.mutant else ""
    print(f"seed {played.seed}: {defect}make simulate ARGS={played.seed}")
    print("\n".join(f"  {each}" for each in played.violations), flush=True)


def _find_mutants(names: Sequence[str], processes: int) -> int:
    """Play each defect until it is found; return 1 if one is not."""
    chosen = list(names or mutant_names())
    seeds = range(int(os.environ.get("SEEDS", str(MUTANT_SEEDS))))
    stops = "ALL" not in os.environ
    found: dict[str, list[Played]] = {each: [] for each in chosen}
    tasks = [Task(seeds, each, stops) for each in chosen]
    for played in play(tasks, min(processes, len(tasks))):
        found[played.mutant or ""].append(played)
        if played.violations and stops:
            said = f"{played.mutant}: seed {played.seed}: {played.violations[0]}"
            print(said, file=sys.stderr, flush=True)
    defects = []
    meanings = mutant_names()
    for name, some in found.items():
        hits = [each for each in some if each.violations]
        by = dict.fromkeys(v.partition(":")[0] for each in hits for v in each.violations)
        defects.append(Defect(name, meanings[name], len(some), list(by)))
        first = f"first by seed {min(each.seed for each in hits)}" if hits else "NOT FOUND"
        print(f"{name}: {len(hits)} of {len(some)} seeds, {first} ({', '.join(by)})")
    if "REPORT" in os.environ:
        report.write(Path(os.environ["REPORT"]), "defects", report.defects_text(defects))
    return 0 if all(any(e.violations for e in some) for some in found.values()) else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # its processes end with it
    sys.exit(main(sys.argv[1:]))
