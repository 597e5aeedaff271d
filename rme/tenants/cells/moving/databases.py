"""Connections to the databases of two cells, and what the catalog says of their tables.

A move uses psycopg directly: COPY streams rows from one database to the other, each side in a
transaction of its own.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import dj_database_url
import psycopg

Connection = psycopg.Connection[tuple[Any, ...]]


def connect(database: Mapping[str, Any]) -> Connection:
    """Open a connection to a database of Django's settings. Raise psycopg.OperationalError."""
    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host"}
    given = {names[name]: database[name] for name in names if database.get(name)}
    if database.get("PORT"):
        given["port"] = database["PORT"]
    tls = {
        name: value for name, value in database.get("OPTIONS", {}).items() if name.startswith("ssl")
    }
    # Texts are compared, so they must be the same on both sides.
    options = "-c timezone=UTC -c datestyle=ISO -c extra_float_digits=1 -c bytea_output=hex"
    connection = psycopg.connect(
        **given, **tls, connect_timeout=5, application_name="move_organization", autocommit=True
    )
    for setting in filter(None, options.split("-c ")):
        connection.execute(f"SET {setting.strip().replace('=', ' TO ')}")
    return connection


def of_url(url: str) -> dict[str, Any]:
    """Return the settings of a database URL."""
    return {**dj_database_url.parse(url)}


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
