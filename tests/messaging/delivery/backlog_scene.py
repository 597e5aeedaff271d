"""Deliveries by the ten thousand, and how much of the tables a call reads."""

from collections.abc import Callable

from django.db import connection

from messaging.models import PARTITIONED, ConsentEntry, Pause, Suppression
from rme.core import ids

_IDS = """
SELECT (substr(md5('{salt}' || i), 1, 0) || lpad(to_hex({since} + i / 100), 12, '0') || '7'
  || substr(md5('{salt}' || i), 1, 3) || '8' || substr(md5('{salt}' || i), 4, 15))::uuid AS id,
  'o' || lpad((i % {organizations})::text, 2, '0') AS organization_id, i
FROM generate_series(1, {count}) i
"""
_FILL = """
WITH made AS ({ids}), messages AS (
  INSERT INTO messaging_message
    (id, organization_id, category, channels, strategy, template, test)
  SELECT id, organization_id, 'NEWS', '{{EMAIL}}', 'FIRST', 'note', false FROM made
), contents AS (
  INSERT INTO messaging_messagecontent (id, organization_id, body, size)
  SELECT id, organization_id, '{{"content": {{}}}}', 15 FROM made
), attempts AS (
  INSERT INTO messaging_attempt
    (id, organization_id, message_id, delivery_id, fence, channel, provider, account_id,
     started_at)
  SELECT id, organization_id, id, id, 0, 'EMAIL', 'sink', 7, now() FROM made
)
INSERT INTO messaging_delivery (id, organization_id, message_id, contact_id, position, category,
  priority, channels, channel, status, scheduled_for, due_at, expires_at, fence, tries, test)
SELECT id, organization_id, id, 'c' || i, 0, 'NEWS', {priority}, '{{SMS}}', '{channel}', '{status}',
  now(), {due_at}, now() + interval '1 day', 0, 0, false
FROM made
"""

_FILL_GATES = """
WITH made AS ({ids}), entries AS (
  INSERT INTO messaging_consententry (id, organization_id, contact_id, channel, category, status,
    source, evidence, occurred_at, recorded_by, previous, digest)
  SELECT id, organization_id, 'c' || i, 'EMAIL', 'NEWS', 'OPTED_IN', 'API', '{{}}', now(), '', '',
    '' FROM made
), pauses AS (
  INSERT INTO messaging_pause (organization_id, channel, category, template, reason)
  SELECT organization_id, 'SMS', '', '', 'Audit' FROM made WHERE i <= {organizations}
)
INSERT INTO messaging_suppression
  (id, organization_id, channel, address, contact_id, reason, note, source)
SELECT CASE WHEN of_contact THEN gen_random_uuid() ELSE id END, organization_id, 'SMS',
  CASE WHEN of_contact THEN '' ELSE 'c' || i || '@example.com' END,
  CASE WHEN of_contact THEN 'c' || i ELSE '' END, 'MANUAL', '', 'API'
FROM made, unnest(ARRAY[false, true]) of_contact
"""
GATED = [Suppression, ConsentEntry, Pause]
"""The tables that the gates read besides deliveries."""
_TABLES = [model._meta.db_table for model in (*PARTITIONED, *GATED)]


def fill(
    status: str,
    count: int,
    *,
    channel: str = "EMAIL",
    priority: int = 1,
    organizations: int = 4,
    since: int,
    due_at: str = "now() - interval '1 hour' + i * interval '1 ms'",
) -> None:
    """Store deliveries that are due. `since` is the time of the first id, in milliseconds."""
    made = _IDS.format(salt=ids.new_id(), since=since, organizations=organizations, count=count)
    with connection.cursor() as cursor:
        cursor.execute(
            _FILL.format(ids=made, status=status, channel=channel, priority=priority, due_at=due_at)
        )


def fill_gates(count: int, *, organizations: int = 4) -> None:
    """Store a consent entry and two suppressions of each contact, and pauses: none of email."""
    made = _IDS.format(salt=ids.new_id(), since=0, organizations=organizations, count=count)
    with connection.cursor() as cursor:
        cursor.execute(_FILL_GATES.format(ids=made, organizations=organizations))


def empty(vacuum: str = "") -> None:
    """Delete all, and with options of VACUUM let PostgreSQL learn that nothing is there."""
    with connection.cursor() as cursor:
        for table in _TABLES:
            cursor.execute(f"DELETE FROM {table}")
        if vacuum:
            cursor.execute(f"VACUUM ({vacuum}) {', '.join(_TABLES)}")


def analyze() -> None:
    """Let PostgreSQL learn what is there: it keeps that when all rows are deleted."""
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {', '.join(_TABLES)}")


_READ = """
SELECT
  (SELECT coalesce(sum(idx_tup_read), 0) FROM pg_stat_user_indexes WHERE relname LIKE 'messaging%%')
  + (SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_user_tables
     WHERE relname LIKE 'messaging%%'),
  (SELECT coalesce(sum(heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read), 0)
   FROM pg_statio_user_tables WHERE relname LIKE 'messaging%%')
"""


def _counters() -> tuple[int, int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute(_READ.replace("%%", "%"))
        entries, blocks = cursor.fetchone()
    return int(entries), int(blocks)


def read_by(call: Callable[[], object]) -> tuple[int, int]:
    """Return how many rows or entries of indexes, and how many blocks, a call reads."""
    before = _counters()
    call()
    after = _counters()
    return after[0] - before[0], after[1] - before[1]
