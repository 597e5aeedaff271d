"""`manage.py doctor`: what is wrong with this deployment, and how to mend it."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from django.db.migrations.executor import MigrationExecutor
from django.http.request import validate_host

from messaging.reports import checks
from rme.core.environment.deploy_checks import servers
from rme.core.http.forwarded import is_loopback

Line = tuple[str, str | None]
"""The name of a check, and what is wrong; None: nothing."""


class Command(BaseCommand):
    help = "Check settings, servers, migrations and workers, and say how to mend what is wrong."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        lines = [*_addresses(), *servers()]
        if not any(problem for _, problem in lines):
            lines += [*_migrations(), *_processes()]
        for name, problem in lines:
            style = self.style.ERROR if problem else self.style.SUCCESS
            self.stdout.write(f"{style('wrong' if problem else 'ok   ')}  {problem or name}")
        if any(problem for _, problem in lines):
            raise CommandError("Something is wrong: see above.")


def _addresses() -> Iterator[Line]:
    """Check how people and programs reach this deployment."""
    parts = urlsplit(settings.BASE_URL)
    host = parts.hostname or ""
    name = f"[{host}]" if ":" in host else host  # as ALLOWED_HOSTS has IPv6
    is_allowed = settings.DEBUG or validate_host(name, settings.ALLOWED_HOSTS)
    yield (
        "BASE_URL is one of ALLOWED_HOSTS",
        None if is_allowed else f"ALLOWED_HOSTS lacks {host}, the host of BASE_URL: add it.",
    )
    is_local = host == "localhost" or is_loopback(host)
    yield (
        "BASE_URL uses TLS, or is this machine",
        None
        if is_local or parts.scheme == "https"
        else f"BASE_URL={settings.BASE_URL} sends passwords unencrypted: put a proxy with TLS in "
        "front, and write https://.",
    )


def _migrations() -> Iterator[Line]:
    try:
        executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except OperationalError as error:
        raise CommandError(f"PostgreSQL went away: {error}") from error
    yield (
        "All migrations are applied",
        f"Migrations aren't applied ({len(plan)}): run `manage.py migrate`." if plan else None,
    )


def _processes() -> Iterator[Line]:
    """Check what /rme/v1/health checks of a deployment."""
    for name, check in checks.run().items():
        detail = (check.detail or "").removesuffix(".")
        problem = f"{name}: {detail}." if check.status != checks.OK else None
        yield f"{name}{f': {check.detail}' if check.detail else ''}", problem
