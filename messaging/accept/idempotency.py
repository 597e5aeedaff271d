"""Idempotency keys, by which a caller may repeat a request without sending twice.

The statement that stores the message inserts the row of its key too, so that there is never one
without the other; a unique constraint decides between two concurrent requests.
"""

import hashlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import NamedTuple

import orjson

from messaging.store import idempotency as store
from messaging.store.idempotency import Held, KeyScope, StoredAnswer
from rme.core import errors
from rme.core.db import commits
from rme.core.db.postgresql import direct
from rme.core.http.parsing import IDEMPOTENCY_KEY, read_idempotency_key
from rme.tenants.oauth.authentication import Caller

LIFE = timedelta(hours=24)
KEY_LIMIT = 255


class CallerKey(NamedTuple):
    """The key of a request, with the digest of the request's body."""

    text: str
    digest: str


def scope_of(caller: Caller, key: CallerKey) -> KeyScope:
    """Return the scope of a caller's key."""
    return KeyScope(caller.organization.id, caller.application_id, key.text)


def key_of(header: str | None, body: object) -> CallerKey | None:
    """Read the Idempotency-Key header, with the digest of the body.

    Raises InvalidPayload for a key that is empty, too long or not printable ASCII.
    """
    if header is None:
        return None
    text = read_idempotency_key(header, KEY_LIMIT)
    if not text:
        rule = f"must be 1 to {KEY_LIMIT} printable characters"
        raise errors.InvalidPayload.at(IDEMPOTENCY_KEY, rule)
    return CallerKey(text, digest(body))


def digest(body: object) -> str:
    """Return the SHA-256 of a JSON value; member order and white space do not count."""
    canonical = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(canonical).hexdigest()


def replay(answer: StoredAnswer, key: CallerKey) -> StoredAnswer:
    """Return a stored answer; raise IdempotencyKeyReused if it answered another request."""
    if key.digest != answer.request_digest:
        raise errors.IdempotencyKeyReused
    return answer


def find(caller: Caller, keys: Collection[str]) -> dict[KeyScope, StoredAnswer]:
    """Return the stored answers of a caller's keys that have not expired, in one query.

    Answers are as safe as new messages: see `commits.confirm_earlier`.
    """
    if not keys:
        return {}
    answers = store.find(caller.organization.id, caller.application_id, keys)
    if answers:
        commits.confirm_earlier()
    return answers


@contextmanager
def holding(scopes: Sequence[KeyScope], *, is_waiting: bool = False) -> Iterator[Held]:
    """Hold keys while their requests run, and yield the stored answers of those used before.

    A key that the first request with it still holds, in another process, is left out. No key may
    be there twice. The locks belong to the session: they end with the process.

    A pooler keeps no session. There, a request that waits for the outcome of its message
    (`is_waiting`) has one of its own, and holds its key in it. For all others it is only looked
    whether a key is held: of two concurrent requests one stores its message, and the other finds
    the answer of the first.
    """
    if not scopes:
        yield {}
        return
    held_answers: dict[KeyScope, StoredAnswer | None] = {}
    if direct.is_pooled() and not is_waiting:
        _hold_all(scopes, held_answers, probes=True)
        yield held_answers
        return
    with direct.session():
        try:
            _hold_all(scopes, held_answers, probes=False)
            yield held_answers
        finally:
            store.release(held_answers)


def _hold_all(
    scopes: Sequence[KeyScope], held_answers: dict[KeyScope, StoredAnswer | None], *, probes: bool
) -> None:
    """Add the keys to `held_answers` that no other request holds."""
    held_answers |= store.hold(scopes, probes=probes)
    if len(held_answers) < len(scopes):  # the request that held one may have ended meanwhile
        held_answers |= store.hold(
            [scope for scope in scopes if scope not in held_answers], probes=probes
        )
    if any(held_answers.values()):
        commits.confirm_earlier()


def stored_answer(held_answers: Held, scope: KeyScope) -> StoredAnswer | None:
    """Return the stored answer of a key. Raise IdempotencyInProgress for one that is not held."""
    if scope not in held_answers:
        raise in_progress()
    return held_answers[scope]


def in_progress() -> errors.IdempotencyInProgress:
    """Build the error of a request whose key is held by the first request with it."""
    return errors.IdempotencyInProgress(headers={"Retry-After": "1"})


def delete_expired(caller: Caller, keys: Collection[str]) -> None:
    """Delete those of a caller's keys that have expired, so that they may be used again."""
    store.delete_expired(caller.organization.id, caller.application_id, keys)
