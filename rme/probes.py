"""Probes for process monitoring: they need no token and show nothing else."""

from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from rme.core.db import availability

READY_SECONDS = 2.0
"""How long the database has to answer: monitoring waits no longer either."""


@require_safe
def livez(request: HttpRequest) -> HttpResponse:
    """Answer that this process is up; nothing else is checked."""
    return HttpResponse("ok\n", content_type="text/plain")


@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Answer whether this process can serve: the database answers, with all migrations applied."""
    try:
        with availability.within(READY_SECONDS):
            executor = MigrationExecutor(connection)
            waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except Error:
        return HttpResponse("database\n", status=503, content_type="text/plain")
    if waiting:
        return HttpResponse("migrations\n", status=503, content_type="text/plain")
    return HttpResponse("ok\n", content_type="text/plain")
