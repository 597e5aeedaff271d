"""The one place where events are written: together with the webhook deliveries that they cause."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from messaging.models import Event, WebhookDelivery
from messaging.models.statuses import EventType
from messaging.webhooks import endpoints
from rme.core import ids
from rme.core.db import sql


# Without slots: orjson writes such a dataclass as quickly as a dict, one with slots in four times
# that time.
@dataclass
class EventRow:
    """A row of the events: what happened to a delivery."""

    organization_id: str
    message_id: UUID | str
    delivery_id: UUID | str
    type: EventType
    at: datetime
    channel: str | None
    provider: str | None = None
    """The name of the provider account."""
    detail: Mapping[str, object] | None = None
    id: str = field(default_factory=ids.new_text_id)


class DerivedEvent(NamedTuple):
    """An event for which another row stands (`messaging.models.derived_events`)."""

    organization_id: str
    type: EventType
    id: str


def write_events(rows: Sequence[EventRow]) -> None:
    """Write events and their webhook deliveries, by one statement."""
    sql.insert(event_tables(rows))


def event_steps(
    rows: Sequence[EventRow], transitions: str, derived: Sequence[DerivedEvent], attempts: str
) -> sql.Steps:
    """Return the steps that write the events of those deliveries whose ids another step returned.

    `transitions` is the name of that step, and `attempts` of the one that returned the ids of
    attempts that stand for an event.
    """
    return {
        "derived_webhook_deliveries": sql.insert_step(
            WebhookDelivery,
            _webhook_deliveries(derived),
            f"WHERE event_id = ANY(ARRAY(SELECT id FROM {attempts}))",
        ),
        "events": sql.insert_step(
            Event,
            rows,
            f"WHERE delivery_id = ANY(ARRAY(SELECT id FROM {transitions})) RETURNING id",
        ),
        "webhook_deliveries": sql.insert_step(
            WebhookDelivery,
            _webhook_deliveries(rows),
            "WHERE event_id = ANY(ARRAY(SELECT id FROM events))",
        ),
    }


def event_tables(rows: Sequence[EventRow], derived: Sequence[DerivedEvent] = ()) -> sql.Tables:
    """Return events and the webhook deliveries, for `sql.insert`: of derived events first."""
    return {Event: rows, WebhookDelivery: _webhook_deliveries([*derived, *rows])}


def _webhook_deliveries(rows: Sequence[EventRow | DerivedEvent]) -> list[sql.Row]:
    subscribed = endpoints.subscriptions({row.organization_id for row in rows}) if rows else {}
    if not any(subscribed.values()):
        return []
    return [
        {
            "organization_id": row.organization_id,
            "endpoint_id": each.endpoint_id,
            "event_id": row.id,
            "type": kind,
        }
        for row in rows
        for each in subscribed[row.organization_id]
        if each.includes(kind := f"message.{row.type}")
    ]
