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

from messaging.accept import idempotency
from messaging.accept.calls import Call, Outcome, SortedCalls, Submission, sort
from messaging.accept.facts.reading import read_facts
from messaging.accept.facts.variables import SlowCheck
from messaging.accept.idempotency import CallerKey
from messaging.accept.plans import plans_of
from messaging.accept.refusals import error_of
from messaging.accept.results import BulkResult, Refusal, Result, SendResult, result_of
from messaging.accept.send_request import CallerMessage
from messaging.accept.storing import AcceptedBatch, keyed_answer, message_of
from messaging.delivery import accounts as provider_accounts
from messaging.delivery import wakeups
from messaging.domain.accounts.admission import Backlog
from messaging.policy import organization_policy, send_limits
from messaging.store import idempotency as stored_keys
from messaging.store.accepted import AcceptedMessage, KeyedAnswer
from messaging.store.idempotency import StoredAnswer
from rme.core import errors, ids
from rme.core.telemetry import tracing
from rme.tenants.oauth.authentication import Caller

RECIPIENTS_LIMIT = 5000
"""The most recipients of one bulk, in all its messages."""
ATTEMPTS = 3
"""How often a call is decided again that lost its idempotency key to a concurrent call."""


class KeysTaken(Exception):
    """Nothing of a set was stored: concurrent calls, or expired rows, have some of its keys."""

    def __init__(self, counted_indexes: Collection[int]) -> None:
        """`counted_indexes` are those of the calls that count against a ceiling already."""
        super().__init__()
        self.counted_indexes = counted_indexes


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
    is_waiting = wait is not None
    with idempotency.holding([scope] if scope else [], is_waiting=is_waiting) as held_answers:
        if key and scope and (answer := idempotency.stored_answer(held_answers, scope)):
            return idempotency.replay(answer, key)
        (result,) = _decide_and_store(
            call.caller,
            [call],
            unused=key is not None,
            counted_messages=int(is_counted),
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
    with idempotency.holding([scope] if scope else []) as held_answers:
        if key and scope and (answer := idempotency.stored_answer(held_answers, scope)):
            return idempotency.replay(answer, key)
        return _decide_and_store(caller, calls, bulk_key=key)


def accept_set(calls: Sequence[Call]) -> list[Outcome]:
    """Accept single calls of any callers together, by one statement; no key may be there twice.

    Return for each call what `accept` returns, or the error that it raises. Raises KeysTaken or
    another error if the set fails as a whole: then nothing is stored.
    """
    scopes = [scope for call in calls if (scope := call.scope)]
    with _traced(calls), idempotency.holding(scopes) as held_answers:
        in_progress: dict[int, Outcome] = {
            index: idempotency.in_progress()
            for index, call in enumerate(calls)
            if (scope := call.scope) and scope not in held_answers
        }
        stored_answers = {scope: answer for scope, answer in held_answers.items() if answer}
        sorted_calls = sort(calls, stored_answers, in_progress)
        open_calls = sorted_calls.without(_beyond_ceilings(sorted_calls.messages))
        decision = _decide(open_calls, in_set=True)
        try:
            decision.batch.store()
        except IntegrityError as error:
            raise KeysTaken(open_calls.messages) from error
    _after_storing(decision)
    return decision.outcomes


def _beyond_ceilings(messages: Mapping[int, CallerMessage]) -> dict[int, Outcome]:
    """Count messages against the ceilings of their organizations, as if one by one; return
    the errors of those that exceed one.
    """
    indexes_by_organization: defaultdict[str, list[int]] = defaultdict(list)
    for index, request in messages.items():
        if not request.caller.test:
            indexes_by_organization[request.caller.organization.id].append(index)
    policies = organization_policy.of_many(list(indexes_by_organization))
    return {
        index: error
        for organization_id, indexes in indexes_by_organization.items()
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
    counted_messages: int = 0,
    in_set: bool = False,
) -> BulkResult:
    """Decide a caller's requests and store them; again from the start if another call stored one of
    the keys.

    `unused`: the keys are held and were not used before. `counted_messages`: how many messages
    already count against the ceiling. Raises RateLimited at the organization's ceiling,
    IdempotencyInProgress if keys are lost three times, and with `in_set` SlowCheck.
    """
    with _traced(calls):
        return _decide_until_stored(
            caller,
            calls,
            bulk_key=bulk_key,
            unused=unused,
            counted_messages=counted_messages,
            in_set=in_set,
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
    counted_messages: int,
    in_set: bool,
) -> BulkResult:
    keys = {call.submission.key.text for call in calls if call.submission.key}
    # A message counts once against the ceiling, however often it is decided.
    for attempt in range(ATTEMPTS):
        are_unused = unused and attempt == 0
        sorted_calls = sort(calls, {} if are_unused else idempotency.find(caller, keys))
        sending = organization_policy.of(caller.organization.id).sending
        uncounted = max(0, len(sorted_calls.messages) - counted_messages)
        send_limits.require(caller.organization.id, sending, uncounted, test=caller.test)
        counted_messages += uncounted
        decision = _decide(sorted_calls, in_set=in_set)
        if in_set and (slow := next(filter(_is_slow, decision.outcomes), None)):
            raise slow
        batch, result = decision.batch, BulkResult(decision.results(calls))
        if bulk_key:
            answer = keyed_answer(caller, bulk_key, result, batch.now, batch.latest_schedule)
            # An item may have the key of its bulk, whose answer then counts.
            others = [each for each in batch.answers if each.key != answer.key]
            batch = batch._replace(answers=[*others, answer])
        try:
            batch.store()
        except IntegrityError:
            # A key that is live is found next time.
            idempotency.delete_expired(caller, keys | ({bulk_key.text} if bulk_key else set()))
            continue
        _after_storing(decision)
        return result
    raise idempotency.in_progress()


def _is_slow(outcome: Outcome) -> TypeGuard[SlowCheck]:
    return isinstance(outcome, SlowCheck)


# --- the steps ------------------------------------------------------------------------------------


class _Decision(NamedTuple):
    """The outcomes of calls that are stored together, and the batch to store."""

    outcomes: list[Outcome]
    """The result of each call, or the error to raise, in their order."""
    batch: AcceptedBatch
    backlogs: Sequence[Backlog]
    """Those that the messages add to, once for each."""

    def results(self, calls: Sequence[Call]) -> list[Result]:
        """Return the result of each call; an error is a `Refusal`."""
        return [
            Refusal(outcome, call.request_id) if isinstance(outcome, errors.ApiError) else outcome
            for outcome, call in zip(self.outcomes, calls, strict=True)
        ]


def _decide(sorted_calls: SortedCalls, *, in_set: bool) -> _Decision:
    """Read the facts of messages, and decide what their calls get."""
    requests = sorted_calls.messages
    set_facts = read_facts(list(requests.values()), in_set=in_set)
    now = set_facts.now
    outcomes = dict(sorted_calls.outcomes)
    messages: list[AcceptedMessage] = []
    answers: list[KeyedAnswer] = []
    backlogs: list[Backlog] = []
    plans = plans_of(set_facts.requests, now)
    for (index, request), plan in zip(requests.items(), plans, strict=True):
        call = sorted_calls.calls[index]
        if isinstance(plan, errors.ApiError):
            outcomes[index] = plan
        elif plan.refusal:
            error = error_of(plan.refusal)
            outcomes[index] = error if plan.is_repeatable else Refusal(error, call.request_id)
        else:
            message_id = ids.new_text_id()
            messages.append(message_of(message_id, request, plan, call.traceparent))
            backlogs += plan.backlogs
            outcomes[index] = result = result_of(plan, message_id, call.request_id)
            if (key := call.submission.key) and result.status_code < 500:
                schedule = plan.latest_schedule
                answers.append(keyed_answer(call.caller, key, result, now, schedule))
    for index, first in sorted_calls.repeats.items():
        outcomes[index] = outcomes[first]
    ordered = [outcomes[index] for index in range(len(sorted_calls.calls))]
    return _Decision(ordered, AcceptedBatch(now, messages, answers), backlogs)


def _after_storing(decision: _Decision) -> None:
    """Count what was stored against the rates of its accounts, and wake the workers."""
    provider_accounts.add_to_backlogs(decision.backlogs)
    wakeups.wake(decision.batch.channels)
