"""`python -m rme.workers [--concurrency N] [--beat] [QUEUES …]`: the workers, one for each queue.

Each argument is a worker and names its queues (`sms` or `sms,default`); without arguments there is
a worker for each queue. All are forked from this process after the service's modules were loaded,
so that they share that memory. A worker that ends is started again, for ever.
"""

import argparse
import os
import warnings
from collections.abc import Sequence
from importlib import import_module

from celery.exceptions import SecurityWarning
from django.conf import settings
from django.core.checks import run_checks

from rme.celery import QUEUES, app
from rme.core.process import memory
from rme.core.redis.connection import refuse_cluster
from rme.core.telemetry import meters
from rme.run.forks import KeptFork, keep
from rme.run.programs import NUMBERS, refusal
from rme.workers import queues

_PRELOADED = (
    "celery.bin.worker",
    "celery.concurrency.asynpool",
    "celery.worker.consumer",
    "kombu.transport.redis",
)
"""What Celery imports only when a worker starts."""


def _celery(name: str, arguments: Sequence[str]) -> KeptFork:
    def run() -> None:
        warnings.simplefilter("ignore", SecurityWarning)  # about running as root
        app.start(["--quiet", *arguments])

    return KeptFork(name, run)


def worker(queues: str, concurrency: int) -> KeptFork:
    """Return a worker of some queues, whose child processes run the tasks."""
    # Concurrent sweeps would only wait for each other's rows.
    processes = 1 if queues == "sweep" else concurrency
    options = ["--hostname", f"{queues}@%h", "--queues", queues, "--concurrency", str(processes)]
    options += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    return _celery(queues, ["worker", "--loglevel", "WARNING", *options])


def beat() -> KeptFork:
    """Return the process that orders periodic tasks."""
    return _celery("beat", ["beat", "--loglevel", "WARNING", "--pidfile", ""])


def load() -> None:
    """Do the imports and checks once before any fork, instead of in each child."""
    app.loader.import_default_modules()
    app.finalize()
    for module in _PRELOADED:
        import_module(module)
    run_checks()
    os.environ["CELERY_SKIP_CHECKS"] = "1"
    memory.freeze_startup_objects()


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
    if unknown := sorted(
        {each for argument in options.queues for each in argument.split(",")} - {*QUEUES}
    ):
        parser.error(f"there is no queue {', '.join(unknown)}; there are {', '.join(QUEUES)}")
    refuse_cluster()
    queues.create()
    meters.share(settings.METRICS_DIR)
    load()
    children = [worker(names, options.concurrency) for names in options.queues]
    if options.beat:
        children.append(beat())
    if settings.METRICS_PORT:
        from rme.workers import metrics_server  # which needs the apps

        children.append(KeptFork("metrics", metrics_server.serve))
    keep(children)


if __name__ == "__main__":
    main()
