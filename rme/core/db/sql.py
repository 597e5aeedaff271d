"""Set-based statements that the ORM cannot express.

Rows are passed as one JSON parameter, from which `json_populate_recordset` makes rows of the types
of the table. Measured against COPY (four tables, one transaction): 0.55 ms against 1.4 for one row
each, 22 ms against 25 for 500, at a third of the client's CPU; and several tables fit into one
statement, which is a transaction by itself.

All of these are executed by `prepared_statements`. A `Step` is a statement that may be a step of a
larger one.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Protocol

import orjson
from django.db import connection, models

from rme.core.db import prepared_statements

Row = Mapping[str, Any]


class DataclassRow(Protocol):
    """A row to be written whose fields are the columns."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


NewRow = Row | DataclassRow
Tables = Mapping[type[models.Model], Sequence[NewRow]]
Rows = Sequence[Sequence[Any]]
"""The rows of a query: values in the order of its columns."""


class Step(NamedTuple):
    """A statement, alone or as a step of a larger one."""

    text: str
    parameters: Sequence[Any] = ()
    setting: str = ""
    """A statement that has to be executed before it, such as `BY_INDEX`."""


Steps = Mapping[str, Step | None]
"""The steps of a statement by name; None is no step."""


def as_json(rows: Sequence[NewRow]) -> str:
    """Return rows as the JSON parameter of a statement; PostgreSQL parses UUIDs and times."""
    return orjson.dumps(rows).decode()


def array(texts: Collection[str]) -> str:
    """Return texts as the literal of an array, for a parameter `%s::text[]`.

    It costs 0.2 µs an element; psycopg's adapter for lists takes 3.
    """
    joined = "".join(texts)
    if "\\" in joined or '"' in joined:
        texts = [text.replace("\\", "\\\\").replace('"', '\\"') for text in texts]
    inside = '","'.join(texts)
    return f'{{"{inside}"}}' if texts else "{}"


def arrays(groups: Iterable[Collection[str]]) -> str:
    """Return arrays as the literal of an array of literals, because arrays in an array must have
    one length. The statement casts each element: `::text[]`.
    """
    return array([array(group) for group in groups])


def by_key(key: str, value: str) -> str:
    """Return the join condition by which a table is read by its key, whatever the statistics say.

    Reading a table looks free if it was empty when it was last analyzed, or when a statement's plan
    was cached. So with `key = value` the planner may read all of it, or all of a partial index, for
    each row on the other side. An array cannot be hashed or merged, only looked up in an index, and
    needs no order. Partitions are pruned by it as usual.
    """
    return f"{key} = ANY(ARRAY[{value}])"


def by_own_key(table: str, source: str) -> str:
    """Return the join condition of `by_key` for a table that has an index on organization and id
    too, if `source` has both: either index then finds one row.
    """
    key, value = (f"({each}.organization_id, {each}.id)" for each in (table, source))
    return f"{by_key(f'{table}.id', f'{source}.id')} AND {key} >= {value} AND {key} <= {value}"


def among(key: str, name: str) -> str:
    """Return the condition that the key of a partitioned table is one of those that the caller
    gives, with named parameters, for `bind`; `keys` returns their values.

    The bounds choose the partitions before the statement runs. A statement that locks or changes
    rows must not choose them while it runs, as a join by key would: docs/architecture.md, "Locks
    and pruning".
    """
    return f"{key} = ANY(%({name})s) AND {key} >= %({name}_least)s AND {key} <= %({name}_greatest)s"


def keys(name: str, values: Iterable[object]) -> dict[str, str]:
    """Return the parameters of `among` for at least one UUID."""
    texts = [str(value) for value in values]
    return {name: array(texts), f"{name}_least": min(texts), f"{name}_greatest": max(texts)}


def bind(text: str, values: Mapping[str, Any], setting: str = "") -> Step:
    """Return a statement with named parameters, `%(name)s`, as a step with their values."""
    statement, names = positional(text)
    return Step(statement, [values[name] for name in names], setting)


@lru_cache(maxsize=512)
def positional(text: str) -> tuple[str, Sequence[str]]:
    """Return a statement with `%s` for its parameters, and their names in order."""
    return _NAME.sub("%s", text), _NAME.findall(text)


_NAME = re.compile(r"%\((\w+)\)s")


def same_key(key: str, value: str) -> str:
    """Return the join condition for rows that `among` has chosen: it can only be hashed, and
    neither looked up in an index nor used to choose partitions.
    """
    return f"{key}::text = {value}::text"


def execute(steps: Steps) -> list[tuple[Any, ...]]:
    """Execute steps as one statement, all or nothing, and return the rows of the last step.

    A step can select from those before it by name; of the tables all steps see the state before the
    statement. Nothing is executed if there is no step.
    """
    statement = _joined(steps)
    if statement is None:
        return []
    return prepared_statements.execute(
        statement.text, statement.parameters, setting=statement.setting
    )


def send(steps: Steps, batch: prepared_statements.Batch) -> prepared_statements.PendingRows:
    """Add steps to a batch as one statement; see `execute`."""
    statement = _joined(steps)
    if statement is None:
        return prepared_statements.PendingRows("", result=[])
    return batch.send(statement.text, statement.parameters, setting=statement.setting)


def _joined(steps: Steps) -> Step | None:
    """Return the statement of all steps; None if there is none."""
    named = [(name, part) for name, part in steps.items() if part]
    if not named:
        return None
    text = _join_steps(tuple((name, part.text) for name, part in named))
    parameters = [parameter for _, part in named for parameter in part.parameters]
    return Step(text, parameters, _setting(part for _, part in named))


# Texts are cached: to build one again for each window costs as much as to send it.
@lru_cache(maxsize=512)
def _join_steps(steps: tuple[tuple[str, str], ...]) -> str:
    *first, (_, last) = steps
    before = ", ".join(f'"{name}" AS ({text})' for name, text in first)
    return f"WITH {before} {last}" if before else last


_BY_INDEX = (
    "SELECT set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true), "
    "set_config('plan_cache_mode', 'force_{}_plan', true)"
)
BY_INDEX = _BY_INDEX.format("custom")
"""Executed before a statement, in its transaction: makes PostgreSQL read tables by their indexes.

Statistics are as old as the last ANALYZE, and a cached plan may be older. If they say that a table
or a partition is empty, a sequential scan looks free, and sorting the rows of all partitions looks
as cheap as merging the first row of each.

So the statement is planned at each execution, for the tables' current size. A cached plan may be
from a time when a table was empty: all its indexes cost the same then, and old statistics decide
which one is read. On PostgreSQL 15 a cached plan also looks up each id of an array in all
partitions.
"""

BY_GENERIC_PLAN = _BY_INDEX.format("generic")
"""`BY_INDEX` for a statement whose form leaves the planner one index for each table: by key, or by
the only index in whose order it asks for rows. Statistics cannot choose another, so it is planned
once for a connection, and again after a change of the schema.

Planning takes longer than executing where few rows are read: 3.8 ms for the search for
organizations, 0.44 for the gates. `tests/messaging/delivery/claim_plans.py` holds each.
"""


def read_in_order(
    text: str, values: Mapping[str, Any] | None = None, *, setting: str = BY_INDEX
) -> list[tuple[Any, ...]]:
    """Execute a statement with named parameters that reads the first rows of an index in its order
    (`BY_INDEX`).
    """
    step = bind(text, values or {})
    return prepared_statements.execute(step.text, step.parameters, setting=setting)


def fetch(text: str, values: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
    """Execute a statement with named parameters, and return its rows. Its values may be of any
    type, also lists.
    """
    with connection.cursor() as cursor:
        cursor.execute(text, values)
        return list(cursor.fetchall())


NOT_STORED: Mapping[str, bool] = {"is_stored": False}
"""The metadata of a field of a dataclass that is no column."""


def insert_step(model: type[models.Model], rows: Sequence[NewRow], tail: str = "") -> Step | None:
    """Return the INSERT of rows; `tail` follows its SELECT, such as a WHERE or RETURNING.

    All rows have the same keys or fields, which are its columns; the others take their
    database default. A field of a dataclass with the metadata NOT_STORED is no column.
    """
    if not rows:
        return None
    return Step(_insert(model._meta.db_table, _columns(rows[0]), tail), [as_json(rows)])


def _columns(row: NewRow) -> tuple[str, ...]:
    if isinstance(row, Mapping):
        return tuple(row)
    fields = row.__dataclass_fields__.items()
    return tuple(name for name, field in fields if field.metadata.get("is_stored", True))


@lru_cache(maxsize=512)
def _insert(table: str, columns: tuple[str, ...], tail: str) -> str:
    names = ", ".join(f'"{column}"' for column in columns)
    return (
        f'INSERT INTO "{table}" ({names}) '
        f'SELECT {names} FROM json_populate_recordset(NULL::"{table}", %s) {tail}'
    )


def update_partitioned_step(
    model: type[models.Model],
    rows: Sequence[Row],
    values: Mapping[str, str] | None = None,
    tail: str = "",
) -> Step | None:
    """Return the UPDATE of many rows of a partitioned table by `id`. All rows have the same keys.

    `values` are expressions of columns that do not become what the row has: `t` is the table, `r`
    the row. `tail` follows the WHERE, such as RETURNING.
    If the rows have an `organization_id`, which is compared and not set, the table may have an
    index on organization and id: either index is then read for these rows alone.
    """
    if not rows:
        return None
    columns = tuple(rows[0])
    where = f"{among('t.id', 'keys')} AND {same_key('t.id', 'r.id')}"
    parameters = {"rows": as_json(rows), **keys("keys", (row["id"] for row in rows))}
    if "organization_id" in columns:
        where += " AND t.organization_id = ANY(%(organizations)s)"
        parameters["organizations"] = array({row["organization_id"] for row in rows})
    text = _update(model._meta.db_table, columns, tuple((values or {}).items()), f"{where} {tail}")
    return bind(text, parameters, BY_GENERIC_PLAN)


@lru_cache(maxsize=512)
def _update(
    table: str, columns: tuple[str, ...], values: tuple[tuple[str, str], ...], where: str
) -> str:
    new = {column: f'r."{column}"' for column in columns} | dict(values)
    assignments = ", ".join(
        f'"{column}" = {value}'
        for column, value in new.items()
        if column not in ("id", "organization_id")
    )
    return (
        f'UPDATE "{table}" t SET {assignments} '
        f'FROM json_populate_recordset(NULL::"{table}", %(rows)s) r WHERE {where}'
    )


def loose_scan(model: type[models.Model], columns: Sequence[str], where: str) -> str:
    """Return the table `step` for WITH RECURSIVE: the distinct values of columns, of the rows that
    meet a condition.

    A loose index scan (https://wiki.postgresql.org/wiki/Loose_indexscan): one step through an index
    for each value, however many rows have it. It needs an index on the columns in their order.
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


def insert(tables: Tables, following: Steps | None = None) -> None:
    """Insert rows into several tables by one statement, all or nothing. Raises IntegrityError, or
    what the steps `following` raise, which are executed after them if there are any rows.
    """
    inserts = {model.__name__: insert_step(model, rows) for model, rows in tables.items()}
    if any(inserts.values()):
        execute({**inserts, **(following or {})})


def update(model: type[models.Model], rows: Sequence[Row]) -> None:
    """Update many rows by `id`, by one statement. All rows have the same keys.

    Rows of a table that has an index on organization and id need `organization_id` too, which is
    compared and not set: either index then finds one row.
    """
    if rows:
        columns = tuple(rows[0])
        where = by_own_key("t", "r") if "organization_id" in columns else by_key("t.id", "r.id")
        statement = _update(model._meta.db_table, columns, (), where)
        execute({"updated": bind(statement, {"rows": as_json(rows)})})


def update_partitioned(model: type[models.Model], rows: Sequence[Row]) -> None:
    """Update many rows of a partitioned table by one statement; see `update_partitioned_step`."""
    execute({"updated": update_partitioned_step(model, rows)})


def read(queries: Sequence[Step]) -> list[Rows]:
    """Return the rows of several queries, read by one statement, so of one moment.

    Values are of JSON's types: a time is best read as `extract(epoch FROM …)::float8`.
    """
    statement = _joined_queries(queries)
    return _read(
        prepared_statements.execute(statement.text, statement.parameters, setting=statement.setting)
    )


def send_queries(
    queries: Sequence[Step], batch: prepared_statements.Batch
) -> prepared_statements.PendingRows:
    """Add several queries to a batch, as `read` executes them; `rows_of` returns their rows."""
    statement = _joined_queries(queries)
    return batch.send(statement.text, statement.parameters, setting=statement.setting)


def _joined_queries(queries: Sequence[Step]) -> Step:
    text = _join_queries(tuple(query.text for query in queries))
    parameters = [parameter for query in queries for parameter in query.parameters]
    return Step(text, parameters, _setting(queries))


def _setting(parts: Iterable[Step]) -> str:
    """Return the setting that the parts of one statement need."""
    return next((part.setting for part in parts if part.setting), "")


@lru_cache(maxsize=512)
def _join_queries(queries: tuple[str, ...]) -> str:
    columns = (f"(SELECT json_agg(row_to_json(q))::text FROM ({query}) q)" for query in queries)
    return f"SELECT {', '.join(columns)}"


def rows_of(pending: prepared_statements.PendingRows) -> list[Rows]:
    """Return the rows of each query of `send_queries`."""
    return _read(pending.rows())


def _read(answer: Rows) -> list[Rows]:
    """Return the rows of each query, from the row of texts that has them all."""
    (texts,) = answer
    return [[list(row.values()) for row in orjson.loads(text or "[]")] for text in texts]
