"""Events: this is the only place that writes them, with the webhook deliveries that they cause."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from messaging.domain.statuses import EventType
from messaging.models import Event
from messaging.store.encodings import storable
from messaging.store.webhooks import queue
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
    test: bool = field(kw_only=True, metadata=sql.NOT_STORED)
    """Whether a TEST application sent the message, so that endpoints of TEST get the event, too."""
    id: str = field(default_factory=ids.new_text_id)


class DeliveryEvent(NamedTuple):
    """An event of a delivery that a worker has."""

    type: EventType
    provider: str | None = None
    reason: str | None = None
    entry: str | None = None
    """The consent entry or suppression because of which a gate stopped the delivery."""
    attempt_id: str | None = None
    """Of SENT: the accepted attempt, unless the provider's answer was another."""

    @property
    def detail(self) -> dict[str, str] | None:
        """Return what the event records beyond its type."""
        if not (self.reason or self.entry):
            return None
        texts = {"reason": self.reason, "entry": self.entry}
        return {name: storable(text) for name, text in texts.items() if text}


class DeliveryEvents(NamedTuple):
    """The new events of a delivery, in their order."""

    organization_id: str
    message_id: str
    delivery_id: str
    channel: str
    test: bool
    events: Sequence[DeliveryEvent]


class DerivedEvent(NamedTuple):
    """An event for which another row stands (`messaging.store.event_view`)."""

    organization_id: str
    type: EventType
    id: str
    test: bool


def rows_of(
    deliveries: Sequence[DeliveryEvents], now: datetime
) -> tuple[list[EventRow], list[DerivedEvent]]:
    """Return the rows of new events, and the events for which an attempt stands."""
    rows, derived = [], []
    for organization_id, message_id, delivery_id, channel, test, events in deliveries:
        for position, event in enumerate(events):
            # An attempt's id is older than those of events before it, which would follow it.
            if event.attempt_id and position == 0:
                derived.append(DerivedEvent(organization_id, event.type, event.attempt_id, test))
                continue
            row = EventRow(
                organization_id,
                message_id,
                delivery_id,
                event.type,
                now,
                channel=channel,
                provider=event.provider,
                detail=event.detail,
                test=test,
            )
            rows.append(row)
    return rows, derived


def write_events(rows: Sequence[EventRow]) -> None:
    """Write events and their webhook deliveries, by one statement."""
    sql.execute(event_inserts(rows))


def event_steps(
    rows: Sequence[EventRow], transitions: str, derived: Sequence[DerivedEvent], attempts: str
) -> sql.Steps:
    """Return the steps that write the events of those deliveries whose ids another step returned.

    `transitions` is the name of that step, and `attempts` of the one that returned the ids of
    attempts that stand for an event.
    """
    return {
        **_queueing_steps(
            "derived_webhook_deliveries",
            derived,
            f"queued.event_id = ANY(ARRAY(SELECT id FROM {attempts}))",
        ),
        "events": sql.insert_step(
            Event,
            rows,
            f"WHERE delivery_id = ANY(ARRAY(SELECT id FROM {transitions})) RETURNING id",
        ),
        **_queueing_steps(
            "webhook_deliveries", rows, "queued.event_id = ANY(ARRAY(SELECT id FROM events))"
        ),
    }


def event_inserts(rows: Sequence[EventRow], derived: Sequence[DerivedEvent] = ()) -> sql.Steps:
    """Return the steps that write events and their webhook deliveries, derived events first."""
    return {
        "events": sql.insert_step(Event, rows),
        **_queueing_steps("webhook_deliveries", [*derived, *rows], "true"),
    }


def _queueing_steps(
    name: str, rows: Sequence[EventRow | DerivedEvent], condition: str
) -> Mapping[str, sql.Step | None]:
    """Return the steps that queue events: those of live messages for live endpoints alone."""
    live: list[sql.Row] = []
    of_test: list[sql.Row] = []
    for row in rows:
        (of_test if row.test else live).append(
            {
                "organization_id": row.organization_id,
                "event_id": row.id,
                "type": "message." + row.type,
            }
        )
    return {
        name: queue.queueing_step(live, f"NOT enabled.test AND {condition}"),
        f"test_{name}": queue.queueing_step(of_test, condition),
    }
