"""The programs of the service and their command lines."""

import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from signal import SIGKILL, SIGTERM
from subprocess import Popen

from rme.run.forks import PREDECESSOR
from rme.run.process import say, signal_group, spawn, stop

NUMBERS = {
    "WEB_WORKERS": "2",
    "WEB_THREADS": "4",
    "SENDING_THREADS": "4",
    "WORKER_CONCURRENCY": "2",
}
"""The settings of the numbers of processes and threads, with their defaults."""
HEAD_MILLISECONDS = "15000"
"""How long a request's head may take, and how long a connection may be idle."""
HEAD_BYTES = "65536"
STOP_SECONDS = "8"
"""How long current requests may take after the web server got the signal to stop."""
CONNECTIONS = "1024"
"""The limit of connections of a web process. An idle one costs a few kilobytes."""
PREDECESSOR_SECONDS = 60.0
"""How long the processes of a program that was killed may work on, if no successor ends them."""


@dataclass
class Program:
    """A child that is kept running."""

    name: str
    command: Sequence[str]
    process: Popen[bytes] | None = None
    reader: threading.Thread | None = field(default=None, repr=False)
    predecessor: int = 0
    """The process group of the one before, whose processes work on until this one has loaded."""
    predecessor_until: float = 0.0

    def poll(self) -> int | None:
        """Return the exit code of a program that has ended, and end the rest of its process group.

        If it was killed, its processes work on, for its successor to end.
        """
        assert self.process is not None
        code = self.process.poll()
        if code is None:
            return None
        if code < 0:
            self.end_predecessor()
            self.predecessor = self.process.pid
            self.predecessor_until = time.monotonic() + PREDECESSOR_SECONDS
        else:
            stop(self.process, SIGKILL)
        self.process = None
        return code

    def end_predecessor(self) -> None:
        """Kill the predecessor's remaining processes."""
        if self.predecessor:
            signal_group(self.predecessor, SIGKILL)
            self.predecessor = 0

    def start(self, env: Mapping[str, str]) -> None:
        """Start the program. Raises OSError."""
        if self.predecessor:
            env = {**env, PREDECESSOR: str(self.predecessor)}
        self.process = spawn(self.command, env=env, death=SIGTERM, pipe=True)
        self.reader = threading.Thread(target=self._show, args=(self.process,), daemon=True)
        self.reader.start()

    def _show(self, process: "Popen[bytes]") -> None:
        """Write the child's output to the terminal, each line with its name."""
        assert process.stdout is not None  # spawn(pipe=True)
        for line in process.stdout:
            say(f"{self.name:>6} | {line.decode(errors='replace').rstrip()}")


def refusal(env: Mapping[str, str]) -> str | None:
    """Return a sentence about an invalid number in the environment; None if all are valid."""
    for name, default in NUMBERS.items():
        value = env.get(name) or default
        if not value.isdecimal() or not 0 < int(value) < 1000:
            return f"{name}={value} is not a number from 1 to 999."
    return None


def web(env: Mapping[str, str]) -> list[str]:
    """Return the command of the web server."""
    return [
        *(sys.executable, "-m", "rme.web", "--interface", "asginl", "rme.asgi:application"),
        *("--host", env.get("HOST") or "127.0.0.1", "--port", env.get("PORT") or "8000"),
        *("--workers", env.get("WEB_WORKERS") or NUMBERS["WEB_WORKERS"]),
        # Proxies use HTTP/1.1; HTTP/2 would need limits of its own.
        *("--http", "1", "--no-ws"),
        *("--http1-header-read-timeout", HEAD_MILLISECONDS, "--http1-buffer-size", HEAD_BYTES),
        *("--backlog", CONNECTIONS, "--backpressure", CONNECTIONS),
        # Replaces a process that dies; without this its death ends all others.
        "--respawn-failed-workers",
        # A slow body does not delay the end of the service.
        *("--workers-kill-timeout", STOP_SECONDS, "--log-level", "warning"),
    ]


def programs(env: Mapping[str, str]) -> list[Program]:
    """Return the programs of the service, in the order in which they are stopped."""
    concurrency = env.get("WORKER_CONCURRENCY") or NUMBERS["WORKER_CONCURRENCY"]
    workers = [sys.executable, "-m", "rme.workers", "--beat", "--concurrency", concurrency]
    return [Program("web", web(env)), Program("worker", workers)]
