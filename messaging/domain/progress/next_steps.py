"""What follows from the outcomes of a delivery's attempts: failover, fallback, waiting, or the end.

A decision takes the delivery as it is and returns the step; the send loop applies and stores it.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from messaging.domain.channels import Channel
from messaging.domain.deliveries import DueDelivery
from messaging.domain.policy import CategoryRules
from messaging.domain.progress.outcomes import PRECEDENCE, AttemptOutcome, OutcomeKind
from messaging.domain.sentences import sentence
from messaging.domain.statuses import EventType, Status, StatusReason, WaitReason

BACKOFF_LIMIT = 15 * 60.0
"""Seconds."""
NO_ROOM_SECONDS = 1.0
"""How long a delivery waits that could not be handed over because too many sends are under way."""


class BackoffLimits(NamedTuple):
    """Waits in seconds, as settings set them."""

    backoff: float
    """The first backoff, which doubles with each try."""
    unknown: float
    """How long an unknown outcome waits for a receipt."""


class DeliveryState(NamedTuple):
    """A claimed delivery, as far as its next step depends on it."""

    channels: Sequence[str]
    """The channels to fall back to."""
    tries: int
    expires_at: datetime
    fallback_after: int | None
    """FIRST_DELIVERED: the seconds to wait for a confirmation before the next channel is tried."""
    has_untried_accounts: bool = False
    has_failed_for_now: bool = False
    """An account of this claim failed for now, and may take it later."""


class StepEvent(NamedTuple):
    """An event that is written with the step."""

    type: EventType
    reason: str | None = None
    entry: str | None = None
    """The consent entry or suppression because of which a gate stopped the delivery."""


class NextStep(NamedTuple):
    """What changes of a delivery."""

    status: Status | None
    """None: nothing is decided, the next account is tried at once."""
    due_at: datetime | None = None
    reason: str | None = None
    detail: str | None = None
    waiting: WaitReason | None = None
    events: tuple[StepEvent, ...] = ()
    is_try: bool = False
    """It counts as another try."""
    falls_back: bool = False
    """The next channel takes the place of this one."""
    has_failed_for_now: bool = False
    """An account failed for now, and may take it later."""
    suppress_as: str | None = None
    """The reason to suppress the address: it bounced, or the recipient opted out."""


FINAL_EVENTS = {
    Status.FAILED: EventType.FAILED,
    Status.BLOCKED: EventType.BLOCKED,
    Status.EXPIRED: EventType.EXPIRED,
}


def end(
    status: Status,
    reason: str | None = None,
    detail: str | None = None,
    *,
    entry: str | None = None,
) -> NextStep:
    """Return the step that ends a delivery in a status."""
    event = FINAL_EVENTS.get(status)
    events = (StepEvent(event, reason, entry),) if event else ()
    return NextStep(status, reason=reason, detail=detail, events=events)


def wait(reason: WaitReason, until: datetime) -> NextStep:
    """Return the step that makes a delivery wait: it is due again at that time."""
    return NextStep(Status.ACCEPTED, until, waiting=reason)


def release(now: datetime) -> NextStep:
    """Return the step that releases a claim: the delivery is ready again as it was."""
    return NextStep(Status.ACCEPTED, now)


def expire(tries: int) -> NextStep:
    """Return the end of a delivery whose time has passed: no provider took it as far as is known,
    or its worker came too late.
    """
    if tries:
        detail = sentence("no provider is known to have taken it in time")
        return end(Status.FAILED, StatusReason.PROVIDER_ERROR, detail)
    return end(Status.EXPIRED, StatusReason.EXPIRED, sentence("too late to be of use"))


def back_off(
    delivery: DeliveryState,
    *,
    now: datetime,
    first: float,
    jitter: float,
    reason: str,
    retry_after: float | None = None,
) -> NextStep:
    """Wait with full jitter (`first` · 2ⁿ seconds), at least `retry_after` seconds; or fail, if the
    delivery would expire meanwhile.

    `jitter` is a random number from 0 to 1.
    """
    longest = min(first * 2 ** min(delivery.tries, 20), BACKOFF_LIMIT)
    delay = max(longest * jitter, min(retry_after or 0, BACKOFF_LIMIT))
    until = now + timedelta(seconds=delay)
    if until >= delivery.expires_at:
        return end(Status.FAILED, StatusReason.PROVIDER_ERROR, reason)
    event = StepEvent(EventType.DEFERRED, reason)
    step = wait(WaitReason.PROVIDER, until)
    return step._replace(detail=reason, events=(event,), is_try=True)


def end_channel(
    channels: Sequence[str],
    status: Status,
    reason: str,
    detail: str,
    *,
    now: datetime,
    entry: str | None = None,
) -> NextStep:
    """Fall back to the next of the remaining channels; without one, end in a status."""
    if not channels:
        return end(status, reason, detail, entry=entry)
    event = StepEvent(EventType.FALLBACK, reason, entry)
    return NextStep(Status.ACCEPTED, now, reason, detail, events=(event,), falls_back=True)


def after_outcomes(
    delivery: DeliveryState,
    outcomes: Sequence[AttemptOutcome],
    *,
    now: datetime,
    may_fail_over: bool,
    limits: BackoffLimits,
    jitter: float,
) -> NextStep:
    """Decide what follows from the outcomes of the attempts.

    Several attempts are several devices of one recipient: one that was accepted is enough, and one
    whose outcome is unknown forbids another try. `may_fail_over`: there is time left in this claim
    to try another account.
    """
    outcome = min(outcomes, key=_precedence) if len(outcomes) > 1 else outcomes[0]
    if outcome.kind is OutcomeKind.ACCEPTED:
        return sent(delivery.channels, delivery.fallback_after, now)
    match outcome.kind:
        case OutcomeKind.UNKNOWN:
            until = now + timedelta(seconds=limits.unknown)
            reason = StatusReason.UNKNOWN_OUTCOME
            return NextStep(Status.UNKNOWN, until, reason, outcome.reason)
        case OutcomeKind.GONE:
            return _end_channel(delivery, outcome, now)
        case OutcomeKind.REJECTED:
            if outcome.is_of_content:
                return end(Status.FAILED, StatusReason.PROVIDER_ERROR, outcome.reason)
            has_route = delivery.has_untried_accounts or delivery.has_failed_for_now
            if not (outcome.is_of_route and has_route):
                return _reject(delivery, outcome, now)
            # if an account failed for now, the delivery waits for that one
            return _fail_over(
                delivery, outcome, now, may=may_fail_over, first=limits.backoff, jitter=jitter
            )
    step = _fail_over(
        delivery, outcome, now, may=may_fail_over, first=limits.backoff, jitter=jitter
    )
    return step._replace(has_failed_for_now=True)


def _precedence(outcome: AttemptOutcome) -> int:
    return PRECEDENCE[outcome.kind]


_SENT = NextStep(Status.SENT, events=(StepEvent(EventType.SENT),))


def sent(channels: Sequence[str], fallback_after: int | None, now: datetime) -> NextStep:
    """Return the step of a delivery that a provider accepted; see `DeliveryState`."""
    if not (channels and fallback_after):
        return _SENT
    return _SENT._replace(due_at=now + timedelta(seconds=fallback_after))


def _fail_over(
    delivery: DeliveryState,
    outcome: AttemptOutcome,
    now: datetime,
    *,
    may: bool,
    first: float,
    jitter: float,
) -> NextStep:
    """Go on to the next account, now or by the next claim; or wait."""
    event = StepEvent(EventType.FAILOVER, outcome.reason)
    if delivery.has_untried_accounts and may:
        return NextStep(None, events=(event,))
    if not outcome.is_tried:
        return wait(WaitReason.PROVIDER, now + timedelta(seconds=NO_ROOM_SECONDS))
    if delivery.has_untried_accounts and not delivery.tries:
        return release(now)._replace(events=(event,), is_try=True)
    return back_off(
        delivery,
        now=now,
        first=first,
        jitter=jitter,
        reason=outcome.reason,
        retry_after=outcome.retry_after,
    )


def _reject(delivery: DeliveryState, outcome: AttemptOutcome, now: datetime) -> NextStep:
    """End the channel, and suppress the address if the outcome says so."""
    step = _end_channel(delivery, outcome, now)
    events = step.events
    if outcome.is_bounce:
        events = (StepEvent(EventType.BOUNCED, outcome.reason), *events)
    elif outcome.is_unsubscribe:
        events = (StepEvent(EventType.UNSUBSCRIBED, outcome.reason), *events)
    return step._replace(events=events, suppress_as=outcome.suppress_as)


def _end_channel(delivery: DeliveryState, outcome: AttemptOutcome, now: datetime) -> NextStep:
    reason = StatusReason.PROVIDER_ERROR
    return end_channel(delivery.channels, Status.FAILED, reason, outcome.reason, now=now)


# --- unknown outcomes for which no receipt came ---------------------------------------------------
class UnknownAttempts(NamedTuple):
    """How often a delivery was sent with an unknown outcome, and when last."""

    times: int
    last: datetime


def resend_at(
    delivery: DueDelivery,
    sent: UnknownAttempts,
    rules: CategoryRules,
    *,
    receipt_seconds: float,
    backoff_seconds: Sequence[float],
) -> datetime | None:
    """Return when a delivery is sent again; None: it waits for manual review.

    `receipt_seconds` is how long a receipt is awaited, and `backoff_seconds` how much longer before
    each resend: after as many resends, a person decides.
    """
    may_resend = rules.resend_unknown or delivery.channel == Channel.PUSH
    if not may_resend or sent.times > len(backoff_seconds):
        return None
    backoff = backoff_seconds[sent.times - 1]
    if not backoff:
        return delivery.now
    return sent.last + timedelta(seconds=receipt_seconds + backoff)
