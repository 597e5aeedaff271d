"""The few set-based statements that the ORM cannot say.

Rows travel as one JSON parameter and become rows in PostgreSQL by `json_populate_recordset`, which
takes the types from the table. Measured against COPY (four tables, one transaction): 0.55 ms
against 1.4 for one row each, 22 ms against 25 for 500, at a third of the client's CPU; and several
tables fit into one statement, which is a transaction by itself.

A `Part` is a statement that may be a step of a larger one: what a statement costs is told in
`prepared`, by which all of these go.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import orjson
from django.db import models

from rme.core.db import prepared_statements

Row = Mapping[str, Any]
Rows = Sequence[Sequence[Any]]
"""What was read: the columns in their order."""


class Part(NamedTuple):
    """A statement, alone or as a step of a larger one."""

    text: str
    parameters: Sequence[Any] = ()
    setting: str = ""
    """A statement that has to be executed before it, such as `BY_INDEX`."""


Steps = Mapping[str, Part | None]
"""By name; None is nothing to do."""


def as_json(rows: Sequence[Row]) -> str:
    """Write rows as the JSON parameter of a statement; PostgreSQL reads UUIDs and times."""
    return orjson.dumps(rows).decode()


def array(texts: Collection[str]) -> str:
    """Write texts as the literal of an array, for a parameter `%s::text[]`.

    A list as a parameter is the same, and costs psycopg 3 µs an element; this costs 0.2.
    """
    together = "".join(texts)
    if "\\" in together or '"' in together:
        texts = [text.replace("\\", "\\\\").replace('"', '\\"') for text in texts]
    inside = '","'.join(texts)
    return f'{{"{inside}"}}' if texts else "{}"


def arrays(groups: Iterable[Collection[str]]) -> str:
    """Write arrays as the literal of an array of their literals, since arrays in one array have to
    be of one length. Each is read by a cast: `::text[]`.
    """
    return array([array(group) for group in groups])


def by_key(key: str, value: str) -> str:
    """Return the join condition that reads a table by its key, whatever the statistics say.

    A table that was empty when it was last analyzed, or when a statement's plan was kept, looks
    free to read whole, so with `key = value` the planner may read all of it, or all of a partial
    index, for each row on the other side. An array can only be looked up in an index: it is no
    clause for hashing or merging, and asks for no order. Partitions are pruned by it as usual.
    """
    return f"{key} = ANY(ARRAY[{value}])"


def by_own_key(table: str, source: str) -> str:
    """Return the join condition of `by_key` for a table that has an index of its organizations and
    ids too, where `source` has both: each index then finds one row, whichever is taken.
    """
    own, given = (f"({each}.organization_id, {each}.id)" for each in (table, source))
    return f"{by_key(f'{table}.id', f'{source}.id')} AND {own} >= {given} AND {own} <= {given}"


def execute(steps: Steps) -> list[tuple[Any, ...]]:
    """Execute steps as one statement, and give what the last returns; see `send`."""
    return send(steps).rows()


def send(steps: Steps) -> prepared_statements.PendingRows:
    """Have steps executed as one statement: all or nothing. Its answer is what the last returns.

    A step may name those before it, and finds there what they returned; of the tables all see what
    was there before. No step with anything to do costs nothing.
    """
    named = [(name, part) for name, part in steps.items() if part]
    if not named:
        return prepared_statements.PendingRows("", result=[])
    text = _joined(tuple((name, part.text) for name, part in named))
    parameters = [parameter for _, part in named for parameter in part.parameters]
    setting = next((part.setting for _, part in named if part.setting), "")
    return prepared_statements.send(text, parameters, setting=setting)


# Texts are kept: to write the same again for every window costs as much as to send it.
@lru_cache(maxsize=512)
def _joined(steps: tuple[tuple[str, str], ...]) -> str:
    *first, (_, last) = steps
    before = ", ".join(f'"{name}" AS ({text})' for name, text in first)
    return f"WITH {before} {last}" if before else last


BY_INDEX = (
    "SELECT set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true)"
)
"""Executed before a statement, in its transaction: makes PostgreSQL read tables by their indexes.

Where statistics say that a table or a partition is empty (they are as old as its last ANALYZE, and
a plan that is kept may be older), reading it whole looks free, and sorting all rows of all
partitions looks as cheap as merging their first ones.
"""


def read_in_order(text: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Execute a statement that reads the first rows of an index in its order (`BY_INDEX`)."""
    return prepared_statements.execute(text, parameters, setting=BY_INDEX)


def inserting(model: type[models.Model], rows: Sequence[Row], tail: str = "") -> Part | None:
    """Give the INSERT of rows; `tail` is what follows their SELECT, such as a WHERE or RETURNING.

    All rows have the same keys, which are its columns; columns that are not named take their
    database default.
    """
    if not rows:
        return None
    return Part(_insert(model._meta.db_table, tuple(rows[0]), tail), [as_json(rows)])


@lru_cache(maxsize=512)
def _insert(table: str, columns: tuple[str, ...], tail: str) -> str:
    names = ", ".join(f'"{column}"' for column in columns)
    return (
        f'INSERT INTO "{table}" ({names}) '
        f'SELECT {names} FROM json_populate_recordset(NULL::"{table}", %s) {tail}'
    )


def updating(model: type[models.Model], rows: Sequence[Row]) -> Part | None:
    """Give the UPDATE of columns of many rows. All rows have the same keys, `id` among them.

    `organization_id` is a key too where rows have it, and is not set. Rows of a table that has an
    index of both need it: either index then finds one row.
    """
    if not rows:
        return None
    return Part(_update(model._meta.db_table, tuple(rows[0])), [as_json(rows)])


@lru_cache(maxsize=512)
def _update(table: str, columns: tuple[str, ...]) -> str:
    given = [column for column in columns if column not in ("id", "organization_id")]
    assignments = ", ".join(f'"{column}" = r."{column}"' for column in given)
    found = by_own_key("t", "r") if "organization_id" in columns else by_key("t.id", "r.id")
    return (
        f'UPDATE "{table}" t SET {assignments} '
        f'FROM json_populate_recordset(NULL::"{table}", %s) r WHERE {found}'
    )


def loose_scan(model: type[models.Model], columns: Sequence[str], where: str) -> str:
    """Give the table `step` for WITH RECURSIVE: what columns hold in rows that meet a condition.

    A loose index scan (https://wiki.postgresql.org/wiki/Loose_indexscan): one step through an
    index for each, however many rows each has. The index is of those columns, in their order.
    """
    names, before = ", ".join(columns), ", ".join(f"step.{column}" for column in columns)
    chosen = f'SELECT {names} FROM "{model._meta.db_table}" WHERE {where}'
    first = f"ORDER BY {names} LIMIT 1"
    return f"""step({names}) AS (
  ({chosen} {first})
  UNION ALL
  SELECT following.*
  FROM step, LATERAL ({chosen} AND ({names}) > ({before}) {first}) following
)"""


def insert(tables: Mapping[type[models.Model], Sequence[Row]]) -> None:
    """Insert rows into several tables by one statement: all or nothing. Raises `IntegrityError`."""
    execute({model.__name__: inserting(model, rows) for model, rows in tables.items()})


def update(model: type[models.Model], rows: Sequence[Row]) -> None:
    """Set columns of many rows by one statement."""
    execute({"updated": updating(model, rows)})


def read(queries: Sequence[Part]) -> list[Rows]:
    """Read the rows of several queries by one statement, so of one moment.

    Values are as JSON has them: a time is best read as `extract(epoch FROM …)::float8`.
    """
    return rows_of(ask(queries))


def ask(queries: Sequence[Part]) -> prepared_statements.PendingRows:
    """Have several queries executed, as `read` does; the answer is for `rows_of`."""
    parameters = [parameter for query in queries for parameter in query.parameters]
    return prepared_statements.send(_reading(tuple(query.text for query in queries)), parameters)


@lru_cache(maxsize=512)
def _reading(queries: tuple[str, ...]) -> str:
    columns = (f"(SELECT json_agg(row_to_json(q))::text FROM ({query}) q)" for query in queries)
    return f"SELECT {', '.join(columns)}"


def rows_of(answer: prepared_statements.PendingRows) -> list[Rows]:
    """Give the rows of each query of `ask`."""
    (answers,) = answer.rows()
    return [[list(row.values()) for row in orjson.loads(text or "[]")] for text in answers]
