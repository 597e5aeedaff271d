"""The machine on which a drill was played, and tables, for reports."""

import os
import platform
from collections.abc import Sequence
from pathlib import Path


def described() -> str:
    """Return the machine's processors and memory in one line."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    name = names[0] if names else platform.machine()
    return f"{os.cpu_count()} processors ({name}) and {memory:.0f} GiB of memory"


def titled(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)
