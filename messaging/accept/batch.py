"""Deciding one accepting call: the answer to each request, in order, and what is to be stored."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from messaging.accept import idempotency
from messaging.accept.idempotency import Key
from messaging.accept.planning import plan
from messaging.accept.plans import Plan, Recipient
from messaging.accept.requests import MessageInput
from messaging.accept.rows import Rows
from messaging.models.statuses import aggregate
from messaging.policy import organization_policy, send_limits
from rme.core import errors, ids
from rme.core.db.clock import iso
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
    """One call, while it is decided."""

    def __init__(self, caller: Caller, request_id: str) -> None:
        self.caller = caller
        self.request_id = request_id
        self.rows = Rows(caller)

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
        rules = organization_policy.of(self.caller.organization.id)
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
        """Give the answer to one request, and make its rows."""
        alone = len(each.recipients) == 1
        error = each.error
        if error is None and alone:
            error = each.recipients[0].error
            if isinstance(error, errors.InvalidPayload | errors.NotFound):
                return self.refused(error)  # never understood: it leaves no row
        if each.error is not None:
            return self.refused(each.error)
        message_id = ids.new_text_id()
        self.rows.add(message_id, each)
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
            self.rows.keep(key, result.status, result.body, latest)
        return result

    def _send_result(self, message_id: str, each: Plan) -> dict[str, Any]:
        shown = [recipient_of(r, message_id, self.request_id) for r in each.recipients]
        if len(shown) == 1:
            only = shown[0]
            return {"messageId": message_id} | {name: only[name] for name in SEND_RESULT}
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

    def store(self, results: Sequence[Result], envelope: Key | None) -> None:
        """Store all that was decided; the whole answer too, if the call has a key of its own."""
        if envelope:
            self.rows.keep(envelope, 202, bulk_body(results), self.rows.latest())
        self.rows.store()


SEND_RESULT = ("status", "resolvedChannel", "provider", "scheduledFor")
"""What a send result says beside its `messageId`."""


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
