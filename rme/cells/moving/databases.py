"""Connections to the databases of two cells, and what the catalog says of their tables.

A move uses psycopg directly: COPY streams rows from one database to the other, each side in a
transaction of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS

from rme.core.db.availability import BoundedConnection
from rme.core.db.postgresql.direct import ALIAS
from rme.core.environment import database_url

Connection = psycopg.Connection[tuple[Any, ...]]
APPLICATION = "move_organization"
"""The application_name of all connections of all moves."""
_NAMES = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
_LIBPQ = {each.keyword.decode() for each in psycopg.pq.Conninfo.get_defaults()} - {"options"}
_SETTINGS = {
    # Texts are compared, so they must be the same on both sides.
    "timezone": "UTC",
    "datestyle": "ISO",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    # A copy takes as long as it takes, and the lock's transaction stays open meanwhile.
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "transaction_timeout": "0",
}
# PostgreSQL 16 and earlier have no transaction_timeout.
_SET = """
SELECT set_config(name, given.value, false)
FROM unnest(%s::text[], %s::text[]) given(name, value) JOIN pg_settings USING (name)
"""


class NoSession(Exception):
    """A connection that passes a pooler, so that it is not known to be a session."""


@dataclass(frozen=True, slots=True)
class MoveDatabases:
    """The databases of both cells, as in Django's settings, and the target's name."""

    source: Mapping[str, Any]
    target: Mapping[str, Any]
    name: str

    @classmethod
    def to(cls, name: str) -> Self:
        """Return this cell's database, past its pooler, and the one of MOVE_DATABASE_URL."""
        databases = settings.DATABASES
        return cls(
            databases.get(ALIAS, databases[DEFAULT_DB_ALIAS]),
            database_url.parse(settings.MOVE_DATABASE_URL),
            name,
        )


def connect(database: Mapping[str, Any], variable: str) -> Connection:
    """Open a session in a database of Django's settings, whose commits are on the standby.

    `variable` is what names its address. Raise psycopg.OperationalError or NoSession.
    """
    address = {libpq: database[name] for name, libpq in _NAMES.items() if database.get(name)}
    options = {name: value for name, value in database.get("OPTIONS", {}).items() if name in _LIBPQ}
    used_options = {**options, "connect_timeout": 5, "application_name": APPLICATION}
    connection: Connection = BoundedConnection.connect(**address, **used_options, autocommit=True)
    try:
        _require_session(connection, variable)
        connection.execute(_SET, [list(_SETTINGS), list(_SETTINGS.values())])
    except BaseException:
        connection.close()
        raise
    return connection


def _require_session(connection: Connection, variable: str) -> None:
    """Raise NoSession behind a pooler: it invents the process id that libpq knows."""
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    if row != (connection.info.backend_pid,):
        raise NoSession(
            f"{variable} leads to a pooler. A move holds locks and settings of a session: "
            "it needs the address of PostgreSQL itself."
        )


class Shape(NamedTuple):
    """A table's columns, the columns of its key, and the partitions that hold its rows."""

    columns: tuple[str, ...]
    key: tuple[str, ...]
    partitions: tuple[str, ...]


_COLUMNS = """
SELECT attname FROM pg_attribute
WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
ORDER BY attnum
"""
_KEY = """
SELECT a.attname FROM pg_index i, unnest(i.indkey) WITH ORDINALITY k(attnum, place), pg_attribute a
WHERE i.indrelid = %s::regclass AND i.indisprimary AND a.attrelid = i.indrelid
  AND a.attnum = k.attnum
ORDER BY k.place
"""
_PARTITIONS = "SELECT relid::regclass::text FROM pg_partition_tree(%s) WHERE isleaf ORDER BY 1"


def shape(connection: Connection, table: str) -> Shape:
    """Return the shape of a table; a table without partitions has itself as the only one."""
    columns, key, partitions = (
        tuple(name for (name,) in connection.execute(text, [table]).fetchall())
        for text in (_COLUMNS, _KEY, _PARTITIONS)
    )
    return Shape(columns, key, partitions or (table,))
