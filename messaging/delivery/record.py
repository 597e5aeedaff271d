"""What the send loop writes: attempts before they are made, their outcomes, the deliveries' new
statuses and events.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

import structlog

from messaging.consent import suppressions
from messaging.delivery.outgoing import OutgoingDelivery, SendAttempt
from messaging.domain.progress.receipts import Receipt
from messaging.domain.statuses import Status
from messaging.domain.timing import ASK_AFTER
from messaging.store import attempts
from messaging.store.attempts import AttemptOutcomes, AttemptResult, NewAttempt
from messaging.store.feedback.references import NewReference
from messaging.telemetry import spans, timings
from push.feedback import DeviceOutcome
from rme.core.db import clock, prepared_statements
from rme.core.outcomes import NOT_TRIED, Accepted

log = structlog.get_logger(__name__)


class Answered(NamedTuple):
    """A delivery, with its attempts whose outcomes are to be written."""

    delivery: OutgoingDelivery
    attempts: Sequence[SendAttempt]
    """Empty until it is decided what follows from the outcomes."""
    not_made: Sequence[str] = ()
    """The ids of attempts that were begun after those, and are not made after all."""


def begin_attempts(deliveries: Sequence[OutgoingDelivery]) -> list[NewAttempt]:
    """Begin the next attempts of deliveries, and return what is to be written of them."""
    now = clock.now()
    return [
        NewAttempt(
            attempt.id,
            claimed.organization_id,
            claimed.message_id,
            claimed.id,
            claimed.fence,
            claimed.channel,
            attempt.account.name,
            attempt.account.id,
            attempt.device_id,
            now,
        )
        for delivery in deliveries
        for claimed in (delivery.claimed,)
        for attempt in delivery.begin_attempts(now)
    ]


def outcomes(answers: Sequence[Answered]) -> AttemptOutcomes:
    """Return the outcomes of attempts, which are to be written."""
    results, device_outcomes, own_ids = [], [], []
    not_made: list[str] = []
    now = clock.now()
    for delivery, attempted, cancelled in answers:
        not_made += cancelled
        organization_id = delivery.claimed.organization_id
        for attempt in attempted:
            outcome = attempt.outcome
            assert outcome is not None  # it was answered
            if outcome is NOT_TRIED:
                not_made.append(attempt.id)
                continue
            if reference := _reference(attempt, now):
                own_ids.append(reference)
            if attempt.device_id:
                device_outcomes.append(
                    DeviceOutcome(
                        organization_id,
                        attempt.device_id,
                        attempt.started_at,
                        outcome,
                        delivery.claimed.test,
                    )
                )
            if isinstance(outcome, Accepted):
                reason, provider_id = "", outcome.provider_id
            else:
                reason, provider_id = outcome.reason, ""
            results.append(
                AttemptResult(
                    attempt.id,
                    organization_id,
                    delivery.claimed.id,
                    type(outcome).__name__,
                    reason,
                    provider_id,
                    attempt.latency_ms,
                )
            )
    return AttemptOutcomes(results, own_ids, device_outcomes, not_made)


def _reference(attempt: SendAttempt, now: datetime) -> NewReference | None:
    """Return the provider's own id of a message to store: none for most providers."""
    account, outcome = attempt.account, attempt.outcome
    provider = account.provider
    if provider is None or not (provider.names_its_own_ids or provider.polls):
        return None
    if account.id is None or not isinstance(outcome, Accepted) or not outcome.provider_id:
        return None
    ask_at = now + ASK_AFTER if provider.polls else None
    return NewReference(attempt.id, account.id, outcome.provider_id[:255], ask_at)


def record(
    decided: Sequence[OutgoingDelivery],
    known: AttemptOutcomes,
    batch: prepared_statements.Batch,
    begun: Sequence[NewAttempt] = (),
) -> prepared_statements.PendingRows:
    """Add to a batch what writes outcomes, the new statuses and events of deliveries, and attempts
    that are about to be made; return the count of deliveries that changed.

    This takes one statement, and another one for the few addresses that are suppressed.
    """
    changed = attempts.store(
        [delivery.transition() for delivery in decided],
        known,
        [delivery.events_to_write() for delivery in decided if delivery.events],
        clock.now(),
        batch,
        begun=begun,
    )
    suppressed = [
        suppressions.NewSuppression(
            delivery.claimed.organization_id,
            delivery.claimed.channel,
            delivery.address,
            delivery.suppress_as,
            "PROVIDER",
            test=delivery.claimed.test,
        )
        for delivery in decided
        if delivery.suppress_as and delivery.address
    ]
    if suppressed:
        suppressions.suppress(suppressed)
    return changed


def count_sent(decided: Sequence[OutgoingDelivery]) -> None:
    """Count how long the deliveries that became SENT have taken, once that is stored."""
    now = clock.now().timestamp()
    timings.TIME_TO_PROVIDER.observe_each(
        (now - each.claimed.ready_since, (each.claimed.channel, str(each.rules.priority)))
        for each in decided
        if each.status is Status.SENT and each.claimed.ready_since is not None
    )


def count_outcomes(send_attempts: Iterable[SendAttempt]) -> None:
    """Count how long attempts took whose outcomes have become known, and end their spans."""
    with_outcome = list(send_attempts)
    for attempt in with_outcome:
        if attempt.span:
            spans.end_attempt(attempt.span, attempt.outcome, (attempt.latency_ms or 0) / 1000)
    timings.PROVIDER_SECONDS.observe_each(
        (
            (each.latency_ms or 0) / 1000,
            (each.account.kind, type(each.outcome).__name__),
        )
        for each in with_outcome
        if each.outcome is not None and each.outcome is not NOT_TRIED
    )


def log_fenced(
    decided: Sequence[OutgoingDelivery], changed: prepared_statements.PendingRows
) -> None:
    """Log how many deliveries did not change: another worker has claimed them since."""
    if decided and (count := len(decided) - changed.rows()[0][0]):
        log.warning("deliver.fenced", count=count, channel=decided[0].claimed.channel)


def receipts(answers: Sequence[Answered]) -> list[Receipt]:
    """Return the receipts that came with outcomes (the simulator's)."""
    return [receipt for each in answers for receipt in each.delivery.receipts(each.attempts)]
