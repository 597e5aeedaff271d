"""`DATABASES`: PostgreSQL's addresses, and whether a pooler stands between.

With `DATABASE_POOLER=transaction` a connection has no session: each transaction may run on another
one of PostgreSQL's. What needs a session goes by `DATABASE_DIRECT_URL` instead
(`rme.core.db.postgresql.direct`).
"""

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from rme.core.db.availability import BoundedConnection
from rme.core.db.postgresql.direct import ALIAS
from rme.core.environment import database_url
from rme.core.environment.values import Values

POOLERS = ("", "transaction")
_ENGINE = "django.db.backends.postgresql"
_ON = {"1", "true", "yes", "on"}


def read(env: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return Django's `DATABASES`. Raises ImproperlyConfigured, naming the variable."""
    pooler = env.get("DATABASE_POOLER", "").strip().lower()
    direct = env.get("DATABASE_DIRECT_URL", "")
    if pooler not in POOLERS:
        raise ImproperlyConfigured(
            f"DATABASE_POOLER={pooler} is not known: it is `transaction`, or empty for PostgreSQL "
            "itself and for poolers in session mode."
        )
    if bool(pooler) != bool(direct):
        raise ImproperlyConfigured(
            "DATABASE_POOLER=transaction and DATABASE_DIRECT_URL go together: migrations and jobs "
            "need a session, which a pooler in transaction mode does not keep. Set "
            "DATABASE_DIRECT_URL to the address of PostgreSQL itself, or of a pool in session mode."
        )
    limit = Values(env).integer("DATABASE_POOL", 10)
    url = env["DATABASE_URL"]
    for name, address in (("DATABASE_URL", url), ("DATABASE_DIRECT_URL", direct)):
        _check(name, address)
    if not pooler:
        return {"default": _with_session(url, least=1, limit=limit, idle_seconds=300)}
    if direct == url:
        raise ImproperlyConfigured(
            "DATABASE_DIRECT_URL is DATABASE_URL, the pooler in transaction mode: it has to be the "
            "address of PostgreSQL itself, or of a pool in session mode."
        )
    prepares = env.get("DATABASE_PREPARED_STATEMENTS", "").strip().lower() in _ON
    return {
        "default": _without_session(url, limit, prepares=prepares),
        ALIAS: _with_session(direct, least=0, limit=limit, idle_seconds=30),
    }


def _check(name: str, url: str) -> None:
    """Raise ImproperlyConfigured for an address that isn't PostgreSQL's, without quoting it."""
    try:
        is_right = not url or database_url.parse(url)["ENGINE"] == _ENGINE
    except (ValueError, KeyError):
        is_right = False
    if not is_right:
        raise ImproperlyConfigured(
            f"{name} isn't the address of a PostgreSQL database: write "
            "postgres://user:password@host:5432/name."
        )


def _with_session(url: str, *, least: int, limit: int, idle_seconds: float) -> dict[str, Any]:
    database = _database(url, least=least, limit=limit, idle_seconds=idle_seconds)
    # Binding on the server lets psycopg prepare repeated statements: planning over the partitions
    # costs ten times what most statements do.
    database["OPTIONS"]["prepare_threshold"] = 2
    # Compiling takes longer than any of the statements.
    database["OPTIONS"]["options"] = "-c jit=off"
    return database


def _without_session(url: str, limit: int, *, prepares: bool) -> dict[str, Any]:
    """Return a database behind a pooler, which refuses libpq's `options` and, but for PgBouncer
    from 1.22 on, loses prepared statements.
    """
    database = _database(url, least=1, limit=limit, idle_seconds=300)
    database["OPTIONS"]["prepare_threshold"] = 2 if prepares else None
    database["DISABLE_SERVER_SIDE_CURSORS"] = True
    return database


def _database(url: str, *, least: int, limit: int, idle_seconds: float) -> dict[str, Any]:
    database: dict[str, Any] = database_url.parse(url)
    options = {
        # A host that vanished is detected within ten seconds.
        "connect_timeout": 3,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 2,
        "tcp_user_timeout": 8000,
        **database.get("OPTIONS", {}),  # such as sslmode, from the address
        "server_side_binding": True,
        "pool": {
            "min_size": least,
            "max_size": limit,
            "timeout": 3,
            "max_idle": idle_seconds,
            # By default the pauses between tries grow to minutes and outlast the outage.
            "reconnect_timeout": 2,
            "connection_class": BoundedConnection,
        },
    }
    return {**database, "ENGINE": "rme.core.db.postgresql", "OPTIONS": options}
