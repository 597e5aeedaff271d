"""What sending writes: attempts before they are made, their outcomes, where deliveries stand."""

from collections.abc import Sequence

import structlog

from messaging.consent import suppressions
from messaging.delivery.next_steps import Sending, Shot, storable
from messaging.feedback import provider_references
from messaging.models import Attempt, ProviderReference
from messaging.models.transitions import transition_step
from messaging.webhooks.events import EventRow, event_steps
from push import feedback
from rme.core import ids
from rme.core.db import clock, prepared_statements, sql
from rme.core.outcomes import NOT_TRIED, Accepted

log = structlog.get_logger(__name__)

Answered = Sequence[tuple[Sending, Sequence[Shot]]]
"""Deliveries, each with its attempts whose outcomes are to be written."""


def attempts(hand: Sequence[Sending]) -> sql.Part | None:
    """Return the step that writes, for each delivery, attempts with the account that is next."""
    now = clock.now()
    rows = []
    for sending in hand:
        for device_id, content, account in sending.next_turns():
            shot = Shot(ids.new_text_id(), account, device_id, content, now)
            sending.fire(shot)
            rows.append(
                {
                    "id": shot.attempt_id,
                    "organization_id": sending.claimed.organization_id,
                    "message_id": sending.claimed.message_id,
                    "delivery_id": sending.claimed.id,
                    "fence": sending.claimed.fence,
                    "channel": sending.claimed.channel,
                    "provider": account.name,
                    "account_id": account.id,
                    "device_id": device_id,
                    "started_at": now,
                }
            )
    return sql.insert_step(Attempt, rows)


def outcomes(answered: Answered) -> sql.Steps:
    """Return the steps that write what attempts came to, and which tokens are dead."""
    rows, said, own_ids = [], [], []
    not_made: list[str] = []
    for sending, shots in answered:
        for shot in shots:
            account, outcome = shot.account, shot.outcome
            assert outcome is not None  # it was answered
            if outcome is NOT_TRIED:
                not_made.append(shot.attempt_id)
                continue
            own_ids += provider_references.reference_rows(
                shot.attempt_id, account.id, account.provider, outcome
            )
            if shot.device_id:
                whose = sending.claimed.organization_id
                said.append(feedback.DeviceOutcome(whose, shot.device_id, shot.started_at, outcome))
            if isinstance(outcome, Accepted):
                reason, provider_id = "", outcome.provider_id
            else:
                reason, provider_id = outcome.reason, ""
            rows.append(
                {
                    "id": shot.attempt_id,
                    "organization_id": sending.claimed.organization_id,
                    "outcome": type(outcome).__name__,
                    "reason": storable(reason[:200]) or None,
                    "provider_id": storable(provider_id[:255]) or None,
                    "latency_ms": shot.latency_ms,
                }
            )
    return {
        "outcomes": sql.update_step(Attempt, rows),
        "own_ids": sql.insert_step(ProviderReference, own_ids, "ON CONFLICT DO NOTHING"),
        "feedback": feedback.insert_statement(said),
        "not_made": removing(not_made),
    }


def removing(attempt_ids: Sequence[str]) -> sql.Part | None:
    """Return the step that removes attempts that were not made after all."""
    if not attempt_ids:
        return None
    text = f"DELETE FROM {Attempt._meta.db_table} WHERE id = ANY(%s::uuid[])"
    return sql.Part(text, [sql.array(attempt_ids)])


def record(hand: Sequence[Sending], steps: sql.Steps) -> prepared_statements.PendingRows:
    """Write where the deliveries stand now, the events of it, and the steps that attempts make.

    All that by one statement; addresses found dead, which are few, by another.
    """
    moved = sql.send(
        {
            **steps,
            "transitions": transition_step([sending.transition() for sending in hand]),
            **event_steps(_events(hand), "transitions"),
            "answer": sql.Part("SELECT count(*) FROM transitions") if hand else None,
        }
    )
    suppressions.suppress(
        [
            suppressions.NewSuppression(
                each.claimed.organization_id,
                each.claimed.channel,
                each.address,
                "HARD_BOUNCE",
                "PROVIDER",
            )
            for each in hand
            if each.address and each.bounced_hard
        ]
    )
    return moved


def log_fenced(hand: Sequence[Sending], moved: prepared_statements.PendingRows) -> None:
    """Log deliveries that another worker had taken over, and moved."""
    if hand and (count := len(hand) - moved.rows()[0][0]):
        log.warning("deliver.fenced", count=count, channel=hand[0].claimed.channel)


def _events(hand: Sequence[Sending]) -> list[EventRow]:
    now = clock.now()
    return [
        EventRow(
            sending.claimed.organization_id,
            sending.claimed.message_id,
            sending.claimed.id,
            event.type,
            now,
            channel=sending.claimed.channel,
            provider=event.provider,
            detail=event.detail,
        )
        for sending in hand
        for event in sending.events
    ]
