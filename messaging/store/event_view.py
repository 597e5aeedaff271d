"""The events of messages: those that are stored, and those for which another row stands.

Nearly every delivery is accepted and sent, so these two events have no rows of their own:

- `accepted`: the delivery itself, if it has `accepted_at`. The event's id is the delivery's.
- `sent`: the attempt that has `sent_at`. The event's id is the attempt's.

Both are stored instead where a row cannot tell them: deliveries of former releases, an account
before that failed, a receipt for an attempt without an outcome. All reading of events starts
here; `messaging.store.events` writes them.
"""

from collections.abc import Collection, Sequence
from uuid import UUID

from messaging.domain.statuses import EventType
from messaging.models import Attempt, Delivery, Event
from messaging.store.encodings import message_id_of, message_of_attempt
from rme.core import ids


def select(stored: str, accepted: str, sent: str) -> str:
    """Return the SELECT of events, for a FROM: of the stored ones, deliveries and attempts that
    meet conditions, in which these tables have the names of the arguments.
    """
    return f"""(
  SELECT id, organization_id, message_id, delivery_id, type, at, channel, provider, detail
  FROM {Event._meta.db_table} stored WHERE {stored}
  UNION ALL
  SELECT id, organization_id, message_id, id, '{EventType.ACCEPTED}', accepted_at,
    coalesce(accepted_channel, channel), coalesce(accepted_provider, provider), NULL
  FROM {Delivery._meta.db_table} accepted WHERE accepted_at IS NOT NULL AND {accepted}
  UNION ALL
  SELECT id, organization_id, {message_of_attempt("sent")}, delivery_id, '{EventType.SENT}',
    sent_at, channel, provider, NULL
  FROM {Attempt._meta.db_table} sent WHERE sent_at IS NOT NULL AND {sent})"""


def of_rows(
    deliveries: Sequence[Delivery], attempts: Sequence[Attempt], stored: Sequence[Event]
) -> list[Event]:
    """Return the events of rows that are not in a table, in the order of time: as `select` does."""
    accepted = [
        Event(
            id=row.pk,
            organization_id=row.organization_id,
            message_id=row.message_id,
            delivery_id=row.pk,
            type=EventType.ACCEPTED,
            at=row.accepted_at,
            channel=row.accepted_channel or row.channel,
            provider=row.accepted_provider or row.provider,
        )
        for row in deliveries
        if row.accepted_at
    ]
    sent = [
        Event(
            id=row.pk,
            organization_id=row.organization_id,
            message_id=message_id_of(row),
            delivery_id=row.delivery_id,
            type=EventType.SENT,
            at=row.sent_at,
            channel=row.channel,
            provider=row.provider,
        )
        for row in attempts
        if row.sent_at
    ]
    return sorted([*stored, *accepted, *sent], key=lambda row: (row.at, row.pk))


# Plan: event_of_message in the partitions since the message; the primary key of deliveries, and
# attempt_of_delivery in all partitions.
# Run by: of_message, for reports.trace
OF_MESSAGE = f"""SELECT * FROM {
    select(
        "stored.message_id = %(message)s AND stored.id >= %(since)s",
        "accepted.id = ANY(%(deliveries)s)",
        "sent.delivery_id = ANY(%(deliveries)s)",
    )
} events ORDER BY at, id"""


def of_message(message_id: UUID, deliveries: Collection[UUID]) -> list[Event]:
    """Return the events of a message, which has these deliveries, in the order of time."""
    parameters = {
        "message": message_id,
        "since": ids.earliest_concurrent(message_id),
        "deliveries": list(deliveries),
    }
    return list(Event.objects.raw(OF_MESSAGE, parameters))
