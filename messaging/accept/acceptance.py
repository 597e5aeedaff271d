"""Accepting messages: from checked requests to rows in the database, for many at once.

A single send is a set of one. One statement, which is a transaction by itself, stores message,
content, deliveries, events and the idempotency key: all or nothing. The workers are woken after it.
That may fail: the sweeper finds the deliveries that no worker was woken for.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, TypeGuard

from django.db import IntegrityError

from messaging.accept import facts, idempotency
from messaging.accept.idempotency import CallerKey
from messaging.accept.plan import Plan, SlowCheck, plan, result_of
from messaging.accept.requests import MessageInput
from messaging.accept.results import (
    BulkResult,
    Refusal,
    Result,
    SendResult,
)
from messaging.accept.send_request import CallerMessage
from messaging.accept.storing import AcceptedBatch
from messaging.delivery import accounts as provider_accounts
from messaging.delivery import wakeups
from messaging.policy import organization_policy, send_limits
from messaging.store import idempotency as stored_keys
from messaging.store.idempotency import KeyScope, StoredAnswer
from rme.core import errors, ids
from rme.core.telemetry import tracing
from rme.tenants.oauth.authentication import Caller

RECIPIENTS_LIMIT = 5000
"""The most recipients of one bulk, in all its messages."""
ATTEMPTS = 3
"""How often a call is decided again that lost its idempotency key to a concurrent call."""


class Submission(NamedTuple):
    """One request: checked, or the error found by checking it. A bulk's items have own keys."""

    message: MessageInput | errors.ApiError
    key: CallerKey | None = None


class Call(NamedTuple):
    """A request and who sent it."""

    caller: Caller
    submission: Submission
    request_id: str
    traceparent: str = ""
    """The context of its request, if that is traced."""

    @property
    def scope(self) -> KeyScope | None:
        """Return the scope of the request's idempotency key, if it has one."""
        key = self.submission.key
        return idempotency.scope_of(self.caller, key) if key else None


class KeysTaken(Exception):
    """Nothing of a set was stored: concurrent calls, or expired rows, have some of its keys."""

    def __init__(self, counted: Collection[int]) -> None:
        """`counted` are the indexes of the calls that count against a ceiling already."""
        super().__init__()
        self.counted = counted


Wait = Callable[[SendResult], SendResult | Refusal]
"""A function that waits for the outcome of an accepted message."""


def accept(
    call: Call, *, wait: Wait | None = None, is_counted: bool = False, in_set: bool = False
) -> Result:
    """Accept one message by itself, and return its result; a refused request is a `Refusal`.

    `wait` waits for the outcome of an accepted message and returns the final result. The
    idempotency key is held meanwhile, and its stored answer becomes that result. `is_counted`: the
    message already counts against the ceiling. `in_set`: other calls wait for this one, so it
    raises SlowCheck if it takes long.
    """
    key, scope = call.submission.key, call.scope
    waits = wait is not None
    with idempotency.holding([scope] if scope else [], waits=waits) as held:
        if key and scope and (stored := idempotency.stored_answer(held, scope)):
            return idempotency.replay(stored, key)
        (result,) = _decide_and_store(
            call.caller,
            [call],
            unused=key is not None,
            counted=int(is_counted),
            in_set=in_set,
        ).results
        if wait is None or not isinstance(result, SendResult):
            return result
        final = wait(result)
        if scope and final is not result:
            stored_keys.amend(scope, final.status_code, final.body)
        return final


def accept_bulk(
    caller: Caller, submissions: Sequence[Submission], *, key: CallerKey | None, request_id: str
) -> BulkResult | StoredAnswer:
    """Accept up to 500 messages; one bad item fails no other. `key` covers the whole call."""
    calls = [Call(caller, submission, request_id, tracing.active()) for submission in submissions]
    scope = idempotency.scope_of(caller, key) if key else None
    with idempotency.holding([scope] if scope else []) as held:
        if key and scope and (stored := idempotency.stored_answer(held, scope)):
            return idempotency.replay(stored, key)
        return _decide_and_store(caller, calls, bulk_key=key)


def accept_set(calls: Sequence[Call]) -> list[Result | errors.ApiError]:
    """Accept single calls of any callers together, by one statement; no key may be there twice.

    Return for each call what `accept` returns, or the error that it raises. Raises KeysTaken or
    another error if the set fails as a whole: then nothing is stored.
    """
    scopes = [scope for call in calls if (scope := call.scope)]
    with _traced(calls), idempotency.holding(scopes) as held:
        decision = _Decision(calls)
        decision.refuse(
            {
                index: idempotency.in_progress()
                for index, call in enumerate(calls)
                if (scope := call.scope) and scope not in held
            }
        )
        decision.look_up({scope: stored for scope, stored in held.items() if stored})
        decision.refuse(_beyond_ceilings(decision.fresh))
        counted = list(decision.fresh)
        decision.plan(in_set=True)
        try:
            decision.batch.store()
        except IntegrityError as error:
            raise KeysTaken(counted) from error
    wakeups.wake(decision.batch.channels)
    return decision.outcomes


def _beyond_ceilings(fresh: Mapping[int, CallerMessage]) -> dict[int, errors.ApiError]:
    """Count fresh messages against the ceilings of their organizations, as if one by one; return
    the errors of those that exceed one.
    """
    counted: defaultdict[str, list[int]] = defaultdict(list)
    for index, request in fresh.items():
        if not request.caller.test:
            counted[request.caller.organization.id].append(index)
    policies = organization_policy.of_many(list(counted))
    return {
        index: error
        for organization_id, indexes in counted.items()
        for index, error in zip(
            indexes,
            send_limits.take_each(organization_id, policies[organization_id].sending, len(indexes)),
            strict=True,
        )
        if error
    }


def _decide_and_store(
    caller: Caller,
    calls: Sequence[Call],
    *,
    bulk_key: CallerKey | None = None,
    unused: bool = False,
    counted: int = 0,
    in_set: bool = False,
) -> BulkResult:
    """Decide a caller's requests and store them; again from the start if another call stored one of
    the keys.

    `unused`: the keys are held and were not used before. `counted`: messages that already count
    against the ceiling. Raises RateLimited at the organization's ceiling, IdempotencyInProgress if
    keys are lost three times, and with `in_set` SlowCheck.
    """
    with _traced(calls):
        return _decide_until_stored(
            caller, calls, bulk_key=bulk_key, unused=unused, counted=counted, in_set=in_set
        )


def _traced(calls: Sequence[Call]) -> AbstractContextManager[None]:
    """Let accepting calls together have a span, if any call is traced."""
    contexts = (call.traceparent for call in calls)
    return tracing.set_step("accept", contexts, {"rme.messages": len(calls)})


def _decide_until_stored(
    caller: Caller,
    calls: Sequence[Call],
    *,
    bulk_key: CallerKey | None,
    unused: bool,
    counted: int,
    in_set: bool,
) -> BulkResult:
    keys = {call.submission.key.text for call in calls if call.submission.key}
    # A message counts once against the ceiling, however often it is decided.
    for attempt in range(ATTEMPTS):
        known = unused and attempt == 0
        decision = _Decision(calls)
        decision.look_up({} if known else idempotency.find(caller, keys))
        sending = organization_policy.of(caller.organization.id).sending
        uncounted = max(0, len(decision.fresh) - counted)
        send_limits.require(caller.organization.id, sending, uncounted, test=caller.test)
        counted += uncounted
        decision.plan(in_set=in_set)
        if in_set and (slow := next(filter(_is_slow, decision.outcomes), None)):
            raise slow
        batch, result = decision.batch, BulkResult(decision.results)
        if bulk_key:
            batch.add_key(caller, bulk_key, result, batch.latest_schedule)
        try:
            batch.store()
        except IntegrityError:
            # A key that is live is found next time.
            idempotency.delete_expired(caller, keys | ({bulk_key.text} if bulk_key else set()))
            continue
        wakeups.wake(batch.channels)
        return result
    raise idempotency.in_progress()


def _is_slow(outcome: Result | errors.ApiError) -> TypeGuard[SlowCheck]:
    return isinstance(outcome, SlowCheck)


class _Decision:
    """The results of calls that are stored together, and the batch to store."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self.batch = AcceptedBatch()
        self.fresh: dict[int, CallerMessage] = {}
        """The messages to accept, by the index of their call."""
        self._calls = calls
        self._outcomes: dict[int, Result | errors.ApiError] = {}
        self._repeats: dict[int, int] = {}
        """Calls with the key of an earlier one, whose result they get."""

    @property
    def outcomes(self) -> list[Result | errors.ApiError]:
        """Return the result of each call, or the error to raise, in their order."""
        return [self._outcomes[index] for index in range(len(self._calls))]

    @property
    def results(self) -> list[Result]:
        """Return the result of each call; an error is a `Refusal`."""
        return [
            Refusal(outcome, call.request_id) if isinstance(outcome, errors.ApiError) else outcome
            for outcome, call in zip(self.outcomes, self._calls, strict=True)
        ]

    def refuse(self, refused: Mapping[int, errors.ApiError]) -> None:
        """Set the errors of calls, by index."""
        self._outcomes |= refused
        for index in refused:
            self.fresh.pop(index, None)

    def look_up(self, stored: Mapping[KeyScope, StoredAnswer]) -> None:
        """Answer the calls whose keys were used, and find those that are fresh.

        `stored` are the answers by idempotency key.
        """
        first_of: dict[KeyScope, int] = {}  # the first call with each key
        for index, call in enumerate(self._calls):
            if index in self._outcomes:
                continue
            try:
                self._look_up(index, call, stored, first_of)
            except errors.ApiError as error:
                self._outcomes[index] = error

    def _look_up(
        self,
        index: int,
        call: Call,
        stored: Mapping[KeyScope, StoredAnswer],
        first_of: dict[KeyScope, int],
    ) -> None:
        message, key = call.submission
        if isinstance(message, errors.ApiError):
            raise message
        scope = call.scope
        if key is None or scope is None:
            self.fresh[index] = CallerMessage(call.caller, message)
        elif scope in stored:
            self._outcomes[index] = idempotency.replay(stored[scope], key)
        elif scope in first_of:
            first_key = self._calls[first_of[scope]].submission.key
            if first_key and first_key.digest != key.digest:
                raise errors.IdempotencyKeyReused
            self._repeats[index] = first_of[scope]
        else:
            self.fresh[index] = CallerMessage(call.caller, message)
            first_of[scope] = index

    def plan(self, *, in_set: bool = False) -> None:
        """Decide the fresh calls, and add them to the batch."""
        plans = plan(facts.read(list(self.fresh.values()), in_set=in_set))
        for index, planned in zip(self.fresh, plans, strict=True):
            self._outcomes[index] = self._add(planned, self._calls[index])
        for index, first in self._repeats.items():
            self._outcomes[index] = self._outcomes[first]

    def _add(self, planned: Plan, call: Call) -> Result | errors.ApiError:
        """Return the result of a plan, and add its message and its key to the batch."""
        if isinstance(planned.error, SlowCheck | errors.RateLimited):
            return planned.error  # no key stores it
        if planned.refusal:
            return Refusal(planned.refusal, call.request_id)
        message_id = ids.new_text_id()
        self.batch.add(message_id, planned, call.traceparent)
        provider_accounts.add_to_backlogs(planned.backlogs)
        result = result_of(planned, message_id, call.request_id)
        key = call.submission.key
        if key and result.status_code < 500:
            self.batch.add_key(call.caller, key, result, planned.latest_schedule)
        return result
