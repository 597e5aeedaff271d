"""Probes for process monitoring: they need no token and show nothing else."""

from django.db import Error, connection
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from rme import post_deploy
from rme.core.db import availability

READY_SECONDS = 2.0
"""How long the database has to answer: monitoring waits no longer either."""


@require_safe
def livez(request: HttpRequest) -> HttpResponse:
    """Answer that this process is up; nothing else is checked."""
    return HttpResponse("ok\n", content_type="text/plain")


@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Answer whether this process can serve: the database answers, and no migration is missing.

    It serves without post-deploy migrations: they wait until all processes are replaced.
    """
    try:
        with availability.within(READY_SECONDS):
            pending = post_deploy.waiting(connection)
    except Error:
        return HttpResponse("database\n", status=503, content_type="text/plain")
    if pending.pre_deploy or pending.blocked:
        return HttpResponse("migrations\n", status=503, content_type="text/plain")
    return HttpResponse("ok\n", content_type="text/plain")
