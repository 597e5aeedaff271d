"""The calls that are accepted together, and which of them need a decision."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from messaging.accept import idempotency
from messaging.accept.idempotency import CallerKey
from messaging.accept.requests import MessageInput
from messaging.accept.results import Result
from messaging.accept.send_request import CallerMessage
from messaging.store.idempotency import KeyScope, StoredAnswer
from rme.core import errors
from rme.tenants.oauth.authentication import Caller

Outcome = Result | errors.ApiError
"""The result of a call, or the error to raise."""


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


class SortedCalls(NamedTuple):
    """Calls that are accepted together, by what is to be done with them; all by index."""

    calls: Sequence[Call]
    outcomes: Mapping[int, Outcome]
    """Of those that need no decision: they are refused, or were answered before."""
    messages: Mapping[int, CallerMessage]
    """Those to decide."""
    repeats: Mapping[int, int]
    """Calls with the key of an earlier one, whose result they get."""

    def without(self, refused: Mapping[int, Outcome]) -> "SortedCalls":
        """Return the calls, some of them refused."""
        if not refused:
            return self
        messages = {index: each for index, each in self.messages.items() if index not in refused}
        return self._replace(outcomes={**self.outcomes, **refused}, messages=messages)


def sort(
    calls: Sequence[Call],
    stored: Mapping[KeyScope, StoredAnswer],
    refused: Mapping[int, Outcome] = MappingProxyType({}),
) -> SortedCalls:
    """Sort calls. `stored` are the answers by idempotency key, `refused` the errors by index."""
    outcomes, messages, repeats = dict(refused), dict[int, CallerMessage](), dict[int, int]()
    first_of: dict[KeyScope, int] = {}  # the first call with each key
    for index, call in enumerate(calls):
        message, key = call.submission
        if index in refused:
            continue
        if isinstance(message, errors.ApiError):
            outcomes[index] = message
            continue
        scope = call.scope
        if key is None or scope is None:
            messages[index] = CallerMessage(call.caller, message)
        elif scope in stored:
            outcomes[index] = _replayed(stored[scope], key)
        elif scope not in first_of:
            messages[index] = CallerMessage(call.caller, message)
            first_of[scope] = index
        elif (first := calls[first_of[scope]].submission.key) and first.digest != key.digest:
            outcomes[index] = errors.IdempotencyKeyReused()
        else:
            repeats[index] = first_of[scope]
    return SortedCalls(calls, outcomes, messages, repeats)


def _replayed(stored: StoredAnswer, key: CallerKey) -> Outcome:
    try:
        return idempotency.replay(stored, key)
    except errors.IdempotencyKeyReused as error:
        return error
