"""Accepted messages: message, content, deliveries, events and idempotency keys.

One statement stores everything that is accepted together. It is a transaction by itself.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import orjson

from messaging.domain.contents import ContentBody
from messaging.domain.statuses import EventType, Status
from messaging.models import Delivery, IdempotencyKey, Message, MessageContent
from messaging.store.encodings import DETAIL_LIMIT, USUAL_STRATEGY, stored_body
from messaging.store.events import DerivedEvent, EventRow, event_inserts
from rme.core import ids
from rme.core.db import sql
from rme.core.placement import places

FIRST_EVENTS = {
    Status.SCHEDULED: EventType.SCHEDULED,
    Status.BLOCKED: EventType.BLOCKED,
    Status.FAILED: EventType.FAILED,
    Status.EXPIRED: EventType.EXPIRED,
}
"""The event that is stored with a delivery of each status; for `accepted` the delivery stands."""


class AcceptedDelivery(NamedTuple):
    """One recipient of an accepted message, refused or not."""

    id: str
    """From `new_delivery_id`."""
    contact_id: str
    position: int
    status: Status
    channel: str
    next_channels: Sequence[str]
    """The channels to fall back to."""
    address: str | None
    template_version_id: int | None
    provider: str | None
    account_id: int | None
    scheduled_for: datetime | None
    reason: str | None
    """The code of the error of a refused recipient."""
    detail: str | None
    trace: list[list[str | None]] | None


class AcceptedMessage(NamedTuple):
    """A message, its content and its recipients."""

    id: str
    organization_id: str
    application_id: int
    category: str
    priority: int
    channels: Sequence[str]
    strategy: str
    fallback_after: int | None
    template: str | None
    language: str | None
    metadata: Mapping[str, str] | None
    is_test: bool
    expires_after: timedelta
    content: ContentBody
    deliveries: Sequence[AcceptedDelivery]


class KeyedAnswer(NamedTuple):
    """The answer to repeat for an idempotency key."""

    organization_id: str
    application_id: int
    key: str
    digest: str
    status: int
    body: str
    expires_at: datetime


def new_delivery_id(message_id: str, position: int) -> str:
    """Return the id of a new delivery: that of the message for its first recipient."""
    return ids.new_text_id() if position else message_id


def store(
    messages: Sequence[AcceptedMessage], answers: Sequence[KeyedAnswer], now: datetime
) -> None:
    """Store messages and answers by one statement.

    Raises IntegrityError if a key is taken, and what `organizations.require_served` raises.
    """
    contents = [orjson.dumps(stored_body(message.content)) for message in messages]
    tables: sql.Tables = {
        Message: [_message(message, now) for message in messages],
        MessageContent: [
            {
                "id": message.id,
                "organization_id": message.organization_id,
                "body": orjson.Fragment(body),
                "size": len(body),
            }
            for message, body in zip(messages, contents, strict=True)
        ],
        Delivery: [
            _delivery(message, delivery, now)
            for message in messages
            for delivery in message.deliveries
        ],
        # In one order everywhere, so that two bulks with the same keys cannot deadlock.
        IdempotencyKey: [answer._asdict() for answer in sorted(answers)],
    }
    organization_ids = {message.organization_id for message in messages}
    organization_ids |= {answer.organization_id for answer in answers}
    events = event_inserts(_events(messages, now), _derived_events(messages))
    with places().writing(organization_ids) as check:
        sql.insert(tables, {**events, "check": check})


def _message(message: AcceptedMessage, now: datetime) -> sql.Row:
    return {
        "id": message.id,
        "organization_id": message.organization_id,
        "application_id": message.application_id,
        "category": message.category,
        "channels": message.channels if len(message.channels) > 1 else None,
        "strategy": None if message.strategy == USUAL_STRATEGY else message.strategy,
        "fallback_after": message.fallback_after,
        "template": message.template,
        "language": message.language,
        "metadata": message.metadata,
        "test": message.is_test,
        "created_at": now,
    }


def _delivery(message: AcceptedMessage, delivery: AcceptedDelivery, now: datetime) -> sql.Row:
    start = delivery.scheduled_for or now
    is_refused = delivery.reason is not None
    return {
        "id": delivery.id,
        "organization_id": message.organization_id,
        "message_id": message.id,
        "contact_id": delivery.contact_id,
        "position": delivery.position,
        "category": message.category,
        "priority": message.priority,
        "channels": delivery.next_channels or None,
        "channel": delivery.channel,
        "address": delivery.address,
        "template_version_id": delivery.template_version_id,
        "provider": delivery.provider,
        "account_id": delivery.account_id,
        "status": delivery.status,
        "reason": delivery.reason,
        "detail": delivery.detail[:DETAIL_LIMIT] if delivery.detail else None,
        "scheduled_for": delivery.scheduled_for,
        "due_at": None if is_refused else start,
        "expires_at": start + message.expires_after,
        "fence": 0,
        "tries": 0,
        "test": message.is_test,
        "trace": delivery.trace,
        "updated_at": now,
        "accepted_at": None if is_refused else now,
    }


def _events(messages: Sequence[AcceptedMessage], now: datetime) -> list[EventRow]:
    return [
        EventRow(
            message.organization_id,
            message.id,
            delivery.id,
            FIRST_EVENTS[delivery.status],
            now,
            channel=delivery.channel if delivery.reason is None else None,
            provider=delivery.provider,
            detail={"reason": delivery.reason} if delivery.reason else None,
            test=message.is_test,
        )
        for message in messages
        for delivery in message.deliveries
        if delivery.status in FIRST_EVENTS
    ]


def _derived_events(messages: Sequence[AcceptedMessage]) -> list[DerivedEvent]:
    return [
        DerivedEvent(message.organization_id, EventType.ACCEPTED, delivery.id, message.is_test)
        for message in messages
        for delivery in message.deliveries
        if delivery.reason is None
    ]
