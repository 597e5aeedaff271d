"""What the send loop writes: attempts before they are made, their outcomes, the deliveries' new
statuses and events.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import structlog

from messaging.consent import suppressions
from messaging.delivery.next_steps import OutgoingDelivery, SendAttempt, storable
from messaging.feedback import provider_references
from messaging.feedback.receipts import Receipt
from messaging.models import Attempt, ProviderReference, short_provider_id
from messaging.models.statuses import EventType, Status
from messaging.models.transitions import transition_step
from messaging.telemetry import spans, timings
from messaging.webhooks.events import DerivedEvent, event_steps
from push import feedback
from rme.core.db import clock, prepared_statements, sql
from rme.core.outcomes import NOT_TRIED, Accepted

log = structlog.get_logger(__name__)

_TRANSITIONS, _OUTCOMES = "transitions", "outcomes"
"""The names of two steps."""
# An attempt stands for the event `sent` if its delivery became SENT by the same statement. It keeps
# the event if its outcome is stored again, because the answer to the first commit was lost.
_BECAME = f"t.delivery_id = ANY(ARRAY(SELECT id FROM {_TRANSITIONS}))"
_SENT_AT = f"coalesce(t.sent_at, CASE WHEN {_BECAME} THEN r.sent_at END)"
_NEWLY_SENT = f"RETURNING CASE WHEN t.sent_at IS NOT NULL AND {_BECAME} THEN t.id END AS id"
_NONE_SENT = "RETURNING NULL::uuid AS id"


class Answered(NamedTuple):
    """A delivery, with its attempts whose outcomes are to be written."""

    delivery: OutgoingDelivery
    attempts: Sequence[SendAttempt]
    """Empty until it is decided what follows from the outcomes."""
    not_made: Sequence[str] = ()
    """The ids of attempts that were begun after those, and are not made after all."""


def begin_attempts(deliveries: Sequence[OutgoingDelivery]) -> sql.Step | None:
    """Begin the next attempts of deliveries, and return the step that writes them."""
    now = clock.now()
    return sql.insert_step(
        Attempt,
        [
            {
                "id": attempt.id,
                "organization_id": delivery.claimed.organization_id,
                "message_id": _other_than(delivery.claimed.id, delivery.claimed.message_id),
                "delivery_id": delivery.claimed.id,
                "fence": delivery.claimed.fence,
                "channel": delivery.claimed.channel,
                "provider": attempt.account.name,
                "account_id": attempt.account.id,
                "device_id": attempt.device_id,
                "started_at": now,
            }
            for delivery in deliveries
            for attempt in delivery.begin_attempts(now)
        ],
    )


def outcomes(answered: Sequence[Answered]) -> sql.Steps:
    """Return the steps that write the outcomes of attempts, and which push tokens are dead."""
    rows, reported, references = [], [], []
    not_made: list[str] = []
    now = clock.now()
    for delivery, attempts, cancelled in answered:
        not_made += cancelled
        organization_id = delivery.claimed.organization_id
        for attempt in attempts:
            account, outcome = attempt.account, attempt.outcome
            assert outcome is not None  # it was answered
            if outcome is NOT_TRIED:
                not_made.append(attempt.id)
                continue
            references += provider_references.reference_rows(
                attempt.id, account.id, account.provider, outcome
            )
            if attempt.device_id:
                reported.append(
                    feedback.DeviceOutcome(
                        organization_id, attempt.device_id, attempt.started_at, outcome
                    )
                )
            if isinstance(outcome, Accepted):
                reason, provider_id = "", outcome.provider_id
            else:
                reason, provider_id = outcome.reason, ""
            rows.append(
                {
                    "id": attempt.id,
                    "organization_id": organization_id,
                    "outcome": type(outcome).__name__,
                    "reason": storable(reason[:200]) or None,
                    "provider_id": _stored(provider_id, delivery.claimed.id),
                    "latency_ms": attempt.latency_ms,
                    "sent_at": now if attempt.id == delivery.sent_by else None,
                }
            )
    any_sent = any(row["sent_at"] for row in rows)
    return {
        _OUTCOMES: sql.update_step(
            Attempt,
            rows,
            {"sent_at": _SENT_AT} if any_sent else {},
            _NEWLY_SENT if any_sent else _NONE_SENT,
            setting=sql.BY_GENERIC_PLAN,
        ),
        "provider_references": sql.insert_step(
            ProviderReference, references, "ON CONFLICT DO NOTHING"
        ),
        "feedback": feedback.insert_statement(reported) if reported else None,
        "not_made": removal(not_made),
    }


def _other_than(delivery_id: str, message_id: str) -> str | None:
    return message_id if message_id != delivery_id else None


def _stored(provider_id: str, delivery_id: str) -> str | None:
    return short_provider_id(storable(provider_id[:255]), delivery_id)[:255] or None


def removal(attempt_ids: Sequence[str]) -> sql.Step | None:
    """Return the step that removes attempts that were not made after all."""
    if not attempt_ids:
        return None
    text = f"DELETE FROM {Attempt._meta.db_table} WHERE id = ANY(%s::uuid[])"
    return sql.Step(text, [sql.array(attempt_ids)])


def record(
    decided: Sequence[OutgoingDelivery], steps: sql.Steps
) -> prepared_statements.PendingRows:
    """Execute the steps, and write the new statuses and events of deliveries; return the count of
    those that changed.

    All of it is one statement; addresses that bounced hard, which are few, are another.
    """
    now = clock.now()
    changed = sql.send(
        {
            _TRANSITIONS: transition_step([delivery.transition() for delivery in decided]),
            **steps,
            **event_steps(
                [row for delivery in decided for row in delivery.event_rows(now)],
                _TRANSITIONS,
                [
                    DerivedEvent(each.claimed.organization_id, EventType.SENT, each.sent_by)
                    for each in decided
                    if each.sent_by
                ],
                _OUTCOMES,
            ),
            "answer": sql.Step(f"SELECT count(*) FROM {_TRANSITIONS}") if decided else None,
        }
    )
    if bounced := [each for each in decided if each.hard_bounced]:
        suppressions.suppress(
            [
                suppressions.NewSuppression(
                    each.claimed.organization_id,
                    each.claimed.channel,
                    each.address,
                    "HARD_BOUNCE",
                    "PROVIDER",
                )
                for each in bounced
                if each.address
            ]
        )
    return changed


def count_sent(decided: Sequence[OutgoingDelivery]) -> None:
    """Count how long the deliveries that became SENT have taken, once that is stored."""
    now = clock.now().timestamp()
    timings.TIME_TO_PROVIDER.observe_each(
        (now - each.claimed.ready_since, (each.claimed.channel, str(each.rules.priority)))
        for each in decided
        if each.status is Status.SENT and each.claimed.ready_since is not None
    )


def count_outcomes(attempts: Iterable[SendAttempt]) -> None:
    """Count how long attempts took whose outcomes have become known, and end their spans."""
    known = list(attempts)
    for each in known:
        if each.span:
            spans.end_attempt(each.span, each.outcome, (each.latency_ms or 0) / 1000)
    timings.PROVIDER_SECONDS.observe_each(
        (
            (each.latency_ms or 0) / 1000,
            (each.account.kind, type(each.outcome).__name__),
        )
        for each in known
        if each.outcome is not None and each.outcome is not NOT_TRIED
    )


def log_fenced(
    decided: Sequence[OutgoingDelivery], changed: prepared_statements.PendingRows
) -> None:
    """Log how many deliveries did not change: another worker has claimed them since."""
    if decided and (count := len(decided) - changed.rows()[0][0]):
        log.warning("deliver.fenced", count=count, channel=decided[0].claimed.channel)


def receipts(answered: Sequence[Answered]) -> list[Receipt]:
    """Return the receipts that came with outcomes (the simulator's)."""
    return [receipt for each in answered for receipt in each.delivery.receipts(each.attempts)]
