"""The rows of accepted messages: message, content, deliveries, events and idempotency keys.

All that is accepted together is stored by one statement, which is a transaction by itself.
"""

from datetime import datetime
from typing import Any, cast

import orjson

from messaging.accept import idempotency
from messaging.accept.idempotency import CallerKey
from messaging.accept.plans import Plan, Recipient
from messaging.accept.results import BulkResult, Result
from messaging.models import (
    ContentBody,
    Delivery,
    IdempotencyKey,
    LiteralContent,
    Message,
    MessageContent,
    PushOverrides,
    stored_sender,
)
from messaging.models.statuses import EventType, Status
from messaging.webhooks.events import DerivedEvent, EventRow, event_tables
from rme.core import ids
from rme.core.db import clock, sql
from rme.tenants import cells
from rme.tenants.authentication import Caller

FIRST_EVENTS = {
    Status.SCHEDULED: EventType.SCHEDULED,
    Status.BLOCKED: EventType.BLOCKED,
    Status.FAILED: EventType.FAILED,
    Status.EXPIRED: EventType.EXPIRED,
}
"""The event that is stored with a delivery of each status; for `accepted` the delivery stands."""


class Rows:
    """The rows of calls that are stored together, all by one statement."""

    def __init__(self) -> None:
        self.now = clock.now()
        self.channels: set[str] = set()
        """The channels on which a delivery may be sent at once."""
        self.latest_schedule: datetime | None = None
        """The latest time for which a delivery is scheduled."""
        self._messages: list[sql.Row] = []
        self._contents: list[sql.Row] = []
        self._deliveries: list[sql.Row] = []
        self._events: list[EventRow] = []
        self._derived: list[DerivedEvent] = []
        self._keys: dict[idempotency.KeyScope, sql.Row] = {}

    def add(self, message_id: str, each: Plan, traceparent: str = "") -> None:
        """Add the rows of one message. The context of its trace, if it has one, is kept with its
        content: workers that send it read that anyway, and messages without one store nothing.
        """
        given, caller = each.given, each.caller
        organization_id = caller.organization.id
        template = given.template
        self._messages.append(
            {
                "id": message_id,
                "organization_id": organization_id,
                "application_id": caller.application_id,
                "category": given.category,
                "channels": each.channels if len(each.channels) > 1 else None,
                "strategy": given.strategy if given.strategy != Message.USUAL_STRATEGY else None,
                "fallback_after": given.fallback_after,
                "template": template.name if template else None,
                "language": template.language if template else None,
                "metadata": given.metadata,
                "test": caller.test,
                "created_at": self.now,
            }
        )
        variables: dict[str, dict[str, Any]] = {}
        for i, recipient in enumerate(each.recipients):
            delivery_id = ids.new_text_id() if i else message_id
            if recipient.given.variables:
                variables[delivery_id] = recipient.given.variables
            self._deliveries.append(self._delivery(delivery_id, message_id, each, recipient))
            self._add_events(organization_id, delivery_id, message_id, recipient)
            if recipient.status is Status.ACCEPTED and recipient.chosen:
                self.channels.add(recipient.chosen.channel)
        if (latest := each.latest_schedule) is not None:
            self.latest_schedule = max(latest, self.latest_schedule or latest)
        content = content_of(each, variables)
        if traceparent:
            content["traceparent"] = traceparent
        body = orjson.dumps(content)
        self._contents.append(
            {
                "id": message_id,
                "organization_id": organization_id,
                "body": orjson.Fragment(body),
                "size": len(body),
            }
        )

    def _delivery(
        self, delivery_id: str, message_id: str, each: Plan, recipient: Recipient
    ) -> sql.Row:
        chosen, error = recipient.chosen, recipient.error
        start = recipient.scheduled_for or self.now
        template = chosen.template if chosen else None
        return {
            "id": delivery_id,
            "organization_id": each.caller.organization.id,
            "message_id": message_id,
            "contact_id": recipient.given.contact_id,
            "position": recipient.position,
            "category": each.rules.name,
            "priority": each.rules.priority,
            "channels": _remaining(each, recipient),
            "channel": chosen.channel if chosen else each.channels[0],
            "address": chosen.address if chosen else None,
            "template_version_id": template.version_id if template else None,
            "provider": recipient.provider,
            "account_id": recipient.account_id,
            "status": recipient.status,
            "reason": error.code if error else None,
            "detail": error.message[:500] if error else None,
            "scheduled_for": recipient.scheduled_for,
            "due_at": start if error is None else None,
            "expires_at": start + each.rules.expires_after,
            "fence": 0,
            "tries": 0,
            "test": each.caller.test,
            "trace": recipient.trace,
            "updated_at": self.now,
            "accepted_at": self.now if error is None else None,
        }

    def _add_events(
        self, organization_id: str, delivery_id: str, message_id: str, recipient: Recipient
    ) -> None:
        if recipient.error is None:
            self._derived.append(DerivedEvent(organization_id, EventType.ACCEPTED, delivery_id))
        if kind := FIRST_EVENTS.get(recipient.status):
            self._events.append(
                EventRow(
                    organization_id,
                    message_id,
                    delivery_id,
                    kind,
                    self.now,
                    channel=recipient.chosen.channel if recipient.chosen else None,
                    provider=recipient.provider,
                    detail={"reason": recipient.error.code} if recipient.error else None,
                )
            )

    def add_key(
        self,
        caller: Caller,
        key: CallerKey,
        result: Result | BulkResult,
        latest_schedule: datetime | None,
    ) -> None:
        """Add the answer to store under a key, until 24 hours after the latest schedule."""
        scope = idempotency.scope_of(caller, key)
        self._keys[scope] = {
            "organization_id": scope.organization_id,
            "application_id": scope.application_id,
            "key": key.text,
            "digest": key.digest,
            "status": result.status_code,
            "body": result.body.decode(),
            "expires_at": max(self.now, latest_schedule or self.now) + idempotency.LIFE,
        }

    def store(self) -> None:
        """Store all rows by one statement. Raise what `cells.require_here` raises."""
        tables: sql.Tables = {
            Message: self._messages,
            MessageContent: self._contents,
            Delivery: self._deliveries,
            **event_tables(self._events, self._derived),
            # In one order everywhere, so that two bulks with the same keys cannot deadlock.
            IdempotencyKey: [self._keys[scope] for scope in sorted(self._keys)],
        }
        organization_ids = {
            row["organization_id"] for row in (*self._messages, *self._keys.values())
        }
        with cells.refusals(organization_ids):
            sql.insert(tables, check=cells.accepted_here(organization_ids))


def _remaining(each: Plan, recipient: Recipient) -> list[str] | None:
    """Return the channels still to try after the chosen one, None if there is none."""
    options = [option.channel for option in recipient.options]
    if recipient.chosen is None:
        return None
    return list(options[options.index(recipient.chosen.channel) + 1 :]) or None


def content_of(each: Plan, variables: dict[str, dict[str, Any]]) -> ContentBody:
    """Return the body of a `MessageContent`. `variables` are of each recipient, by delivery id."""
    given, default = each.given, each.sender
    body = ContentBody()
    if given.content and (texts := given.content.model_dump(exclude_none=True)):
        body["content"] = cast(LiteralContent, texts)
    if given.push and (overrides := given.push.model_dump(exclude_none=True)):
        body["push"] = cast(PushOverrides, overrides)
    sender = given.from_
    body["sender"] = stored_sender(
        default.domain if default else None,
        (sender and sender.local_part) or (default.local_part if default else None),
        (sender and sender.name) or (default.name if default else ""),
    )
    if each.record:
        body["record"] = each.record
    if given.context and given.context.variables:
        body["variables"] = given.context.variables
    if variables:
        body["recipients"] = variables
    return body
