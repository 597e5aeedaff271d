"""Checks of the deployment: database, Redis, broker, workers and scheduler.

They contain nothing of any organization.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from celery import current_app
from django.conf import settings
from django.db import Error
from kombu.exceptions import KombuError
from redis import RedisError

from messaging.domain.attention import in_words
from messaging.domain.sentences import sentence
from messaging.store.archived import archive
from rme.core.cache import TtlCache
from rme.core.db import availability, clock, server
from rme.core.db.postgresql import direct
from rme.core.environment import redis_url
from rme.core.redis import heartbeats
from rme.core.redis.connection import is_cluster

OK, DEGRADED, DOWN = "ok", "degraded", "down"
DATABASE_SECONDS = 2.0
"""How long the database has to answer."""
BROKER_SECONDS = 1.0
"""How long the broker has for each step of a connection."""

BROKER_FAILURES = (RedisError, KombuError, OSError)
"""How a broker of any kind fails to answer."""

_pooler_problems: TtlCache[str, str] = TtlCache(seconds=60)
"""What is wrong with the addresses of the database; empty: nothing."""


@dataclass(frozen=True, slots=True)
class Check:
    """The result of a check. `detail` says what is wrong, or, where nothing is, what to know."""

    status: str
    latency_ms: float
    detail: str | None


class _Unusable(Exception):
    """A server answers, and cannot be used as it is."""

    def __init__(self, detail: str) -> None:
        self.detail = detail
        """Why not."""
        super().__init__(detail)


def run() -> dict[str, Check]:
    """Run all checks, as seen from this process."""
    return {
        "database": _check(_ask_database, Error),
        "redis": _check(_ask_redis, RedisError),
        "broker": _check(_ask_broker, *BROKER_FAILURES),
        **_check_heartbeats(),
        **_check_archive(),
    }


def _check(ask: Callable[[], str | None], *failures: type[Exception]) -> Check:
    started = time.perf_counter()
    status = OK
    try:
        detail = ask()
    except _Unusable as error:
        status, detail = DOWN, error.detail
    except failures as error:
        name = type(error).__name__
        status, detail = DOWN, sentence("doesn't answer (%(error)s)", error=name)
    return Check(status, _milliseconds_since(started), detail)


def _milliseconds_since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 2)


def _ask_database() -> str | None:
    """Return a sentence about a recent restart: afterwards all is well again."""
    with availability.within(DATABASE_SECONDS):
        state = server.read()
        if state.is_read_only:
            raise _Unusable(sentence("is read-only: nothing can be accepted"))
        if problem := _pooler_problems.get("", lambda: direct.problem() or ""):
            raise _Unusable(sentence(problem))
    return _restarted(state.restart) if state.restart and state.restart.is_recent else None


def _restarted(restart: server.Restart) -> str:
    values = {"time": in_words(restart.age), "at": f"{restart.at:%d %b %Y, %H:%M} UTC"}
    if restart.is_after_crash:
        return sentence(
            "PostgreSQL restarted %(time)s ago (%(at)s) after a crash: read its log", **values
        )
    return sentence("PostgreSQL restarted %(time)s ago (%(at)s)", **values)


def _ask_redis() -> None:
    if is_cluster():
        raise _Unusable(sentence("REDIS_URL %(problem)s", problem=sentence(redis_url.CLUSTER)))


def _ask_broker() -> None:
    bounds = dict.fromkeys(("socket_timeout", "socket_connect_timeout"), BROKER_SECONDS)
    with current_app.connection_for_write(transport_options=bounds) as broker:
        broker.ensure_connection(max_retries=0, reraise_as_library_errors=False)


def broker_answers() -> bool:
    """Return whether the broker takes connections."""
    return _check(_ask_broker, *BROKER_FAILURES).status == OK


def _check_archive() -> dict[str, Check]:
    """Check whether the archive keeps up, if there is one."""
    if settings.ARCHIVE is None:
        return {}
    started = time.perf_counter()
    try:
        with availability.within(DATABASE_SECONDS):
            detail = archive().problem(clock.now())
    except Error:
        detail = sentence("not known: the database doesn't answer")
    status = DEGRADED if detail else OK
    return {"archive": Check(status, _milliseconds_since(started), detail)}


def _check_heartbeats() -> dict[str, Check]:
    """Check the heartbeats: each process of a worker stores one, and so does each sweep of beat."""
    started = time.perf_counter()
    try:
        processes = heartbeats.read()
        (has_scheduler,) = heartbeats.are_alive(("scheduler",))
    except RedisError:
        detail = sentence(
            "Redis doesn't answer, so rme can't see whether workers and scheduler run."
        )
        workers: tuple[str, str | None] = (DEGRADED, detail)
        scheduler: tuple[str, str | None] = (DEGRADED, detail)
    else:
        workers = _workers(processes)
        scheduler = (OK, None) if has_scheduler else _missing_scheduler(processes)
    latency = _milliseconds_since(started)
    return {
        name: Check(status, latency, detail)
        for name, (status, detail) in (("workers", workers), ("scheduler", scheduler))
    }


def _workers(processes: Sequence[heartbeats.Heartbeat]) -> tuple[str, str | None]:
    """Return the status of the worker processes. One whose tasks all fail is of no use."""
    if not processes:
        return DOWN, sentence("No worker is running, so nothing is sent.")
    if failing := [each for each in processes if each.failing]:
        tasks = sorted(
            {f"{task}: {problem}" for each in failing for task, problem in each.failing.items()}
        )
        detail = sentence(
            "Tasks fail in %(failing)s of %(all)s worker processes (%(tasks)s).",
            failing=len(failing),
            all=len(processes),
            tasks=", ".join(tasks),
        )
        all_fail = not any(each.works for each in processes)
        return (DOWN if all_fail else DEGRADED), detail
    if any(each.unprompted for each in processes):
        return DEGRADED, sentence(
            "Workers get no tasks from the broker, so they look for work themselves."
        )
    return OK, None


def _missing_scheduler(processes: Sequence[heartbeats.Heartbeat]) -> tuple[str, str]:
    if not processes:
        return DOWN, sentence("Scheduled messages wait: no worker is running.")
    if any(each.unprompted for each in processes):
        return DEGRADED, sentence("The scheduler (beat) is not running. Workers do its work, late.")
    return DOWN, sentence("Scheduled messages wait: the scheduler (beat) is not running.")
