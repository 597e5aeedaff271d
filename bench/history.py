"""The history over a million messages: the 1,000th page against the first, by each filter."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from bench.scene import Scene

COUNT = 1_000_000
DAYS = 360
PAGE = 50

# Messages evenly over the days; ids are UUIDv7 of their time, with the number behind it. One
# contact has a fifth of them all, a thousand others share the rest, and one has three. A tenth
# goes by SMS, a third is MARKETING; FAILED and the category RARE are five each.
_ID = """(lpad(to_hex((extract(epoch FROM %(until)s::timestamptz) * 1000)::bigint
    - ({count} - i)::bigint * {step}), 12, '0')
    || '7000' || {kind} || lpad(to_hex(i), 15, '0'))::uuid"""
_MESSAGES = """
INSERT INTO messaging_message (id, organization_id, category, channels, strategy, test, created_at)
SELECT {id}, 'bench', CASE WHEN mod(i, 200000) = 7 THEN 'RARE' WHEN mod(i, 3) = 0 THEN 'MARKETING'
  ELSE 'TRANSACTIONAL' END, '{{EMAIL}}', 'FIRST_REACHABLE', false,
  %(until)s::timestamptz - ({count} - i) * interval '{step} milliseconds'
FROM generate_series(1, {count}) i
"""
_DELIVERIES = """
INSERT INTO messaging_delivery (id, organization_id, message_id, contact_id, position, category,
  priority, channels, channel, status, expires_at, fence, tries, test, updated_at)
SELECT {id}, 'bench', {message}, CASE WHEN mod(i, 333333) = 5 THEN 'seldom'
  WHEN mod(i, 5) = 0 THEN 'busy' ELSE 'c' || mod(i, 1000) END, 0,
  CASE WHEN mod(i, 200000) = 7 THEN 'RARE' WHEN mod(i, 3) = 0 THEN 'MARKETING'
    ELSE 'TRANSACTIONAL' END,
  1, '{{}}', CASE WHEN mod(i, 10) = 1 THEN 'SMS' ELSE 'EMAIL' END,
  CASE WHEN mod(i, 200000) = 11 THEN 'FAILED' WHEN mod(i, 2) = 0 THEN 'DELIVERED' ELSE 'SENT' END,
  %(until)s::timestamptz, 1, 0, false, %(until)s::timestamptz
FROM generate_series(1, {count}) i
"""


def fill(until: datetime) -> None:
    """Store a million messages of the last year by two statements."""
    from django.db import connection

    from messaging.models import Delivery, Message
    from rme.core.db import partitions

    tables = [Message._meta.db_table, Delivery._meta.db_table]
    partitions.create_ahead(tables, now=until - timedelta(days=DAYS), ahead=12)
    step = DAYS * 86_400_000 // COUNT
    message = _ID.format(count=COUNT, step=step, kind="'8'")
    delivery = _ID.format(count=COUNT, step=step, kind="'9'")
    with connection.cursor() as cursor:
        for text in (
            _MESSAGES.format(id=message, count=COUNT, step=step),
            _DELIVERIES.format(id=delivery, message=message, count=COUNT),
        ):
            cursor.execute(text, {"until": until})
        cursor.execute(f"VACUUM ANALYZE {', '.join(tables)}")


def timed(call: Callable[[], Any]) -> float:
    """Return the milliseconds of a call: the best of five, after one that is not counted."""
    call()
    took = []
    for _ in range(5):
        started = time.perf_counter()
        call()
        took.append(time.perf_counter() - started)
    return min(took) * 1000


def filters(until: datetime) -> dict[str, dict[str, Any]]:
    half = until - timedelta(days=DAYS / 2)
    return {
        "no filter": {},
        "contactId, of a fifth": {"contact_id": "busy"},
        "status": {"status": "DELIVERED"},
        "channel": {"channel": "SMS"},
        "category": {"category": "MARKETING"},
        "since": {"since": until - timedelta(days=DAYS + 1)},
        "until": {"until": half},
        "contactId, status, category": {
            "contact_id": "busy", "status": "DELIVERED", "category": "TRANSACTIONAL"
        },
        "contactId, of three": {"contact_id": "seldom"},
        "contactId, of none": {"contact_id": "nobody"},
        "status, of five": {"status": "FAILED"},
        "status, of none": {"status": "UNKNOWN"},
        "category, of five": {"category": "RARE"},
        "category, of none": {"category": "NOTHING"},
    }  # fmt: skip


def walk(fields: dict[str, Any], pages: int) -> tuple[UUID | None, int]:
    """Go through pages as a caller does; gives the cursor after them, and how many messages."""
    from messaging.reports import queries

    cursor, found = None, 0
    for _ in range(pages):
        page = queries.history("bench", queries.HistoryFilter(**fields, limit=200, cursor=cursor))
        found += len(page.messages)
        if page.following is None:
            return None, found
        cursor = page.following
    return cursor, found


def history(scene: Scene) -> None:
    """Page 1 and page 1,000 of the history of a million messages, by filter."""
    until = datetime.now(UTC)
    fill(until)
    try:
        for name, fields in filters(until).items():
            _measure(name, fields)
    finally:
        scene.clear()
        _drop_months(until)


def _measure(name: str, fields: dict[str, Any]) -> None:
    from messaging.reports import queries

    def page(cursor: UUID | None) -> float:
        wanted = queries.HistoryFilter(**fields, limit=PAGE, cursor=cursor)
        return timed(lambda: queries.history("bench", wanted))

    first = page(None)
    cursor, found = walk(fields, 1000 * PAGE // 200)
    if cursor is None:
        note = f"{found} in all"
    else:
        deep = page(cursor)
        note = f"page 1,000: {deep:.1f} ms, {deep / first:.1f} x"
    print(f"history, {name:<34} {first:>10.1f} ms           {note}", flush=True)


def _drop_months(until: datetime) -> None:
    """Take away the months made for this: the other sections measure without them."""
    from messaging.models import Delivery, Message
    from rme.core.db import partitions

    tables = [Message._meta.db_table, Delivery._meta.db_table]
    for month in partitions.past(tables, before=until):
        assert partitions.drop(month)
