"""The few set-based statements that the ORM cannot say.

Rows travel as one JSON parameter and become rows in PostgreSQL by `json_populate_recordset`, which
takes the types from the table. Measured against COPY (four tables, one transaction): 0.55 ms
against 1.4 for one row each, 22 ms against 25 for 500, at a third of the client's CPU; and several
tables fit into one statement, which is a transaction by itself.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import orjson
from django.db import connection, models

Row = Mapping[str, Any]


def as_json(rows: Sequence[Row]) -> str:
    """Write rows as the JSON parameter of a statement; PostgreSQL reads UUIDs and times."""
    return orjson.dumps(rows).decode()


def array(texts: Collection[str]) -> str:
    """Write texts as the literal of an array, for a parameter `%s::text[]`.

    A list as a parameter is the same, and costs psycopg 3 µs an element; this costs 0.2.
    """
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    inside = '","'.join(quoted)
    return f'{{"{inside}"}}' if texts else "{}"


def insert(tables: Mapping[type[models.Model], Sequence[Row]]) -> None:
    """Insert rows into several tables by one statement: all or nothing.

    All rows of a table have the same keys, which are its columns; columns that are not named take
    their database default. Tables without rows cost nothing. Raises `IntegrityError`.
    """
    parts, parameters = [], []
    for model, rows in tables.items():
        if not rows:
            continue
        table = model._meta.db_table
        columns = ", ".join(f'"{column}"' for column in rows[0])
        parts.append(
            f'INSERT INTO "{table}" ({columns}) '
            f'SELECT {columns} FROM json_populate_recordset(NULL::"{table}", %s)'
        )
        parameters.append(as_json(rows))
    if not parts:
        return
    *first, last = parts
    named = ", ".join(f"i{index} AS ({part})" for index, part in enumerate(first))
    with connection.cursor() as cursor:
        cursor.execute(f"WITH {named} {last}" if named else last, parameters)


def update(model: type[models.Model], rows: Sequence[Row]) -> None:
    """Set columns of many rows by one statement. All rows have the same keys, `id` among them."""
    if not rows:
        return
    table = model._meta.db_table
    assignments = ", ".join(f'"{column}" = r."{column}"' for column in rows[0] if column != "id")
    with connection.cursor() as cursor:
        cursor.execute(
            f'UPDATE "{table}" t SET {assignments} '
            f'FROM json_populate_recordset(NULL::"{table}", %s) r WHERE t.id = r.id',
            [as_json(rows)],
        )
