"""`python -m rme.workers [--concurrency N] [--beat] [QUEUES …]`: the workers, one for each queue.

Each argument is a worker and names its queues (`sms` or `sms,default`); without arguments there is
a worker for each queue. All are forked from this process after the service's modules were loaded,
so that they share that memory. A worker that ends is started again, for ever.
"""

import argparse
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Sequence
from importlib import import_module
from multiprocessing import util

from celery.exceptions import SecurityWarning
from django.core.checks import run_checks

from rme.celery import QUEUES, app
from rme.core.process import memory
from rme.core.redis.connection import refuse_cluster
from rme.run.backoff import RestartBackoff, ending, sentence
from rme.run.process import die_with_parent, name_process, say
from rme.run.programs import NUMBERS, refusal
from rme.workers import queues

CHECK_SECONDS = 0.1
_PRELOADED = (
    "celery.bin.worker",
    "celery.concurrency.asynpool",
    "celery.worker.consumer",
    "kombu.transport.redis",
)
"""What Celery imports only when a worker starts."""


class Child:
    """A Celery worker, or beat, in a process of its own."""

    def __init__(self, name: str, arguments: Sequence[str]) -> None:
        self.name = name
        self.arguments = ["--quiet", *arguments]
        self.backoff = RestartBackoff()
        self.pid = 0
        self.started = 0.0
        self.next_start = 0.0

    def keep(self, stopping: bool) -> None:
        """Start the process when it is due, or schedule its next start if it has ended."""
        now = time.monotonic()
        if not self.pid:
            if now >= self.next_start and not stopping:
                self.started = now
                self.pid = self._fork()
            return
        ended, status = os.waitpid(self.pid, os.WNOHANG)
        if not ended:
            return
        self.pid = 0
        if not stopping:
            uptime, why = now - self.started, ending(os.waitstatus_to_exitcode(status))
            delay = self.backoff.failed(uptime)
            self.next_start = now + delay
            say(f"rme: {sentence(self.name, why, uptime, self.backoff.failures, delay)}")

    def _fork(self) -> int:
        parent = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        code = 0
        try:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            die_with_parent(parent, signal.SIGTERM)
            warnings.simplefilter("ignore", SecurityWarning)  # about running as root
            name_process(f"rme-{self.name}")
            app.start(self.arguments)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except Exception:  # noqa: BLE001 - it is shown, and the process ends
            traceback.print_exc()
            code = 1
        finally:
            # as processes of multiprocessing do: its temporary folder goes, whose pool this was
            util._run_finalizers()  # type: ignore[attr-defined]  # no stub has it
            sys.stderr.flush()
            os._exit(code)  # runs none of the parent's exit handlers


def worker(queues: str, concurrency: int) -> Child:
    """Return a worker of some queues, whose child processes run the tasks."""
    # Concurrent sweeps would only wait for each other's rows.
    processes = 1 if queues == "sweep" else concurrency
    options = ["--hostname", f"{queues}@%h", "--queues", queues, "--concurrency", str(processes)]
    options += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    return Child(queues, ["worker", "--loglevel", "WARNING", *options])


def beat() -> Child:
    """Return the process that orders periodic tasks."""
    return Child("beat", ["beat", "--loglevel", "WARNING", "--pidfile", ""])


def load() -> None:
    """Do the imports and checks once before any fork, instead of in each child."""
    app.loader.import_default_modules()
    app.finalize()
    for module in _PRELOADED:
        import_module(module)
    run_checks()
    os.environ["CELERY_SKIP_CHECKS"] = "1"
    memory.freeze_startup_objects()


def keep(children: Sequence[Child]) -> None:
    """Keep children running until this process gets a signal to stop; then let them finish."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stopping.set())
    while not stopping.is_set():
        for child in children:
            child.keep(stopping=False)
        stopping.wait(CHECK_SECONDS)
    for child in children:
        if child.pid:
            os.kill(child.pid, signal.SIGTERM)
    while any(child.pid for child in children):
        for child in children:
            child.keep(stopping=True)
        time.sleep(CHECK_SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m rme.workers", description=__doc__)
    parser.add_argument(
        "--concurrency",
        type=int,
        default=os.environ.get("WORKER_CONCURRENCY") or NUMBERS["WORKER_CONCURRENCY"],
        help="processes of each worker; without it WORKER_CONCURRENCY",
    )
    parser.add_argument("--beat", action="store_true", help="run beat too")
    parser.add_argument("queues", nargs="*", default=QUEUES, help="a worker's queues, with commas")
    if wrong := refusal(os.environ):
        parser.error(wrong)
    options = parser.parse_args()
    if options.concurrency < 1:
        parser.error("--concurrency is at least 1")
    if unknown := sorted({each for one in options.queues for each in one.split(",")} - {*QUEUES}):
        parser.error(f"there is no queue {', '.join(unknown)}; there are {', '.join(QUEUES)}")
    refuse_cluster()
    queues.create()
    load()
    workers = [worker(names, options.concurrency) for names in options.queues]
    keep([*workers, beat()] if options.beat else workers)


if __name__ == "__main__":
    main()
