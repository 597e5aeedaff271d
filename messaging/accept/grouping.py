"""Single calls are accepted together, as one set, by one statement: as if one by one.

Which calls are one set is decided where requests arrive (`rme.core.http.serving.sets`).
"""

from collections.abc import Callable, Sequence

import structlog

from messaging.accept.acceptance import KeysTaken, accept, accept_set
from messaging.accept.calls import Call
from messaging.accept.requests import MessageInput
from messaging.accept.results import Result
from messaging.store.idempotency import KeyScope
from rme.core import errors, ids
from rme.core.db import availability
from rme.core.process.error_boundary import ErrorBoundary

log = structlog.get_logger(__name__)

Outcome = Result | Exception
"""What `acceptance.accept` returns for a call, or the error that it raises."""


def accept_together(
    calls: Sequence[Call],
    accept_calls: Callable[[Sequence[Call]], Sequence[Outcome]] = accept_set,
) -> list[Outcome]:
    """Accept calls of any callers; return the outcome of each, in their order. Raises nothing.

    A set that fails stores nothing, and its calls are accepted one by one. A call that takes long
    gets the outcome SlowCheck: nothing is stored for it, and it must be accepted by itself.
    """
    outcomes: dict[int, Outcome] = {}
    for indexes in _without_repeats(calls):
        some = [calls[index] for index in indexes]
        with ErrorBoundary() as boundary:
            outcomes |= zip(indexes, accept_calls(some), strict=True)
        if boundary.error is not None:
            outcomes |= zip(indexes, _after(boundary.error, some), strict=True)
    return [outcomes[index] for index in range(len(calls))]


def is_quick(call: Call) -> bool:
    """Return whether a call may be in a set: it is for one contact, which is in our database, and
    names no record. Other calls may take long, and go by themselves.
    """
    message = call.submission.message
    if not isinstance(message, MessageInput) or len(message.to) > 1:
        return False
    has_record = message.context is not None and message.context.record_id is not None
    return not has_record and ids.is_canonical(message.to[0].contact_id)


def _without_repeats(calls: Sequence[Call]) -> list[list[int]]:
    """Divide calls into sets in which each key is there once; return the indexes of each set.

    A call whose key an earlier one has comes after it, so that it gets the stored answer.
    """
    sets: list[list[int]] = []
    seen: dict[KeyScope, int] = {}
    for index, call in enumerate(calls):
        scope = call.scope
        place = seen.get(scope, 0) if scope else 0
        if scope:
            seen[scope] = place + 1
        if place == len(sets):
            sets.append([])
        sets[place].append(index)
    return sets


def _after(error: Exception, calls: Sequence[Call]) -> list[Outcome]:
    """Return the outcomes of calls whose set has failed: each is accepted alone.

    While the database is away they are not: the set may have been stored, and is never repeated.
    """
    if availability.is_unavailable(error):
        others = [errors.Unavailable(headers={"Retry-After": "5"}) for _ in calls[1:]]
        return [error, *others]
    if len(calls) > 1:
        log.warning("accept.set_failed", calls=len(calls), exc_info=error)
    elif not isinstance(error, KeysTaken):
        return [error]
    counted_indexes = error.counted_indexes if isinstance(error, KeysTaken) else ()
    return [
        _accept_alone(call, is_counted=index in counted_indexes) for index, call in enumerate(calls)
    ]


def _accept_alone(call: Call, *, is_counted: bool) -> Outcome:
    with ErrorBoundary() as boundary:
        return accept(call, in_set=True, is_counted=is_counted)
    assert boundary.error is not None  # else it has returned
    return boundary.error
