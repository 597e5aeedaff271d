"""`python -m rme.web OPTIONS`: granian, whose web processes share the modules of the service.

They are forked from this process after the modules were loaded: they share that memory, and a
process that ended is replaced at once, instead of after the second that loading takes.
"""

import multiprocessing

from django.urls import get_resolver
from granian.cli import cli

from rme import wsgi  # sets Django up
from rme.core.process import memory
from rme.core.redis.connection import refuse_cluster

__all__ = ["load", "main", "wsgi"]


def load() -> None:
    """Load what each web process needs, but for `rme.asgi`, whose threads a fork would lose."""
    get_resolver().url_patterns  # noqa: B018 - imports all views
    memory.freeze_startup_objects()


def main() -> None:
    refuse_cluster()
    load()
    multiprocessing.set_start_method("fork")  # as on Python before 3.14
    cli(auto_envvar_prefix="GRANIAN")


if __name__ == "__main__":
    main()
