"""Accepting messages: from checked requests to rows in the database, for many at once.

A single send is a bulk of one. Everything is stored by one statement, which is a transaction by
itself: message, content, deliveries, events and the idempotency key, all or nothing. Handing on
to the workers comes after it and may fail: the sweep finds what was not handed on.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from django.db import IntegrityError

from messaging.accept import idempotency
from messaging.accept.batch import Batch, Result, Submission, bulk_body
from messaging.accept.idempotency import Key
from messaging.accept.requests import MESSAGE
from messaging.delivery import wakeups
from rme.core import errors
from rme.core.http.json import refuse_nul
from rme.core.http.parsing import parse
from rme.tenants import organizations
from rme.tenants.authentication import Caller
from rme.tenants.models import Organization

__all__ = [
    "RECIPIENTS_LIMIT",
    "MessageResult",
    "Result",
    "Submission",
    "accept",
    "accept_bulk",
    "send_push",
]

RECIPIENTS_LIMIT = 5000
PROGRAM = 0
"""Stands for the application and the user of what a program in this process sends."""


def accept(
    caller: Caller,
    submission: Submission,
    *,
    request_id: str,
    then: Callable[[Result], Result] | None = None,
) -> Result:
    """Accept one message. What is refused is answered with the error's body and status.

    `then` may wait for what becomes of an accepted message, and change the answer. The key is held
    meanwhile, and gives that answer from then on.
    """
    key = submission.key
    with idempotency.holding(caller.organization.id, caller.application_id, key) as known:
        if key and known:
            answer = known.replay(key)
            return Result(answer.status, answer.body, replayed=True)
        (result,) = _accept_all(caller, [submission], request_id)
        if then is None or result.status != 202:
            return result
        settled = then(result)
        if key and settled is not result:
            idempotency.amend(
                caller.organization.id,
                caller.application_id,
                key,
                status=settled.status,
                body=settled.body,
            )
        return settled


def accept_bulk(
    caller: Caller, submissions: Sequence[Submission], *, key: Key | None, request_id: str
) -> Result:
    """Accept up to 500 messages; one bad item fails no other. `key` covers the whole call."""
    with idempotency.holding(caller.organization.id, caller.application_id, key) as known:
        if key and known:
            answer = known.replay(key)
            return Result(answer.status, answer.body, replayed=True)
        batch = _accept_all(caller, submissions, request_id, envelope=key)
        return Result(202, bulk_body(batch))


def _accept_all(
    caller: Caller,
    submissions: Sequence[Submission],
    request_id: str,
    envelope: Key | None = None,
) -> list[Result]:
    """Accept requests by one path; somebody else's use of the same key at once starts it again."""
    for _ in range(3):
        batch = Batch(caller, request_id)
        results = batch.run(submissions)
        try:
            batch.store(results, envelope)
        except IntegrityError:
            idempotency.purge()  # an expired key in the way is no longer; a live one is found now
            continue
        wakeups.wake(batch.rows.channels)
        return results
    raise errors.IdempotencyInProgress(headers={"Retry-After": "1"})


# --- from a program in this process ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MessageResult:
    """What was accepted: the send result of the REST call."""

    message_id: str
    status: str
    resolved_channel: str | None
    provider: str | None
    scheduled_for: str | None
    replayed: bool = False


def send_push(
    organization: Organization | str,
    contact_id: str,
    *,
    title: str,
    body: str,
    data: Mapping[str, str] | None = None,
    badge: int | None = None,
    channels: Sequence[str] = ("PUSH",),
    strategy: str = "FIRST_REACHABLE",
    category: str = "TRANSACTIONAL",
    idempotency_key: str | None = None,
) -> MessageResult:
    """Send to one contact, by the same path as REST: gates, routes, fallback and record.

    On SMS the text is `title: body`, on email the title is the subject. Raises the ApiError that
    REST would answer; its `message_id` names the message where one was stored.
    """
    content = {"title": title, "body": body, "data": data and dict(data), "badge": badge}
    request = {
        "channels": list(channels),
        "strategy": strategy,
        "category": category,
        "to": [{"contactId": contact_id}],
        "content": {name: value for name, value in content.items() if value is not None},
    }
    message = parse(MESSAGE, request)
    refuse_nul(request)
    key = idempotency.key_of(idempotency_key, request)
    result = accept(_program(organization), Submission(message, key), request_id=str(uuid.uuid4()))
    answer = orjson.loads(result.body)
    if "error" in answer:
        raise _refusal(answer["error"])
    return MessageResult(
        message_id=answer["messageId"],
        status=answer["status"],
        resolved_channel=answer["resolvedChannel"],
        provider=answer["provider"],
        scheduled_for=answer["scheduledFor"],
        replayed=result.replayed,
    )


def _program(organization: Organization | str) -> Caller:
    key = organization if isinstance(organization, str) else organization.pk
    try:
        record = organizations.get(key)
    except Organization.DoesNotExist:
        raise errors.NotFound.at("organization", "no such organization") from None
    return Caller(record, application_id=PROGRAM, user_id=PROGRAM, test=False)


def _refusal(told: Mapping[str, Any]) -> errors.ApiError:
    """Make the error again that was written down as an answer."""
    return errors.by_code()[told["code"]](
        told["message"],
        details=[errors.Detail(each["field"], each["message"]) for each in told["details"]],
        message_id=told["messageId"],
    )
