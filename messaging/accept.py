"""Accepting messages: from checked requests to rows in the database, for many at once.

A single send is a bulk of one. Everything is stored by one statement, which is a transaction by
itself: message, content, deliveries, events and the idempotency key, all or nothing. Handing on
to the workers comes after it and may fail: the sweep finds what was not handed on.
"""

from collections.abc import Callable, Sequence

from django.db import IntegrityError

from messaging import idempotency, tasks
from messaging.batch import Batch, Result, Submission, bulk_body
from messaging.idempotency import Key
from rme.core import errors
from rme.tenants.authentication import Caller

__all__ = ["RECIPIENTS_LIMIT", "Result", "Submission", "accept", "accept_bulk"]

RECIPIENTS_LIMIT = 5000


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
        tasks.ring(batch.channels)
        return results
    raise errors.IdempotencyInProgress(headers={"Retry-After": "1"})
