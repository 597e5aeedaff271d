"""The rows and answers of one accepting call, while they are made."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from messaging import idempotency, policy, send_limits
from messaging.events import with_notices
from messaging.idempotency import Key
from messaging.models import Delivery, IdempotencyKey, Message, MessageContent
from messaging.planning import plan
from messaging.plans import Plan, Recipient
from messaging.schemas.messages import MessageInput
from messaging.states import EventType, Status, aggregate
from rme.core import clock, errors, ids, sql
from rme.core.clock import iso
from rme.tenants.authentication import Caller


@dataclass(frozen=True, slots=True)
class Submission:
    """One request: checked, or with what is wrong with it. The key is the item's own, in a bulk."""

    message: MessageInput | errors.ApiError
    key: Key | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to one request. `body` is JSON."""

    status: int
    body: bytes
    replayed: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


def bulk_body(results: Sequence[Result]) -> bytes:
    """Write the answer to a bulk from its items' answers."""
    taken = sum(result.status < 300 for result in results)
    items = [{"index": i, **orjson.loads(result.body)} for i, result in enumerate(results)]
    return orjson.dumps({"accepted": taken, "rejected": len(results) - taken, "results": items})


class Batch:
    """The rows and answers of one call, while they are made."""

    def __init__(self, caller: Caller, request_id: str) -> None:
        self.caller = caller
        self.request_id = request_id
        self.now = clock.now()
        self.channels: set[str] = set()
        self.messages: list[sql.Row] = []
        self.contents: list[sql.Row] = []
        self.deliveries: list[sql.Row] = []
        self.events: list[sql.Row] = []
        self.keys: dict[str, sql.Row] = {}

    def run(self, submissions: Sequence[Submission]) -> list[Result]:
        """Decide all requests and give their answers in order."""
        known = idempotency.find(
            self.caller.organization.id,
            self.caller.application_id,
            {s.key.text for s in submissions if s.key},
        )
        results: dict[int, Result] = {}
        first_of: dict[str, int] = {}
        fresh: list[int] = []
        for index, submission in enumerate(submissions):
            key = submission.key
            try:
                if isinstance(submission.message, errors.ApiError):
                    raise submission.message
                if key and key.text in known:
                    answer = known[key.text].replay(key)
                    results[index] = Result(answer.status, answer.body, replayed=True)
                elif key and key.text in first_of:
                    same = submissions[first_of[key.text]].key
                    if same and same.digest != key.digest:
                        raise errors.IdempotencyKeyReused
                else:
                    fresh.append(index)
                    if key:
                        first_of[key.text] = index
            except errors.ApiError as error:
                results[index] = self.refused(error)
        rules = policy.of(self.caller.organization.id)
        send_limits.require(
            self.caller.organization.id, rules.sending, len(fresh), test=self.caller.test
        )
        plans = plan(
            self.caller,
            rules,
            [submissions[index].message for index in fresh],  # type: ignore[misc]
        )
        for index, each in zip(fresh, plans, strict=True):
            results[index] = self.answer(each, submissions[index].key)
        for index, submission in enumerate(submissions):
            if index not in results and submission.key:  # the same key twice in one bulk
                first = results[first_of[submission.key.text]]
                results[index] = Result(first.status, first.body, replayed=True)
        return [results[index] for index in range(len(submissions))]

    def refused(self, error: errors.ApiError) -> Result:
        body = orjson.dumps({"error": error.as_json(self.request_id)})
        return Result(error.status, body, headers=error.headers)

    def answer(self, each: Plan, key: Key | None) -> Result:
        """Make the rows and the answer of one request."""
        alone = len(each.recipients) == 1
        error = each.error
        if error is None and alone:
            error = each.recipients[0].error
            if isinstance(error, errors.InvalidPayload | errors.NotFound):
                return self.refused(error)  # never understood: it leaves no row
        if each.error is not None:
            return self.refused(each.error)
        message_id = ids.new_text_id()
        self._add_rows(message_id, each)
        if any(recipient.error is None for recipient in each.recipients):
            result = Result(202, orjson.dumps(self._send_result(message_id, each)))
        else:
            first = next(r.error for r in each.recipients if r.error is not None)
            first.message_id = message_id
            result = self.refused(first)
        if key and result.status < 500:
            latest = max(
                (r.scheduled_for for r in each.recipients if r.scheduled_for), default=None
            )
            self.keys[key.text] = self._key_row(key, result, latest)
        return result

    def _send_result(self, message_id: str, each: Plan) -> dict[str, Any]:
        shown = [recipient_of(r, message_id, self.request_id) for r in each.recipients]
        if len(shown) == 1:
            only = shown[0]
            return {"messageId": message_id} | {name: only[name] for name in _SEND_RESULT}
        going = [row for row in shown if row["error"] is None]
        times = sorted(row["scheduledFor"] for row in going if row["scheduledFor"])
        return {
            "messageId": message_id,
            "status": aggregate(recipient.status for recipient in each.recipients),
            "resolvedChannel": _common(row["resolvedChannel"] for row in going),
            "provider": _common(row["provider"] for row in going),
            "scheduledFor": times[0] if times else None,
            "recipients": shown,
        }

    def _add_rows(self, message_id: str, each: Plan) -> None:
        given, organization_id = each.given, self.caller.organization.id
        template = given.template
        self.messages.append(
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
            self.deliveries.append(self._delivery(delivery_id, message_id, each, recipient))
            self._add_events(delivery_id, message_id, recipient)
            if recipient.status is Status.ACCEPTED and recipient.chosen:
                self.channels.add(recipient.chosen.channel)
        self.contents.append(
            {
                "id": message_id,
                "organization_id": organization_id,
                "body": content_of(each, variables),
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
        kinds = {
            Status.ACCEPTED: [EventType.ACCEPTED],
            Status.SCHEDULED: [EventType.ACCEPTED, EventType.SCHEDULED],
            Status.BLOCKED: [EventType.BLOCKED],
            Status.FAILED: [EventType.FAILED],
            Status.EXPIRED: [EventType.EXPIRED],
        }[recipient.status]
        for kind in kinds:
            self.events.append(
                {
                    "id": ids.new_text_id(),
                    "organization_id": self.caller.organization.id,
                    "message_id": message_id,
                    "delivery_id": delivery_id,
                    "type": kind,
                    "at": self.now,
                    "channel": recipient.chosen.channel if recipient.chosen else None,
                    "provider": recipient.provider,
                    "detail": {"reason": recipient.error.code} if recipient.error else None,
                }
            )

    def _key_row(self, key: Key, result: Result, latest: datetime | None) -> sql.Row:
        return {
            "organization_id": self.caller.organization.id,
            "application_id": self.caller.application_id,
            "key": key.text,
            "digest": key.digest,
            "status": result.status,
            "body": result.body.decode(),
            "expires_at": max(self.now, latest or self.now) + idempotency.LIFE,
        }

    def store(self, results: Sequence[Result], envelope: Key | None) -> None:
        """Store all rows by one statement."""
        if envelope:
            latest = [row["scheduled_for"] for row in self.deliveries if row["scheduled_for"]]
            whole = Result(202, bulk_body(results))
            self.keys[envelope.text] = self._key_row(envelope, whole, max(latest, default=None))
        sql.insert(
            {
                Message: self.messages,
                MessageContent: self.contents,
                Delivery: self.deliveries,
                **with_notices(self.events),
                # In one order everywhere, so that two bulks with the same keys cannot deadlock.
                IdempotencyKey: [self.keys[text] for text in sorted(self.keys)],
            }
        )


_SEND_RESULT = ("status", "resolvedChannel", "provider", "scheduledFor")


def recipient_of(recipient: Recipient, message_id: str | None, request_id: str) -> dict[str, Any]:
    """Give one recipient's part of the answer."""
    if recipient.error:
        recipient.error.message_id = message_id
    return {
        "contactId": recipient.given.contact_id,
        "status": recipient.status,
        "resolvedChannel": recipient.chosen.channel if recipient.chosen else None,
        "provider": recipient.provider,
        "scheduledFor": iso(recipient.scheduled_for),
        "error": recipient.error.as_json(request_id) if recipient.error else None,
    }


def _common(values: Iterable[str | None]) -> str | None:
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None


def _remaining(each: Plan, recipient: Recipient) -> list[str]:
    """Give the channels still to try after the chosen one."""
    options = [option.channel for option in recipient.options]
    if recipient.chosen is None:
        return []
    return list(options[options.index(recipient.chosen.channel) + 1 :])


def content_of(each: Plan, variables: dict[str, Any]) -> dict[str, Any]:
    """Give what is kept to be sent: the body of a `MessageContent`."""
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
