"""Messages by a part of their ids, which no index has: an organization's newest are looked through.

Messages are accepted thousands of times a second and searched for by such a part some times a day,
so the search pays.
"""

from uuid import UUID

from messaging.models import Message
from rme.core.db import statement_timeout

SCANNED = 100_000
"""The most messages that one search looks through."""
# Plan: message_newest of each partition, the newest partition first, without the tables.
# Run by: with_part
WITH_PART = f"""
SELECT id FROM (SELECT id FROM {Message._meta.db_table} WHERE organization_id = %(organization)s
  ORDER BY id DESC LIMIT {SCANNED}) newest
WHERE strpos(replace(id::text, '-', ''), %(digits)s) > 0 ORDER BY id DESC LIMIT %(limit)s"""


def with_part(organization_id: str, digits: str, *, limit: int, until: float) -> list[UUID]:
    """Return the newest messages whose ids contain hexadecimal digits in a row.

    Raise StatementLate at `until`, a moment of the monotonic clock.
    """
    values = {"organization": organization_id, "digits": digits, "limit": limit}
    with statement_timeout.bounded(until) as cursor:
        cursor.execute(WITH_PART, values)
        return [row[0] for row in cursor.fetchall()]
