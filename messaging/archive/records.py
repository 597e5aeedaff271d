"""Messages with all their rows: read from PostgreSQL, and without what is erased."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import NamedTuple, TypeVar
from uuid import UUID

from django.db import models

from messaging.models import Attempt, Delivery, Event, Message
from messaging.store.archived import ArchivedMessage
from messaging.store.encodings import message_id_of
from messaging.store.lookups import of_messages
from messaging.store.retention import ended
from rme.core import ids

Row = TypeVar("Row", bound=models.Model)


class RowVersions(NamedTuple):
    """The number of rows of each table and the sum of their versions (`xmin`).

    Any change of a row, any new row and any deleted row changes it.
    """

    messages: tuple[int, int]
    deliveries: tuple[int, int]
    attempts: tuple[int, int]
    events: tuple[int, int]


def load(keys: Sequence[UUID]) -> tuple[list[ArchivedMessage], RowVersions]:
    """Read messages from PostgreSQL, by id; four queries."""
    since = ids.earliest_concurrent(min(keys))
    messages = _read(Message.objects.filter(pk__in=keys).order_by("pk"))
    deliveries = _read(
        Delivery.objects.filter(of_messages(keys), pk__gte=since).order_by("position", "pk")
    )
    attempts = _read(
        Attempt.objects.filter(
            pk__gte=since, delivery_id__in=[row.pk for row in deliveries]
        ).order_by("pk")
    )
    events = _read(Event.objects.filter(pk__gte=since, message_id__in=keys).order_by("at", "pk"))
    versions = RowVersions(*(_versions(each) for each in (messages, deliveries, attempts, events)))
    deliveries_of, attempts_of, events_of = (
        _by_message(deliveries),
        _by_message(attempts),
        _by_message(events),
    )
    return [
        ArchivedMessage(row, deliveries_of[row.pk], attempts_of[row.pk], events_of[row.pk])
        for row in messages
    ], versions


def _read(rows: models.QuerySet[Row]) -> list[Row]:
    return list(rows.annotate(row_version=ended.row_version(rows.model)))


def _versions(rows: Sequence[models.Model]) -> tuple[int, int]:
    return len(rows), sum(row.__dict__["row_version"] for row in rows)


def _by_message(rows: Sequence[Row]) -> dict[UUID, list[Row]]:
    rows_by_message: dict[UUID, list[Row]] = defaultdict(list)
    for row in rows:
        key = message_id_of(row) if isinstance(row, Attempt) else row.__dict__["message_id"]
        rows_by_message[key].append(row)
    return rows_by_message


def erase(record: ArchivedMessage, contacts: Collection[str]) -> bool:
    """Erase what a message holds of people, as `messaging.consent.erasure` does in PostgreSQL.

    Return whether it is to one of them.
    """
    their_deliveries = {row.pk: row for row in record.deliveries if row.contact_id in contacts}
    if len(their_deliveries) == len(record.deliveries):  # no other recipient
        record.message.metadata = None
    for delivery in their_deliveries.values():
        delivery.address = delivery.detail = delivery.trace = delivery.due_at = None
    for attempt in record.attempts:
        if attempt.delivery_id in their_deliveries:
            attempt.reason = None
    for event in record.events:
        if event.delivery_id in their_deliveries:
            event.detail = None
    return bool(their_deliveries)
