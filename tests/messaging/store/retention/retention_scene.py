"""Messages and partitions of 2030 and 2031, in tables whose past is dropped."""

from datetime import UTC, datetime, timedelta
from time import monotonic
from uuid import UUID

from django.db import connection

from messaging.models import PARTITIONED, Attempt, Delivery, Event, Message, MessageContent
from rme.core import ids
from rme.core.db import partitions, sql
from rme.core.db.periods import Period

NOW = datetime(2031, 6, 15, tzinfo=UTC)
TABLES = [model._meta.db_table for model in PARTITIONED]
CONTENTS = MessageContent._meta.db_table


def query(statement, *values):
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []


def create(tables, now, period):
    """Create a partition of each table; a busy machine may need several tries."""
    until = monotonic() + 60
    while partitions.missing(tables, now=now, period=period, ahead=0):
        partitions.create_ahead(tables, now=now, period=period, ahead=0)
        assert monotonic() < until


def at(*date):
    return datetime(*date, 12, tzinfo=UTC)


def store(moment, status="DELIVERED", *, moved=None, due_at=None, deliveries=1, number=0):
    """Store a message as it was accepted at a moment, with all that belongs to it."""
    base = ids.at_least(moment).int + 1000 * number
    message_id = UUID(int=base)
    own = {"organization_id": "acme"}
    rows = [
        {
            "id": UUID(int=base + 1 + i),
            **own,
            "message_id": message_id,
            "contact_id": f"c{i}",
            "position": i,
            "category": "MARKETING",
            "priority": 1,
            "channels": [],
            "channel": "EMAIL",
            "status": status if i == 0 else "DELIVERED",
            "due_at": due_at if i == 0 else None,
            "expires_at": moment + timedelta(days=1),
            "fence": 0,
            "tries": 0,
            "test": False,
            "updated_at": moved or moment,
        }
        for i in range(deliveries)
    ]
    sql.insert(
        {
            Message: [
                {"id": message_id, **own, "category": "MARKETING", "channels": ["EMAIL"],
                 "strategy": "FIRST_REACHABLE", "test": False, "created_at": moment}
            ],
            MessageContent: [{"id": message_id, **own, "body": {"content": {"text": "x"}}}],
            Delivery: rows,
            Attempt: [
                {"id": UUID(int=base + 500), **own, "message_id": message_id,
                 "delivery_id": rows[0]["id"], "fence": 1, "channel": "EMAIL",
                 "provider": "simulator", "started_at": moment}
            ],
            Event: [
                {"id": UUID(int=base + 600), **own, "message_id": message_id,
                 "delivery_id": rows[0]["id"], "type": "accepted", "at": moment}
            ],
        }
    )  # fmt: skip
    return message_id


def kept(model):
    return set(model.objects.values_list("pk", flat=True))


def left():
    """Return how many rows each table has."""
    return {model.__name__: model.objects.count() for model in PARTITIONED}


def whole(count):
    return dict.fromkeys((model.__name__ for model in PARTITIONED), count)


def months_of(table):
    found = partitions.past([table], before=datetime(2032, 1, 1, tzinfo=UTC))
    return [month.name.removeprefix(f"{table}_") for month in found if month.start.year >= 2030]


def kept_messages(model):
    return set(model.objects.values_list("message_id", flat=True))


def days(*moments):
    """Have the contents of some days in partitions of their own, as they are by default."""
    month = partitions.Partition(CONTENTS, datetime(2031, 5, 1, tzinfo=UTC), attached=True)
    assert partitions.drop(month)
    for moment in moments:
        create([CONTENTS], moment, Period.DAY)


def names_of_contents():
    found = partitions.past([CONTENTS], before=datetime(2032, 1, 1, tzinfo=UTC))
    return [each.name.removeprefix(f"{CONTENTS}_") for each in found if each.start.year >= 2031]
