"""The machine on which a drill is played: its folder and mail server; and tables, for reports."""

import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.faults.accounting import Sink


@contextmanager
def machine_folder() -> Iterator[Path]:
    """Make a folder that the servers' user may enter, and remove it."""
    with TemporaryDirectory(prefix="rme-drill-", dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextmanager
def folder_with_sink() -> Iterator[tuple[Path, Sink]]:
    """Make a folder that the servers' user may enter, with a mail server; remove both."""
    with machine_folder() as folder:
        sink = Sink(folder)
        try:
            yield folder, sink
        finally:
            sink.stop()


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
