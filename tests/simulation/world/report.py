"""The report of a run: printed, and written into docs/simulation.md between its marks."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.simulation.world.parallel import Played

WIDTH = 116


@dataclass
class Run:
    """What was counted in a run without defects."""

    command: str
    wanted: int
    processes: int
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

    def lines(self) -> list[str]:
        """Return the report."""
        stopped = f" of {self.wanted}, then it was stopped" if self.seeds < self.wanted else ""
        rate = self.seeds / self.seconds if self.seconds else 0.0
        lines = [
            f"seeds {self.seeds}{stopped}",
            f"steps {self.steps}, invariants checked {self.checks}, violations {self.violated}",
            f"{self.seconds:.0f} s with {self.processes} processes: {rate:.2f} seeds a second",
            *_wrapped("faults: ", _counted(self.faults)),
        ]
        return lines + (_wrapped("violated: ", _counted(self.broken)) if self.broken else [])

    def text(self) -> str:
        """Return the report as the documentation has it."""
        return "\n".join([f"`{self.command}`", "", "```", *self.lines(), "```"])


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
