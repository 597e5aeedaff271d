"""Addresses that could not be reached for now: several such in a row end it.

One report says little: a mailbox was full, a server away. On DAYS days within WITHIN it is an
address that nobody reads. It is suppressed for PAUSE, and then tried again.
"""

import hashlib
from collections.abc import Sequence
from datetime import timedelta

import orjson
from django.db import connection

from messaging.models import SoftBounce, Suppression
from messaging.suppression import Entry
from rme.core import clock

DAYS = 5
WITHIN = timedelta(days=14)
PAUSE = timedelta(days=30)
_DAY = timedelta(hours=20)
"""Two within that time are one day's."""
_T = SoftBounce._meta.db_table

_COUNT = f"""
INSERT INTO {_T} AS t (organization_id, channel, digest, days, since, last_at)
SELECT organization_id, channel, digest, 1, %s, %s
FROM json_to_recordset(%s) AS given (organization_id text, channel text, digest text)
ON CONFLICT (organization_id, channel, digest) DO UPDATE SET
  days = CASE WHEN t.since < %s THEN 1 ELSE t.days + 1 END,
  since = CASE WHEN t.since < %s THEN excluded.since ELSE t.since END,
  last_at = excluded.last_at
WHERE t.last_at < %s
RETURNING digest, days
"""

Unreached = tuple[str, str, str]
"""An organization, a channel and an address."""


def count(unreached: Sequence[Unreached]) -> list[Entry]:
    """Count soft bounces, one a day and address, and give what is to be suppressed for now.

    One statement; none where there are none. Belongs into a transaction.
    """
    by_digest = {_digest(*each): each for each in unreached}
    if not by_digest:
        return []
    now = clock.now()
    rows = [
        {"organization_id": organization_id, "channel": channel, "digest": digest}
        for digest, (organization_id, channel, _) in sorted(by_digest.items())
    ]
    old = now - WITHIN
    with connection.cursor() as cursor:
        given = orjson.dumps(rows).decode()
        cursor.execute(_COUNT, [now, now, given, old, old, now - _DAY])
        counted = dict(cursor.fetchall())
    return [
        Entry(
            *by_digest[digest],
            Suppression.Reason.INVALID_ADDRESS,
            "PROVIDER",
            note=f"not reached on {DAYS} days within {WITHIN.days}",
            expires_at=now + PAUSE,
        )
        for digest, days in counted.items()
        if days >= DAYS
    ]


def purge() -> None:
    """Forget what is too long ago to count."""
    SoftBounce.objects.filter(last_at__lt=clock.now() - WITHIN).delete()


def _digest(organization_id: str, channel: str, address: str) -> str:
    return hashlib.sha256(f"{organization_id} {channel} {address}".encode()).hexdigest()
