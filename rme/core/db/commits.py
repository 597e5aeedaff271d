"""How safe a commit of another transaction is."""

from rme.core.db import prepared_statements

# Writes 30 bytes of WAL that are never read. The part that locks nothing makes it a statement that
# writes for a read-only server too, which refuses it (25006). Without it a primary that is
# read-only would execute it, and a standby raise an internal error.
CONFIRM_EARLIER = (
    "SELECT pg_logical_emit_message(true, 'rme', '') "
    "WHERE NOT EXISTS (SELECT FROM django_migrations WHERE false FOR KEY SHARE)"
)
"""SQL of `confirm_earlier`, for a connection of one's own."""


def confirm_earlier() -> None:
    """Return once everything that was read before is on the synchronous standby, if there is one.

    A primary that lost its standby commits on its own disk and waits. If it is restarted then, such
    commits can be read, though they were never confirmed and a failover loses them. A commit of
    one's own waits for the WAL of all those before it. Without a standby it is a write to the disk.
    Raises OperationalError if it cannot be had in time.
    """
    prepared_statements.execute(CONFIRM_EARLIER)
