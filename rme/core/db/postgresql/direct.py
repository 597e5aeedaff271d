"""Sessions, for what needs one where `DATABASE_URL` leads to a pooler in transaction mode.

There, each transaction may run on another connection of PostgreSQL. What outlasts a transaction
(advisory locks of a session, `SET`, the changes of partitions, long jobs) runs in `session()`,
which executes all statements of its block over the address `DATABASE_DIRECT_URL`. Without a pooler
it does nothing.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from django.db import DEFAULT_DB_ALIAS, ProgrammingError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.translation import gettext_noop

ALIAS = "direct"
"""The database of `DATABASE_DIRECT_URL` in `DATABASES`; only with a pooler is there one."""
_HINT = "set DATABASE_POOLER=transaction, and DATABASE_DIRECT_URL to PostgreSQL itself"


def is_pooled() -> bool:
    """Return whether this thread's statements go through a pooler, where nothing may outlast a
    transaction.
    """
    return ALIAS in connections.settings and connections[DEFAULT_DB_ALIAS].alias != ALIAS


@contextmanager
def session() -> Iterator[bool]:
    """Execute the block's statements in one session; yield whether that took another connection.

    Raises ProgrammingError within a transaction, whose connection cannot be exchanged.
    """
    if not is_pooled():
        yield False
        return
    # Kept open: between transactions it takes none of the pooler's connections.
    pooled = connections[DEFAULT_DB_ALIAS]
    if pooled.in_atomic_block:
        raise ProgrammingError("a session cannot begin within a transaction")
    direct = connections[ALIAS]
    connections[DEFAULT_DB_ALIAS] = direct
    try:
        yield True
    finally:
        connections[DEFAULT_DB_ALIAS] = pooled
        direct.close()  # back to its pool, which closes it when it is idle


def problem() -> str | None:
    """Return what is wrong with the addresses of the database. Raises Error without an answer."""
    if is_pooled():
        if _shares_sessions(connections[ALIAS]):
            return gettext_noop(
                "DATABASE_DIRECT_URL leads to a pooler in transaction mode: "
                "it has to be the address of PostgreSQL itself, or of a pool in session mode"
            )
        return None
    if _shares_sessions(connections[DEFAULT_DB_ALIAS]):
        return gettext_noop(
            "DATABASE_URL leads to a pooler in transaction mode: "
            "set DATABASE_POOLER=transaction, and DATABASE_DIRECT_URL to PostgreSQL itself"
        )
    return None


def hint(message: str) -> str | None:
    """Return what to do where PostgreSQL's address refuses a connection with a message."""
    return _HINT if "startup parameter" in message else None


def _shares_sessions(wrapper: BaseDatabaseWrapper) -> bool:
    """Return whether two of our connections were seen to use one of PostgreSQL's.

    A pooler invents the process id that it reports when a client connects. It uses the connection
    first that it used last, so the second client of an idle pool gets the first one's.
    """
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (process,) = cursor.fetchone()
        if process == wrapper.connection.info.backend_pid:
            return False
    with closing(wrapper.copy()) as second, second.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return bool(cursor.fetchone()[0] == process)
