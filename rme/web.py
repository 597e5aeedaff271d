"""`python -m rme.web OPTIONS`: granian, whose web processes share the modules of the service.

They are forked after the modules were loaded: they share that memory, and a process that ended is
replaced at once, instead of after the seconds that loading takes. That holds for granian's main
process too, which this one forks and keeps.
"""

import multiprocessing
import sys
from functools import partial

from django.conf import settings
from django.urls import get_resolver
from granian.cli import cli

from rme import wsgi  # sets Django up
from rme.core.process import memory
from rme.core.redis.connection import refuse_cluster
from rme.core.telemetry import meters
from rme.run import forks

__all__ = ["load", "main", "wsgi"]


def load() -> None:
    """Load what each web process needs, but for `rme.asgi`, whose threads a fork would lose."""
    _ = get_resolver().url_patterns  # imports all views
    memory.freeze_startup_objects()


def main() -> None:
    refuse_cluster()
    meters.share(settings.METRICS_DIR)
    load()
    multiprocessing.set_start_method("fork")  # as on Python before 3.14
    granian = partial(cli, auto_envvar_prefix="GRANIAN")
    sys.exit(forks.keep([forks.KeptFork("web", granian, may_exit=True)]))


if __name__ == "__main__":
    main()
