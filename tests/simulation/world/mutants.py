"""Defects that the simulation must find: each changes one function or statement at run time."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import timedelta
from typing import Any
from unittest.mock import patch

from django.db.models import Q

from messaging.consent import ledger
from messaging.delivery import deliver, in_flight, manual_review, record, sweeper
from messaging.delivery.outgoing import OutgoingDelivery, SendAttempt
from messaging.domain.progress import receipts as domain_receipts
from messaging.domain.progress.receipts import Receipt
from messaging.domain.progress.transitions import UNCHANGED, Transition
from messaging.store import accepted, attempts, due_work
from messaging.store import claims as store_claims
from messaging.store.attempts import AttemptOutcomes, NewAttempt
from messaging.store.feedback import callbacks
from messaging.webhooks import outbox
from messaging.webhooks.endpoint_queue import EndpointResponse
from push import feedback as push_feedback
from rme.core.db import locks, prepared_statements
from rme.core.db.prepared_statements import Batch, PendingRows
from rme.core.outcomes import Outcome, Rejected, Retryable, Unknown
from tests.simulation.world.record_mutants import RECORD_MUTANTS
from tests.simulation.world.turns import current

Mutant = Callable[[], AbstractContextManager[object]]
MANY = (0.0, *[300.0] * 9)


@contextmanager
def _no_fence() -> Iterator[None]:
    """A worker writes over its successor."""
    real = OutgoingDelivery.transition

    def transition(delivery: OutgoingDelivery) -> Transition:
        made = real(delivery)
        made.fence = UNCHANGED
        return made

    with patch.object(OutgoingDelivery, "transition", transition):
        yield


@contextmanager
def _attempts_after_the_send() -> Iterator[None]:
    """Attempts are committed after they were made."""
    real_begin, real_send = record.begin_attempts, in_flight.Window.send
    held: dict[object, list[NewAttempt]] = {}

    def begin(deliveries: Sequence[OutgoingDelivery]) -> list[NewAttempt]:
        held.setdefault(current(), []).extend(real_begin(deliveries))
        return []

    def send(window: Any, transport: Any) -> Any:
        answered = real_send(window, transport)
        if begun := held.pop(current(), []):
            with prepared_statements.transaction() as batch:
                record.record([], AttemptOutcomes(), batch, begun)
        return answered

    with (
        patch.object(record, "begin_attempts", begin),
        patch.object(in_flight.Window, "send", send),
    ):
        yield


def _replaced(module: Any, name: str, old: str, new: str) -> AbstractContextManager[object]:
    text = getattr(module, name)
    assert old in text
    return patch.object(module, name, text.replace(old, new))


def _no_lease() -> AbstractContextManager[object]:
    """A claim has no lease: a dead worker holds its deliveries for ever."""
    lease = "statement_timestamp() + make_interval(secs => %(lease)s)"
    none = "CASE WHEN %(lease)s::float8 < 0 THEN statement_timestamp() END"
    return _replaced(store_claims, "CLAIM_LOCKED", lease, none)


def _early_sweeper() -> AbstractContextManager[object]:
    """The sweeper takes deliveries from workers that are alive."""
    due = "d.due_at <= statement_timestamp()"
    return _replaced(due_work, "LOCK_DUE_LEAVING", due, f"{due} + interval '59 seconds'")


@contextmanager
def _receipts_backwards() -> Iterator[None]:
    """The receipt that came last decides the status."""

    def final(_: Any, seen: Any, found: Sequence[Receipt]) -> Any:
        moving = [each for each in found if each.type in domain_receipts.STATUS_OF]
        return domain_receipts.STATUS_OF[moving[-1].type] if moving else None

    with patch.object(domain_receipts, "final_status", final):
        yield


def _no_last_check() -> AbstractContextManager[object]:
    """The gates are not checked before a window leaves."""
    return patch.object(deliver, "_begin_check", lambda *_: None)


@contextmanager
def _gates_without_lock() -> Iterator[None]:
    """Workers check the gates without the lock that keeps decisions out meanwhile."""
    real = locks.until_commit

    def take(names: Iterable[str], *, shared: bool = False, batch: Batch | None = None) -> None:
        if not shared:
            real(names, batch=batch)

    with patch.object(locks, "until_commit", take):
        yield


def _attempts_stay() -> AbstractContextManager[object]:
    """Attempts that the gates stopped, or that were not made, are not removed."""
    real = attempts.store

    def store(
        transitions: Sequence[Transition], outcomes: AttemptOutcomes, *rest: Any, **options: Any
    ) -> PendingRows:
        return real(transitions, outcomes._replace(not_made=()), *rest, **options)

    return patch.object(attempts, "store", store)


def _no_key() -> AbstractContextManager[object]:
    """An idempotency key is not stored."""
    real = accepted.store

    def store(messages: Any, _: Any, now: Any) -> None:
        real(messages, (), now)

    return patch.object(accepted, "store", store)


def _failover_after_unknown() -> AbstractContextManager[object]:
    """A send with an unknown outcome goes to the next account."""
    return _unknown_counts_as(Retryable("unknown"))


def _fallback_after_unknown() -> AbstractContextManager[object]:
    """A send with an unknown outcome goes to the next channel."""
    return _unknown_counts_as(Rejected("unknown"))


def _unknown_counts_as(other: Outcome) -> AbstractContextManager[object]:
    real = OutgoingDelivery.apply_outcomes

    def apply(delivery: OutgoingDelivery, **given: Any) -> None:
        kept: list[tuple[SendAttempt, Unknown]] = []
        for attempt in delivery.attempts:
            if isinstance(attempt.outcome, Unknown):
                kept.append((attempt, attempt.outcome))
                attempt.outcome = other
        real(delivery, **given)
        for attempt, outcome in kept:
            attempt.outcome = outcome

    return patch.object(OutgoingDelivery, "apply_outcomes", apply)


@contextmanager
def _resends_without_limit() -> Iterator[None]:
    """rme resends unknown outcomes without limit."""

    class Settings:
        UNKNOWN_BACKOFF_SECONDS = MANY
        UNKNOWN_SECONDS = 60.0

    with patch.object(sweeper, "settings", Settings):
        yield


@contextmanager
def _resends_held_deliveries() -> Iterator[None]:
    """The category's rule for unknown outcomes is not read."""
    real = sweeper._waits_until

    def waits_until(each: Any, sent: Any) -> Any:
        return real(each._replace(category="TRANSACTIONAL"), sent)

    with patch.object(sweeper, "_waits_until", waits_until):
        yield


@contextmanager
def _unknown_is_ready() -> Iterator[None]:
    """The sweeper treats deliveries that may have left as unsent."""
    with _replaced(due_work, "OPEN_ATTEMPTS", "a.outcome IS NULL", "a.outcome = 'none'"):
        yield


@contextmanager
def _late_is_early() -> Iterator[None]:
    """A worker sends although its lease has ended."""
    real = in_flight.Window.__init__

    def init(window: Any, deliveries: Any, until: float, *given: Any) -> None:
        real(window, deliveries, until + timedelta(days=1).total_seconds(), *given)

    with ExitStack() as stack:
        stack.enter_context(patch.object(in_flight.Window, "__init__", init))
        yield


@contextmanager
def _events_without_fence() -> Iterator[None]:
    """Events are written although the status did not change."""
    real = attempts.event_steps

    def steps(*given: Any) -> Any:
        made = dict(real(*given))
        for name, step in made.items():
            if step and name == "events":
                text = step.text.replace("= ANY(ARRAY(SELECT id FROM transitions))", "IS NOT NULL")
                assert text != step.text
                made[name] = step._replace(text=text)
        return made

    with patch.object(attempts, "event_steps", steps):
        yield


@contextmanager
def _stop_without_entry() -> Iterator[None]:
    """STOP suppresses the number, and is not in the ledger."""
    real = ledger.record

    def record(organization_id: str, decisions: Sequence[Any]) -> Any:
        kept = [each for each in decisions if each.source != "SMS_KEYWORD"]
        return real(organization_id, kept)

    with patch.object(ledger, "record", record):
        yield


def _repeated_callbacks() -> AbstractContextManager[object]:
    """A callback that comes again is stored again."""
    digest = "SELECT *, 0 FROM received ON CONFLICT"
    other = (
        "SELECT id, organization_id, account_id, md5(digest || id), method, query, headers, body, "
        "at, 0 FROM received ON CONFLICT"
    )
    return _replaced(callbacks, "STORE", digest, other)


def _reviews_all() -> AbstractContextManager[object]:
    """A person's decision changes deliveries that are not in manual review."""
    return patch.object(manual_review, "HELD", Q())


def _dead_tokens_stay() -> AbstractContextManager[object]:
    """Dead tokens that a push service reports are not stored."""
    return patch.object(push_feedback, "insert_statement", lambda _: None)


def _endpoint_without_lease() -> AbstractContextManager[object]:
    """An endpoint's queue is claimed by one dispatcher while another one sends it."""
    return patch.object(outbox, "LEASE_SECONDS", 0.0)


def _failures_are_deliveries() -> AbstractContextManager[object]:
    """A webhook delivery that fails counts as delivered."""
    return patch.object(EndpointResponse, "ok", True)


MUTANTS: Mapping[str, Mutant] = {
    "no fence": _no_fence,
    "attempts after the send": _attempts_after_the_send,
    "no lease": _no_lease,
    "early sweeper": _early_sweeper,
    "receipts backwards": _receipts_backwards,
    "no last check": _no_last_check,
    "gates without their lock": _gates_without_lock,
    "attempts stay": _attempts_stay,
    "no idempotency key": _no_key,
    "failover after unknown": _failover_after_unknown,
    "fallback after unknown": _fallback_after_unknown,
    "resends without limit": _resends_without_limit,
    "resends held deliveries": _resends_held_deliveries,
    "sends in doubt are ready": _unknown_is_ready,
    "sends after the lease": _late_is_early,
    "events without fence": _events_without_fence,
    "STOP without an entry": _stop_without_entry,
    "repeated callbacks": _repeated_callbacks,
    "reviews every delivery": _reviews_all,
    "dead tokens stay": _dead_tokens_stay,
    "no lease of an endpoint": _endpoint_without_lease,
    "failed webhooks are delivered": _failures_are_deliveries,
    **RECORD_MUTANTS,
}
