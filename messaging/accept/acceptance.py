"""Accepting messages: from checked requests to rows in the database, for many at once.

A single send is a bulk of one. One statement, which is a transaction by itself, stores message,
content, deliveries, events and the idempotency key: all or nothing. The workers are woken after it.
That may fail: the sweeper finds the deliveries that no worker was woken for.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import orjson
from django.db import IntegrityError

from messaging.accept import idempotency
from messaging.accept.idempotency import CallerKey
from messaging.accept.planning import Plan, Recipient, plan
from messaging.accept.requests import MessageInput
from messaging.accept.results import (
    BulkResult,
    Refusal,
    Result,
    SendResult,
    StoredAnswer,
    of_plan,
)
from messaging.delivery import wakeups
from messaging.models import Delivery, IdempotencyKey, Message, MessageContent
from messaging.models.statuses import EventType, Status
from messaging.policy import organization_policy, send_limits
from messaging.webhooks.events import EventRow, event_tables
from rme.core import errors, ids
from rme.core.db import clock, sql
from rme.tenants.authentication import Caller

RECIPIENTS_LIMIT = 5000
"""The most recipients of one bulk, in all its messages."""
ATTEMPTS = 3
"""How often a call is decided again that lost its idempotency key to a concurrent call."""

FIRST_EVENTS = {
    Status.ACCEPTED: [EventType.ACCEPTED],
    Status.SCHEDULED: [EventType.ACCEPTED, EventType.SCHEDULED],
    Status.BLOCKED: [EventType.BLOCKED],
    Status.FAILED: [EventType.FAILED],
    Status.EXPIRED: [EventType.EXPIRED],
}
"""The events with which a delivery of each status begins."""


class Submission(NamedTuple):
    """One request: checked, or the error found by checking it. A bulk's items have own keys."""

    message: MessageInput | errors.ApiError
    key: CallerKey | None = None


def accept(
    caller: Caller,
    submission: Submission,
    *,
    request_id: str,
    wait: Callable[[SendResult], SendResult | Refusal] | None = None,
) -> Result:
    """Accept one message, and return its result; a refused request is a `Refusal`.

    `wait` waits for the outcome of an accepted message and returns the final result. The
    idempotency key is held meanwhile, and its stored answer becomes that result.
    """
    key = submission.key
    with idempotency.holding(caller.organization.id, caller.application_id, key) as stored:
        if key and stored:
            return idempotency.replay(stored, key)
        done = _decide_and_store(caller, [submission], request_id, unused=key is not None)
        (result,) = done.results
        if wait is None or not isinstance(result, SendResult):
            return result
        final = wait(result)
        if key and final is not result:
            idempotency.amend(caller.organization.id, caller.application_id, key, final)
        return final


def accept_bulk(
    caller: Caller, submissions: Sequence[Submission], *, key: CallerKey | None, request_id: str
) -> BulkResult | StoredAnswer:
    """Accept up to 500 messages; one bad item fails no other. `key` covers the whole call."""
    with idempotency.holding(caller.organization.id, caller.application_id, key) as stored:
        if key and stored:
            return idempotency.replay(stored, key)
        return _decide_and_store(caller, submissions, request_id, bulk_key=key)


def _decide_and_store(
    caller: Caller,
    submissions: Sequence[Submission],
    request_id: str,
    bulk_key: CallerKey | None = None,
    unused: bool = False,
) -> BulkResult:
    """Decide requests and store them; again from the start if another call stored one of the keys.

    `unused`: the keys are held and were not used before. Raises IdempotencyInProgress if keys are
    lost three times.
    """
    organization_id = caller.organization.id
    keys = {submission.key.text for submission in submissions if submission.key}
    for attempt in range(ATTEMPTS):
        known = unused and attempt == 0
        stored = {} if known else idempotency.find(organization_id, caller.application_id, keys)
        rows = Rows(caller)
        result = BulkResult(_decide(caller, submissions, stored, request_id, rows))
        if bulk_key:
            rows.add_key(bulk_key, result, rows.latest_schedule)
        try:
            rows.store()
        except IntegrityError:
            idempotency.purge()  # the key may have expired; if it is live, it is found next time
            continue
        wakeups.wake(rows.channels)
        return result
    raise errors.IdempotencyInProgress(headers={"Retry-After": "1"})


def _decide(
    caller: Caller,
    submissions: Sequence[Submission],
    stored: Mapping[str, StoredAnswer],
    request_id: str,
    rows: "Rows",
) -> list[Result]:
    """Return the result of each request, in order, and add to `rows` what is to be stored.

    `stored` are the answers by idempotency key.
    """
    results: dict[int, Result] = {}
    first_of: dict[str, int] = {}  # the first item of the bulk with each key
    fresh: dict[int, MessageInput] = {}
    for index, submission in enumerate(submissions):
        key = submission.key
        try:
            if isinstance(submission.message, errors.ApiError):
                raise submission.message
            if key and key.text in stored:
                results[index] = idempotency.replay(stored[key.text], key)
            elif key and key.text in first_of:
                first_key = submissions[first_of[key.text]].key
                if first_key and first_key.digest != key.digest:
                    raise errors.IdempotencyKeyReused
            else:
                fresh[index] = submission.message
                if key:
                    first_of[key.text] = index
        except errors.ApiError as error:
            results[index] = Refusal(error, request_id)
    policy = organization_policy.of(caller.organization.id)
    send_limits.require(caller.organization.id, policy.sending, len(fresh), test=caller.test)
    plans = plan(caller, policy, list(fresh.values()))
    for index, each in zip(fresh, plans, strict=True):
        results[index] = _add_plan(rows, each, submissions[index].key, request_id)
    for index, submission in enumerate(submissions):
        if index not in results and submission.key:  # the same key twice in one bulk
            results[index] = results[first_of[submission.key.text]]
    return [results[index] for index in range(len(submissions))]


def _add_plan(rows: "Rows", each: Plan, key: CallerKey | None, request_id: str) -> Result:
    """Return the result of a plan, and add the rows of its message and its key."""
    if each.refusal:
        return Refusal(each.refusal, request_id)
    message_id = ids.new_text_id()
    rows.add(message_id, each)
    result = of_plan(each, message_id, request_id)
    if key and result.status_code < 500:
        rows.add_key(key, result, each.latest_schedule)
    return result


class Rows:
    """The rows that one call stores, all by one statement."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.now = clock.now()
        self.channels: set[str] = set()
        """The channels on which a delivery may be sent at once."""
        self.latest_schedule: datetime | None = None
        """The latest time for which a delivery is scheduled."""
        self._messages: list[sql.Row] = []
        self._contents: list[sql.Row] = []
        self._deliveries: list[sql.Row] = []
        self._events: list[EventRow] = []
        self._keys: dict[str, sql.Row] = {}

    def add(self, message_id: str, each: Plan) -> None:
        """Add the rows of one message."""
        given, organization_id = each.given, self.caller.organization.id
        template = given.template
        self._messages.append(
            {
                "id": message_id,
                "organization_id": organization_id,
                "application_id": self.caller.application_id,
                "category": given.category,
                "channels": each.channels,
                "strategy": given.strategy,
                "fallback_after": given.fallback_after,
                "template": template.name if template else None,
                "language": template.language if template else None,
                "metadata": given.metadata,
                "test": self.caller.test,
                "created_at": self.now,
            }
        )
        variables: dict[str, Any] = {}
        for recipient in each.recipients:
            delivery_id = ids.new_text_id()
            if recipient.given.variables:
                variables[delivery_id] = recipient.given.variables
            self._deliveries.append(self._delivery(delivery_id, message_id, each, recipient))
            self._add_events(delivery_id, message_id, recipient)
            if recipient.status is Status.ACCEPTED and recipient.chosen:
                self.channels.add(recipient.chosen.channel)
        if (latest := each.latest_schedule) is not None:
            self.latest_schedule = max(latest, self.latest_schedule or latest)
        body = orjson.dumps(content_of(each, variables))
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
            "organization_id": self.caller.organization.id,
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
            "test": self.caller.test,
            "trace": recipient.trace,
            "updated_at": self.now,
        }

    def _add_events(self, delivery_id: str, message_id: str, recipient: Recipient) -> None:
        for kind in FIRST_EVENTS[recipient.status]:
            self._events.append(
                EventRow(
                    self.caller.organization.id,
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
        self, key: CallerKey, result: Result | BulkResult, latest_schedule: datetime | None
    ) -> None:
        """Add the answer to store under a key, until 24 hours after the latest schedule."""
        self._keys[key.text] = {
            "organization_id": self.caller.organization.id,
            "application_id": self.caller.application_id,
            "key": key.text,
            "digest": key.digest,
            "status": result.status_code,
            "body": result.body.decode(),
            "expires_at": max(self.now, latest_schedule or self.now) + idempotency.LIFE,
        }

    def store(self) -> None:
        """Store all rows by one statement."""
        sql.insert(
            {
                Message: self._messages,
                MessageContent: self._contents,
                Delivery: self._deliveries,
                **event_tables(self._events),
                # In one order everywhere, so that two bulks with the same keys cannot deadlock.
                IdempotencyKey: [self._keys[text] for text in sorted(self._keys)],
            }
        )


def _remaining(each: Plan, recipient: Recipient) -> list[str]:
    """Return the channels still to try after the chosen one."""
    options = [option.channel for option in recipient.options]
    if recipient.chosen is None:
        return []
    return list(options[options.index(recipient.chosen.channel) + 1 :])


def content_of(each: Plan, variables: dict[str, object]) -> dict[str, object]:
    """Return the body of a `MessageContent`: what rendering needs in addition to the template.

    `variables` are those of each recipient, by delivery id.
    """
    given = each.given
    sender = given.from_
    parts = {
        "content": given.content.model_dump(exclude_none=True) if given.content else None,
        "push": given.push.model_dump(exclude_none=True) if given.push else None,
        "sender": {
            "domain": each.sender.domain if each.sender else None,
            "local_part": (sender and sender.local_part)
            or (each.sender.local_part if each.sender else None),
            "name": (sender and sender.name) or (each.sender.name if each.sender else ""),
        },
        "record": each.record,
        "variables": given.context.variables if given.context else None,
        "recipients": variables,
    }
    return {name: part for name, part in parts.items() if part}
