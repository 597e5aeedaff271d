"""How the service is, as one organization sees it: what it stands on, and what becomes of sends.

The checks are of the deployment and tell nothing of anybody; all numbers are the organization's
own. What they cost is bounded: read at most every two seconds, over an hour's attempts.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from celery import current_app
from django.db import Error, connection
from kombu.exceptions import KombuError
from redis import RedisError

from messaging.delivery.accounts import SIMULATORS, Availability, look
from messaging.models import Attempt, Delivery
from messaging.policy import organization_policy
from messaging.reports import configuration
from rme import __version__
from rme.core import ids
from rme.core.cache import TtlCache
from rme.core.channels import Channel
from rme.core.db import availability
from rme.core.db.clock import iso
from rme.core.provider import Provider
from rme.core.redis import heartbeats
from rme.core.redis.connection import redis_client

OK, DEGRADED, DOWN = "ok", "degraded", "down"
PERIOD = timedelta(hours=1)
ATTEMPTS_LIMIT = 100_000
"""An organization's latest attempts in the period that are looked at."""
GOOD_RATE, BAD_RATE = 0.95, 0.5
DATABASE_SECONDS = 2.0
"""How long the database has to answer."""

_kept: TtlCache[str, dict[str, Any]] = TtlCache(seconds=2)

_QUEUES = f"""
SELECT channel, count(*), EXTRACT(EPOCH FROM statement_timestamp() - min(due_at))::float8
FROM {Delivery._meta.db_table}
WHERE status = 'ACCEPTED' AND channel = ANY(%s) AND priority = ANY('{{0,1}}')
  AND organization_id = %s AND due_at <= statement_timestamp()
GROUP BY channel
"""

# What the recipient or the content is to blame for tells nothing of a provider.
_PROVIDERS = f"""
SELECT account_id, channel,
  count(*) FILTER (WHERE outcome = 'Accepted'),
  count(*) FILTER (WHERE outcome IN ('Accepted', 'Retryable', 'Misconfigured', 'Unknown')),
  percentile_disc(0.95) WITHIN GROUP (ORDER BY latency_ms) FILTER (WHERE latency_ms IS NOT NULL),
  max(started_at) FILTER (WHERE outcome = 'Accepted'),
  (array_agg(reason ORDER BY id DESC) FILTER (WHERE outcome <> 'Accepted'))[1],
  max(started_at) FILTER (WHERE outcome = 'Misconfigured')
FROM (SELECT * FROM {Attempt._meta.db_table} WHERE id >= %s AND organization_id = %s
      ORDER BY id DESC LIMIT {ATTEMPTS_LIMIT}) latest
GROUP BY account_id, channel
"""


@dataclass(frozen=True, slots=True)
class Record:
    """What became of an account's attempts in the period."""

    accepted: int = 0
    answered: int = 0
    p95_ms: int | None = None
    last_success: datetime | None = None
    last_error: str | None = None
    last_misconfigured: datetime | None = None

    @property
    def rate(self) -> float | None:
        return round(self.accepted / self.answered, 4) if self.answered else None

    @property
    def misconfigured(self) -> bool:
        """Say whether the provider refused the account itself, and took nothing since."""
        if self.last_misconfigured is None:
            return False
        return self.last_success is None or self.last_success < self.last_misconfigured


def report(organization_id: str) -> dict[str, Any]:
    """Give the health report: `down` when nothing can be accepted, `degraded` when a part fails."""
    checks = {
        "database": _check(_ask_database, Error, _ReadOnly),
        "redis": _check(_ask_redis, RedisError),
        "broker": _check(_ask_broker, RedisError, KombuError, OSError),
        **_living(),
    }
    numbers: dict[str, Any] = {"queues": [], "providers": [], "configuration": []}
    if checks["database"]["status"] == OK:
        numbers = _kept.get(organization_id, lambda: _numbers(organization_id)) or numbers
    worst = OK if all(check["status"] == OK for check in checks.values()) else DEGRADED
    return {
        "status": worst if checks["database"]["status"] == OK else DOWN,
        "version": __version__,
        "time": iso(datetime.now(UTC)),
        "checks": checks,
        **numbers,
    }


# --- what the service stands on -------------------------------------------------------------------


def _check(ask: Callable[[], object], *failures: type[Exception]) -> dict[str, Any]:
    started = time.perf_counter()
    status, detail = OK, None
    try:
        ask()
    except _ReadOnly:
        status, detail = DOWN, "is read-only: nothing can be accepted"
    except failures as error:
        status, detail = DOWN, f"does not answer ({type(error).__name__})"
    return {"status": status, "latencyMs": _since(started), "detail": detail}


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 2)


class _ReadOnly(Exception):
    """PostgreSQL answers, and takes nothing."""


def _ask_database() -> None:
    with availability.within(DATABASE_SECONDS):
        if availability.is_read_only():
            raise _ReadOnly


def _ask_redis() -> None:
    redis_client().ping()


def _ask_broker() -> None:
    with current_app.connection_for_write() as broker:
        broker.ensure_connection(max_retries=0, reraise_as_library_errors=False)


def _living() -> dict[str, dict[str, Any]]:
    """Look at the heartbeats: each process of a worker leaves one, and each sweep of beat's too."""
    started = time.perf_counter()
    try:
        processes = heartbeats.read()
        (scheduler,) = heartbeats.are_alive(("scheduler",))
    except RedisError:
        unknown = {"status": DEGRADED, "detail": "not known: Redis does not answer"}
        took = _since(started)
        return {name: {**unknown, "latencyMs": took} for name in ("workers", "scheduler")}
    found = {
        "workers": _workers(processes),
        "scheduler": (OK, None) if scheduler else _without_sweep(processes),
    }
    took = _since(started)
    return {
        name: {"status": status, "latencyMs": took, "detail": detail}
        for name, (status, detail) in found.items()
    }


def _workers(processes: Sequence[heartbeats.Heartbeat]) -> tuple[str, str | None]:
    """Judge the processes of workers. One that lives and fails at all it does is of no use."""
    if not processes:
        return DOWN, "no sign of life"
    if failing := [each for each in processes if each.failing]:
        tasks = sorted({f"{task}: {why}" for each in failing for task, why in each.failing.items()})
        told = f"tasks fail in {len(failing)} of {len(processes)} processes ({', '.join(tasks)})"
        useless = not any(each.works for each in processes)
        return (DOWN if useless else DEGRADED), told
    if any(each.unprompted for each in processes):
        return DEGRADED, "no tasks come from the broker: workers look for work themselves"
    return OK, None


def _without_sweep(processes: Sequence[heartbeats.Heartbeat]) -> tuple[str, str]:
    if not processes:
        return DOWN, "no sweep lately: no worker does them"
    if any(each.unprompted for each in processes):
        return DEGRADED, "beat orders no sweep: workers do them by themselves, some seconds late"
    return DOWN, "no sweep lately"


# --- what becomes of sends ------------------------------------------------------------------------


def _numbers(organization_id: str) -> dict[str, Any]:
    records = _records(organization_id)
    found = configuration.findings([organization_id])
    accounts = organization_policy.of(organization_id).accounts
    failing = [
        _refused(organization_id, account)
        for account in accounts
        if records.get((account.id, account.channel), Record()).misconfigured
    ]
    return {
        "queues": _queues(organization_id),
        "providers": _providers(accounts, records),
        "configuration": [finding.as_json() for finding in [*found, *failing]],
    }


def _refused(organization_id: str, account: organization_policy.Account) -> configuration.Finding:
    code, text = account.provider.refusal_problem if account.provider else Provider.refusal_problem
    named = text.format(account.name)
    return configuration.Finding(organization_id, configuration.ERROR, code, named, account.id)


def _queues(organization_id: str) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(_QUEUES, [list(Channel), organization_id])
        waiting = {channel: (ready, oldest) for channel, ready, oldest in cursor.fetchall()}
    shown = {channel: waiting.get(channel, (0, 0.0)) for channel in Channel}
    return [
        {"channel": channel, "ready": ready, "oldestSeconds": round(oldest, 1)}
        for channel, (ready, oldest) in shown.items()
    ]


Records = dict[tuple[int | None, str], Record]


def _records(organization_id: str) -> Records:
    since = ids.at_least(datetime.now(UTC) - PERIOD)
    with connection.cursor() as cursor:
        cursor.execute(_PROVIDERS, [since, organization_id])
        return {(row[0], row[1]): Record(*row[2:]) for row in cursor.fetchall()}


def _providers(
    accounts: Sequence[organization_policy.Account], records: Records
) -> list[dict[str, Any]]:
    serving = accounts or tuple(SIMULATORS.values())
    found = look([account.id for account in accounts if account.id])
    return [
        _provider(
            account,
            records.get((account.id, account.channel), Record()),
            found.get(account.id or 0, Availability()),
        )
        for account in serving
    ]


def _provider(
    account: organization_policy.Account, record: Record, available: Availability
) -> dict[str, Any]:
    return {
        "name": account.name,
        "channel": account.channel,
        "status": _status(account, record),
        "circuit": available.circuit,
        "successRate": record.rate,
        "p95LatencyMs": record.p95_ms,
        "lastSuccessAt": iso(record.last_success),
        "lastError": record.last_error,
    }


def _status(account: organization_policy.Account, record: Record) -> str:
    if account.provider is None or record.misconfigured:
        return DOWN
    if account.draining:
        return "draining"
    if not account.active:
        return "paused"
    if record.rate is None or record.rate >= GOOD_RATE:
        return OK
    return DEGRADED if record.rate >= BAD_RATE else DOWN
