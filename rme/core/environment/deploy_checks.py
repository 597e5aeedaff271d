"""Checks of the deployment's servers, for `manage.py check --deploy` and `manage.py doctor`."""

from collections.abc import Iterator

from django.core import checks

from rme.core.environment import diagnosis
from rme.core.redis.connection import redis_client


def servers() -> Iterator[tuple[str, str | None]]:
    """Yield what should be true of each server, and the sentence about it if it isn't."""
    yield "PostgreSQL answers", diagnosis.problem_of_settings()
    yield "Redis answers", diagnosis.redis_problem("REDIS_URL", redis_client())


def unreachable_servers(**_: object) -> list[checks.CheckMessage]:
    """Return Django's errors for the servers that don't answer."""
    return [checks.Error(problem, id="rme.E001") for _, problem in servers() if problem]
