"""Accepting messages: from checked requests to rows in the database, for many at once.

A single send is a bulk of one. One statement, which is a transaction by itself, stores message,
content, deliveries, events and the idempotency key: all or nothing. The workers are woken after it.
That may fail: the sweeper finds the deliveries that no worker was woken for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db import IntegrityError

from messaging.accept import idempotency
from messaging.accept.idempotency import CallerKey
from messaging.accept.planning import plan
from messaging.accept.plans import Plan
from messaging.accept.requests import MessageInput
from messaging.accept.results import (
    BulkResult,
    Refusal,
    Result,
    SendResult,
    StoredAnswer,
    of_plan,
)
from messaging.accept.rows import Rows
from messaging.delivery import wakeups
from messaging.policy import organization_policy, send_limits
from rme.core import errors, ids
from rme.tenants.authentication import Caller

RECIPIENTS_LIMIT = 5000
"""The most recipients of one bulk, in all its messages."""
ATTEMPTS = 3
"""How often a call is decided again that lost its idempotency key to a concurrent call."""


@dataclass(frozen=True, slots=True)
class Submission:
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
        (result,) = _decide_and_store(caller, [submission], request_id)
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
        return BulkResult(_decide_and_store(caller, submissions, request_id, bulk_key=key))


def _decide_and_store(
    caller: Caller,
    submissions: Sequence[Submission],
    request_id: str,
    bulk_key: CallerKey | None = None,
) -> list[Result]:
    """Decide requests and store them; again from the start if another call stored one of the keys.

    Raises IdempotencyInProgress if that happens three times.
    """
    for _ in range(ATTEMPTS):
        rows = Rows(caller)
        results = _decide(caller, submissions, request_id, rows)
        if bulk_key:
            rows.add_key(bulk_key, BulkResult(results), rows.latest_schedule)
        try:
            rows.store()
        except IntegrityError:
            idempotency.purge()  # the key may have expired; if it is live, it is found next time
            continue
        wakeups.wake(rows.channels)
        return results
    raise errors.IdempotencyInProgress(headers={"Retry-After": "1"})


def _decide(
    caller: Caller, submissions: Sequence[Submission], request_id: str, rows: Rows
) -> list[Result]:
    """Return the result of each request, in order, and add to `rows` what is to be stored."""
    keys = {submission.key.text for submission in submissions if submission.key}
    stored = idempotency.find(caller.organization.id, caller.application_id, keys)
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


def _add_plan(rows: Rows, each: Plan, key: CallerKey | None, request_id: str) -> Result:
    """Return the result of a plan, and add the rows of its message and its key."""
    if each.refusal:
        return Refusal(each.refusal, request_id)
    message_id = ids.new_text_id()
    rows.add(message_id, each)
    result = of_plan(each, message_id, request_id)
    if key and result.status_code < 500:
        rows.add_key(key, result, each.latest_schedule)
    return result
