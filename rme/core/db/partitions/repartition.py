"""Moves rows from a default partition to their months while others read and write them.

PostgreSQL attaches no partition while the default partition holds rows of it, and rows that are
moved one by one are invisible or locked for a time. So the default partition is copied instead, to
a new table with the missing months and a new default partition, while a trigger applies each
change to the copy too. When all rows are copied, one transaction, which changes only catalogs,
detaches the old default partition and attaches the parts of the copy. No lock that writers wait
for is requested for longer than LOCK_MS, or held for longer than CHANGE_MS.
"""

import time
from collections.abc import Mapping, Sequence
from uuid import UUID

import structlog
from django.db import IntegrityError, OperationalError, connection, transaction
from psycopg.errors import CheckViolation, LockNotAvailable, QueryCanceled

from rme.core.db.partitions.options import with_options

log = structlog.get_logger(__name__)

LOCK_MS = 250
"""How long a change of partitions waits for its locks, and all later users of the table with it."""
CHANGE_MS = 1000
"""How long one statement may hold a lock that writers wait for."""
TRIES = 5
PAUSE_SECONDS = 0.25
"""The pause after the first try that got no lock; it grows with each try."""
ROW_SECONDS = 5.0
"""How long rows that others have locked are retried, after all other rows were copied."""
BATCH = 500
_LEAST = UUID(int=0)


def split_default(table: str, bounds: Mapping[str, tuple[UUID, UUID]]) -> bool:
    """Attach new partitions, by name and bounds, with their rows of the default partition.

    Return False if locks were not available: nothing has changed then, but a copy may be left that
    `clear` removes. Must not run in a transaction, because it needs several.
    """
    _create_copy(table, bounds)
    is_done = run_with_retries(table, _mirror_statements(table))
    if is_done:
        is_done = _copy(table) and run_with_retries(table, _swap_statements(table, bounds))
    if not is_done:
        clear(table)
    return is_done


def clear(table: str) -> bool:
    """Drop the copy that an interrupted run left; return whether there is none any more."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NULL", [f'"{_copy_of(table)}"'])
        if cursor.fetchone()[0]:
            return True
    statements = [
        f'DROP TRIGGER IF EXISTS repartition ON "{table}_default"',
        f'DROP FUNCTION IF EXISTS "{_copy_of(table)}_apply"()',
        f'DROP TABLE "{_copy_of(table)}"',
    ]
    return run_with_retries(table, statements, each_ms=0)


def _copy_of(table: str) -> str:
    return f"{table}_repartition"


def _create_copy(table: str, bounds: Mapping[str, tuple[UUID, UUID]]) -> None:
    """Create the empty copy. Its checks spare PostgreSQL reading a month when it is attached."""
    copy, options = _copy_of(table), with_options(table)
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute(
            f'CREATE TABLE "{copy}" (LIKE "{table}" INCLUDING ALL) PARTITION BY RANGE (id)'
        )
        cursor.execute(f'CREATE TABLE "{copy}_default" PARTITION OF "{copy}" DEFAULT{options}')
        for name, (least, end) in bounds.items():
            cursor.execute(
                f'CREATE TABLE "{name}" PARTITION OF "{copy}" '
                f"FOR VALUES FROM ('{least}') TO ('{end}'){options}"
            )
            cursor.execute(
                f'ALTER TABLE "{name}" ADD CONSTRAINT repartition '
                f"CHECK (id >= '{least}' AND id < '{end}')"
            )


def columns(table: str) -> list[str]:
    """Return the quoted names of a table's columns, in their order."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT quote_ident(attname) FROM pg_attribute "
            "WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            [f'"{table}"'],
        )
        return [name for (name,) in cursor.fetchall()]


def _mirror_statements(table: str) -> list[str]:
    """Return the statements after which a trigger applies each change to the copy too."""
    copy, names = _copy_of(table), columns(table)
    new = ", ".join(f"NEW.{column}" for column in names)
    return [
        f'CREATE FUNCTION "{copy}_apply"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN '
        f"""IF TG_OP <> 'INSERT' THEN DELETE FROM "{copy}" WHERE id = OLD.id; END IF; """
        f"""IF TG_OP <> 'DELETE' THEN INSERT INTO "{copy}" ({", ".join(names)}) """
        f"VALUES ({new}); END IF; RETURN NULL; END $$",
        f'CREATE TRIGGER repartition AFTER INSERT OR UPDATE OR DELETE ON "{table}_default" '
        f'FOR EACH ROW EXECUTE FUNCTION "{copy}_apply"()',
    ]


def _copy(table: str) -> bool:
    """Copy all rows that are older than the trigger; return False if some stay locked.

    A row is locked while it is copied, so that a later change finds it in the copy. A row that
    another transaction has locked is retried: waiting for it could be a deadlock.
    """
    last: UUID | None = _LEAST
    locked: list[UUID] = []
    with connection.cursor() as cursor:
        while last is not None:
            cursor.execute(
                f'SELECT id FROM "{table}_default" WHERE id > %s ORDER BY id LIMIT %s',
                [last, BATCH],
            )
            keys = [key for (key,) in cursor.fetchall()]
            locked += _copy_rows(table, keys)
            last = keys[-1] if keys else None
    until = time.monotonic() + ROW_SECONDS
    while (locked := _copy_rows(table, locked)) and time.monotonic() < until:
        time.sleep(0.05)
    return not locked


def _copy_rows(table: str, keys: list[UUID]) -> list[UUID]:
    """Copy rows by key; return the keys of those that others have locked."""
    names = ", ".join(columns(table))
    with connection.cursor() as cursor:
        cursor.execute(
            f'INSERT INTO "{_copy_of(table)}" ({names}) SELECT {names} FROM "{table}_default" '
            "WHERE id = ANY(%s) FOR SHARE SKIP LOCKED ON CONFLICT DO NOTHING",
            [keys],
        )
        cursor.execute(
            f'SELECT id FROM "{table}_default" d WHERE id = ANY(%s) '
            f'AND NOT EXISTS (SELECT FROM "{_copy_of(table)}" c WHERE c.id = d.id)',
            [keys],
        )
        return [key for (key,) in cursor.fetchall()]


def _swap_statements(table: str, bounds: Mapping[str, tuple[UUID, UUID]]) -> list[str]:
    """Return the statements that replace the default partition by the parts of the copy."""
    copy, default = _copy_of(table), f"{table}_default"
    months = [
        statement
        for name, (least, end) in bounds.items()
        for statement in (
            f'ALTER TABLE "{copy}" DETACH PARTITION "{name}"',
            f'ALTER TABLE "{table}" ATTACH PARTITION "{name}" '
            f"FOR VALUES FROM ('{least}') TO ('{end}')",
            f'ALTER TABLE "{name}" DROP CONSTRAINT repartition',
        )
    ]
    return [
        f'ALTER TABLE "{table}" DETACH PARTITION "{default}"',
        *months,
        f'ALTER TABLE "{copy}" DETACH PARTITION "{copy}_default"',
        f'DROP TABLE "{default}"',
        f'ALTER TABLE "{copy}_default" RENAME TO "{default}"',
        f'ALTER TABLE "{table}" ATTACH PARTITION "{default}" DEFAULT',
        f'DROP FUNCTION "{copy}_apply"()',
        f'DROP TABLE "{copy}"',
    ]


def run_with_retries(name: str, statements: Sequence[str], each_ms: int = CHANGE_MS) -> bool:
    """Run statements as `run` does, up to TRIES times: an autovacuum may hold a table for long."""
    for number in range(TRIES):
        time.sleep(PAUSE_SECONDS * number)
        if run(name, statements, each_ms):
            return True
    return False


def run(name: str, statements: Sequence[str], each_ms: int = 0) -> bool:
    """Run statements in one transaction; return False if they have to be tried again: one waited
    or took too long, or a row was inserted into a month that is to be attached.
    """
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = {LOCK_MS}")
            if each_ms:
                cursor.execute(f"SET LOCAL statement_timeout = {each_ms}")
            for statement in statements:
                cursor.execute(statement)
    except (OperationalError, IntegrityError) as error:
        if not isinstance(error.__cause__, LockNotAvailable | QueryCanceled | CheckViolation):
            raise
        log.warning("partition.locked", partition=name)
        return False
    return True
