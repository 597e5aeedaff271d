"""The report of a run: printed, and written into docs/simulation.md between its marks."""

import re
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path

import orjson

from tests.simulation.world.parallel import Played

WIDTH = 116


@dataclass
class Run:
    """What was counted in a run without defects."""

    command: str
    wanted: int
    processes: int
    first: int = 0
    """The first seed; the others follow."""
    parts: int = 1
    """In how many runs it was played."""
    commit: str = "unknown"
    """The version of the code that was played, or each with its seeds."""
    seeds: int = 0
    steps: int = 0
    checks: int = 0
    violated: int = 0
    seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)

    def add(self, played: Played) -> None:
        """Count a history."""
        self.seeds += 1
        self.steps += played.steps
        self.checks += played.checks
        self.faults += played.faults
        self.violated += bool(played.violations)
        self.broken.update({each.partition(":")[0] for each in played.violations})

    def save(self, path: Path) -> None:
        """Write what was counted, to be merged with that of other runs."""
        path.write_bytes(orjson.dumps(self, option=orjson.OPT_INDENT_2))

    def lines(self) -> list[str]:
        """Return the report."""
        stopped = f" of {self.wanted}, then it was stopped" if self.seeds < self.wanted else ""
        rate = self.seeds / self.seconds if self.seconds else 0.0
        lines = [
            f"seeds {self.seeds}{stopped}",
            f"steps {self.steps}, invariants checked {self.checks}, violations {self.violated}",
            f"{self.seconds:.0f} s with {self.processes} processes: {rate:.2f} seeds a second"
            + (f" ({self.parts} runs, one after the other)" if self.parts > 1 else ""),
            f"commit {self.commit}",
            *_wrapped("faults: ", _counted(self.faults)),
        ]
        return lines + (_wrapped("violated: ", _counted(self.broken)) if self.broken else [])

    def text(self) -> str:
        """Return the report as the documentation has it."""
        return "\n".join([f"`{self.command}`", "", "```", *self.lines(), "```"])


def merged(paths: Sequence[Path]) -> Run:
    """Return the run of which others are parts. Raises SystemExit if a seed is in two of them."""
    runs = sorted((_read(each) for each in paths), key=lambda run: run.first)
    for one, following in pairwise(runs):
        if one.first + one.wanted > following.first:
            raise SystemExit(f"seed {following.first} is in two runs")
    wanted = sum(each.wanted for each in runs)
    first = f"FIRST={runs[0].first} " if runs[0].first else ""
    whole = Run(
        f"{first}SEEDS={wanted} make simulate",
        wanted,
        max(each.processes for each in runs),
        runs[0].first,
        len(runs),
        _commits(runs),
    )
    for each in runs:
        whole.seeds += each.seeds
        whole.steps += each.steps
        whole.checks += each.checks
        whole.violated += each.violated
        whole.seconds += each.seconds
        whole.faults += each.faults
        whole.broken += each.broken
    return whole


def _commits(runs: Sequence[Run]) -> str:
    """Return the version that was played, or each with its first and last seeds."""
    by_version = [(name, list(some)) for name, some in groupby(runs, lambda run: run.commit)]
    if len(by_version) == 1:
        return by_version[0][0]
    return ", ".join(
        f"{name} (seeds {some[0].first} to {some[-1].first + some[-1].wanted - 1})"
        for name, some in by_version
    )


def commit() -> str:
    """Return the commit of the code, marked if files have changed since; without git, unknown."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()


def _read(path: Path) -> Run:
    run = Run(**orjson.loads(path.read_bytes()))
    run.faults, run.broken = Counter(run.faults), Counter(run.broken)
    return run


@dataclass
class Defect:
    """How a defect was found."""

    name: str
    meaning: str
    seeds: int
    found_by: Sequence[str]
    """The invariants that found it; empty: it was not found."""


def defects_text(defects: Sequence[Defect]) -> str:
    """Return the table of defects."""
    rows = [
        f"| {each.name} | {each.meaning} | {each.seeds if each.found_by else 'not found'} | "
        f"{', '.join(f'`{name}`' for name in each.found_by)} |"
        for each in defects
    ]
    head = "| defect | what it does | seeds played until it was found | by |"
    return "\n".join([head, "|---|---|---|---|", *rows])


def write(path: Path, mark: str, text: str) -> None:
    """Replace what stands between two marks of a file."""
    start, end = f"<!-- {mark} -->", f"<!-- end of {mark} -->"
    pattern = re.compile(f"{re.escape(start)}.*{re.escape(end)}", re.DOTALL)
    page = path.read_text()
    if not pattern.search(page):
        raise SystemExit(f"{path} has no marks for the {mark}")
    path.write_text(pattern.sub(lambda _: f"{start}\n{text}\n{end}", page))


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"


def _wrapped(begin: str, text: str) -> list[str]:
    lines, line = [], begin
    for part in text.split(", "):
        if len(line) + len(part) > WIDTH:
            lines.append(line.rstrip())
            line = ""
        line += f"{part}, "
    return [*lines, line.removesuffix(", ")]
