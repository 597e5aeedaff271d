"""An early release: `python -m tests.migrating.release` migrates to its schema.

Its statements go on while all later migrations are applied; what they write is here as it was then.
The release before this one is `RELEASED` in `rules`, and `tests/upgrade` runs it whole.
"""

import os

import django
from django.core.management import call_command

LAST_MIGRATIONS = {
    "messaging": "0014_waiting_index",
    "crm": "0005_fold_dotless_i",
    "tenants": "0004_generation",
    "push": "0003_browsers",
    "bot": "0001_initial",
}
TABLES = ("message", "messagecontent", "delivery", "attempt", "event")
"""The tables that grow with the messages, without `messaging_`."""

_ID = """(lpad(to_hex({since} + i), 12, '0') || '7' || substr(md5('{kind}' || i), 1, 3) || '8'
  || substr(md5('{kind}' || i), 4, 15))::uuid"""
# The moments of a row follow from its number, so that nothing of it depends on when it is written.
_WRITE = """
WITH made AS (
  SELECT i, {message} AS message_id, {delivery} AS id, timestamptz '2026-11-01' + i * interval '1 s'
    AS at, ({statuses}::text[])[mod(i, {count}) + 1] AS status
  FROM generate_series(%(first)s::bigint, %(last)s::bigint) i
), messages AS (
  INSERT INTO messaging_message (id, organization_id, category, channels, strategy, template,
    language, metadata, test, created_at)
  SELECT message_id, 'acme', 'NEWS', '{{EMAIL}}', 'FIRST_REACHABLE', 'note', 'en_US',
    jsonb_build_object('order', i), false, at FROM made
), contents AS (
  INSERT INTO messaging_messagecontent (id, organization_id, body, size)
  SELECT message_id, 'acme', jsonb_build_object('variables', jsonb_build_object('note', i)), 40
  FROM made
), attempts AS (
  INSERT INTO messaging_attempt (id, organization_id, message_id, delivery_id, fence, channel,
    provider, account_id, outcome, provider_id, started_at, latency_ms)
  SELECT {attempt}, 'acme', message_id, id, 1, 'EMAIL', 'smtp', 7, 'Accepted', 'p' || i, at, 12
  FROM made
), events AS (
  INSERT INTO messaging_event (id, organization_id, message_id, delivery_id, type, at, channel,
    provider, detail)
  SELECT {event}, 'acme', message_id, id, 'sent', at, 'EMAIL', 'smtp', '{{"try": 1}}' FROM made
)
INSERT INTO messaging_delivery (id, organization_id, message_id, contact_id, position, category,
  priority, channels, channel, address, provider, account_id, status, due_at, expires_at, fence,
  tries, test, trace, updated_at)
SELECT id, 'acme', message_id, 'c' || i, 0, 'NEWS', 1, '{{SMS}}', 'EMAIL', 'c' || i || '@x.example',
  'smtp', 7, status,
  CASE WHEN status IN ('ACCEPTED', 'SCHEDULED', 'SENDING', 'UNKNOWN') THEN at END,
  at + interval '1 day', 1, 0, false, '{{"chosen": "EMAIL"}}', at
FROM made RETURNING id
"""
CHANGE = "UPDATE messaging_delivery SET status = 'SENT', fence = fence + 1 WHERE id = %s"
READ = """
SELECT m.id, c.body, d.status, e.type FROM messaging_message m
JOIN messaging_messagecontent c ON c.id = m.id JOIN messaging_delivery d ON d.message_id = m.id
JOIN messaging_attempt a ON a.delivery_id = d.id JOIN messaging_event e ON e.message_id = m.id
WHERE d.id = %s
"""


def write(since: int, statuses: list[str]) -> str:
    """Return the statement that stores messages by number, from `first` to `last`, whole.

    `since` is the time of their ids, in milliseconds; each gets the next one of the statuses.
    """
    kinds = ("message", "delivery", "attempt", "event")
    own = {kind: _ID.format(since=since, kind=kind) for kind in kinds}
    array = f"ARRAY{statuses}"
    return _WRITE.format(**own, statuses=array, count=len(statuses))


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "rme.settings")
    django.setup()
    for app, name in LAST_MIGRATIONS.items():
        call_command("migrate", app, name, verbosity=0)


if __name__ == "__main__":
    main()
