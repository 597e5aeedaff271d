"""Why PostgreSQL or Redis can't be reached, in one sentence: the variable, the server, the remedy.

It quotes no passwords.
"""

import re
from collections.abc import Mapping
from typing import Any

import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS
from redis import Redis, RedisError

from rme.core.db.postgresql.direct import ALIAS

SECONDS = 3
_REASONS = (
    (r"resolve host|translate host|not known|name resolution", "no such host. Correct its name"),
    (r"refused", "it refuses the connection. Start it, or correct the port"),
    (
        r"password authentication failed|invalid (username|password)|WRONGPASS",
        "it refuses the password. Correct user or password",
    ),
    (
        r"no password supplied|NOAUTH|Authentication required",
        "it wants a password. Write user:password@host",
    ),
    (r'database "[^"]*" does not exist', "no such database. Create it: createdb {database}"),
    (r'role "[^"]*" does not exist', "no such user. Create it: createuser {user}"),
    (r"pg_hba", "it takes no connection of this user from here. See its pg_hba.conf"),
    (r"No such file", "nothing listens on that socket. Set {name}, or start `make run`"),
    (r"timeout|timed out", "no answer within {seconds:g} s. See host, port and firewall"),
    (r"SSL|certificate", "TLS failed. See sslmode and sslrootcert in the URL"),
    (r"too many|remaining connection slots", "it takes no more connections. Raise its limit"),
)
"""What the messages of libpq and redis-py mean, the first that is in the text."""


def problem_of_settings() -> str | None:
    """Return what is wrong with the databases of the settings; None if all answer."""
    names = {DEFAULT_DB_ALIAS: "DATABASE_URL", ALIAS: "DATABASE_DIRECT_URL"}
    problems = (
        database_problem(names[alias], database)
        for alias, database in settings.DATABASES.items()
        if alias in names
    )
    return next((problem for problem in problems if problem), None)


def database_problem(name: str, database: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a database of Django's settings; None if it answers."""
    options = database.get("OPTIONS", {})
    tls = {key: value for key, value in options.items() if key.startswith("ssl")}
    try:
        psycopg.connect(
            host=database["HOST"],
            port=database["PORT"] or None,
            dbname=database["NAME"],
            user=database["USER"],
            password=database["PASSWORD"] or None,
            connect_timeout=SECONDS,
            **tls,
        ).close()
    except psycopg.Error as error:
        server = f"{database['HOST'] or 'the local socket'}"
        server += f":{database['PORT']}" if database["PORT"] else ""
        reason = _reason(
            error, SECONDS, name=name, database=database["NAME"], user=database["USER"]
        )
        return f"{name}: PostgreSQL at {server}: {reason}."
    return None


def redis_problem(name: str, client: Redis) -> str | None:
    """Return what is wrong with Redis; None if it answers."""
    try:
        client.ping()
    except (RedisError, OSError) as error:
        options = client.connection_pool.connection_kwargs
        server = options.get("path") or f"{options.get('host', '')}:{options.get('port', '')}"
        return f"{name}: Redis at {server}: {_reason(error, settings.REDIS_TIMEOUT, name=name)}."
    return None


def _reason(error: Exception, seconds: float, **values: str) -> str:
    text = str(error)
    for pattern, reason in _REASONS:
        if re.search(pattern, text, re.IGNORECASE):
            return reason.format(seconds=seconds, **values)
    return text.strip().partition("\n")[0].rstrip(".")
