"""Other processes that count: each by a meter of its own, in a folder that all share."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.service import ROOT

_SCRIPT = """
import os, signal, sys
from pathlib import Path
from rme.core.telemetry import meters
count = meters.Counter("test_total", "For this test.", ["kind"])
now = meters.Gauge("test_now", "For this test.")
highest = meters.Gauge("test_highest", "For this test.", mode="livemax")
answers, sys.stdout = sys.stdout, sys.stderr  # which has the log
meters.share(Path(sys.argv[1]))
for line in sys.stdin:
    exec(line)
    print("done", file=answers, flush=True)
"""


class Process:
    """A process that runs what it is told, a line at a time."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-c", _SCRIPT, str(folder)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)

    def run(self, line: str) -> None:
        """Run a line, and wait until it is done."""
        self.order(line)
        self.wait()

    def order(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def wait(self) -> None:
        assert self.process.stdout
        assert self.process.stdout.readline() == "done\n"

    def kill(self) -> None:
        """Kill the process, as `kill -9` does."""
        self.process.kill()
        self.process.wait(10)


@contextmanager
def processes(folder: Path, number: int, *, at_once: bool = False) -> Iterator[list[Process]]:
    """Run processes while the block runs, started one after the other or all at once."""
    running = []
    try:
        for _ in range(number):
            running.append(Process(folder))
            if not at_once:
                running[-1].run("pass")
        yield running
    finally:
        for each in running:
            each.kill()
            assert each.process.stdin and each.process.stdout
            each.process.stdin.close()
            each.process.stdout.close()
