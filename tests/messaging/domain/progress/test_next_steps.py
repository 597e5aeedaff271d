"""A table of a delivery's next steps, on values alone."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from messaging.domain.deliveries import DueDelivery
from messaging.domain.policy import BUILT_IN, MARKETING, TRANSACTIONAL
from messaging.domain.progress import next_steps
from messaging.domain.progress.next_steps import (
    BackoffLimits,
    DeliveryState,
    NextStep,
    StepEvent,
    UnknownAttempts,
    resend_at,
)
from messaging.domain.progress.outcomes import AttemptOutcome, OutcomeKind
from messaging.domain.statuses import EventType, Status, StatusReason, WaitReason

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LIMITS = BackoffLimits(backoff=1.0, unknown=60.0)
P = StatusReason.PROVIDER_ERROR
K, E = OutcomeKind, EventType

ACCEPTED = AttemptOutcome(K.ACCEPTED)
UNKNOWN = AttemptOutcome(K.UNKNOWN, "no answer")
RETRYABLE = AttemptOutcome(K.RETRYABLE, "503")
NOT_TRIED = AttemptOutcome(K.RETRYABLE, "no room", is_tried=False)
MISCONFIGURED = AttemptOutcome(K.MISCONFIGURED, "401")
GONE = AttemptOutcome(K.GONE, "unregistered")
DEAD = AttemptOutcome(K.REJECTED, "no such number", is_bounce=True, suppress_as="HARD_BOUNCE")
STOPPED = AttemptOutcome(K.REJECTED, "21610", is_unsubscribe=True, suppress_as="STOP")
SPAM = AttemptOutcome(K.REJECTED, "spam", is_of_content=True)
NO_ROUTE = AttemptOutcome(K.REJECTED, "the region is not enabled", is_of_route=True)


def seconds(count: float) -> datetime:
    return NOW + timedelta(seconds=count)


def delivery(
    *,
    channels: tuple[str, ...] = (),
    tries: int = 0,
    expires_after: float = 86400,
    fallback_after: int | None = None,
    has_untried_accounts: bool = False,
    has_failed_for_now: bool = False,
) -> DeliveryState:
    return DeliveryState(
        channels,
        tries,
        seconds(expires_after),
        fallback_after,
        has_untried_accounts,
        has_failed_for_now,
    )


def decide(
    state: DeliveryState,
    *outcomes: AttemptOutcome,
    may_fail_over: bool = True,
    jitter: float = 0.5,
) -> NextStep:
    return next_steps.after_outcomes(
        state, outcomes, now=NOW, may_fail_over=may_fail_over, limits=LIMITS, jitter=jitter
    )


def events(*pairs: tuple[EventType, str]) -> tuple[StepEvent, ...]:
    return tuple(StepEvent(*pair) for pair in pairs)


def waiting_for_now(reason: str) -> NextStep:
    return NextStep(
        Status.ACCEPTED,
        seconds(0.5),
        detail=reason,
        waiting=WaitReason.PROVIDER,
        events=events((E.DEFERRED, reason)),
        is_try=True,
        has_failed_for_now=True,
    )


def failed(reason: str) -> NextStep:
    return NextStep(Status.FAILED, reason=P, detail=reason, events=events((E.FAILED, P)))


@pytest.mark.parametrize(
    ("outcome", "step"),
    [
        (ACCEPTED, NextStep(Status.SENT, events=(StepEvent(E.SENT),))),
        (
            UNKNOWN,
            NextStep(Status.UNKNOWN, seconds(60), StatusReason.UNKNOWN_OUTCOME, "no answer"),
        ),
        (RETRYABLE, waiting_for_now("503")),
        (MISCONFIGURED, waiting_for_now("401")),
        (
            NOT_TRIED,
            NextStep(
                Status.ACCEPTED, seconds(1), waiting=WaitReason.PROVIDER, has_failed_for_now=True
            ),
        ),
        (
            DEAD,
            failed("no such number")._replace(
                events=events((E.BOUNCED, "no such number"), (E.FAILED, P)),
                suppress_as="HARD_BOUNCE",
            ),
        ),
        (
            STOPPED,
            failed("21610")._replace(
                events=events((E.UNSUBSCRIBED, "21610"), (E.FAILED, P)), suppress_as="STOP"
            ),
        ),
        (GONE, failed("unregistered")),
        (SPAM, failed("spam")),
        (NO_ROUTE, failed(NO_ROUTE.reason)),
    ],
)
def test_last_account_and_channel(outcome, step):
    assert decide(delivery(), outcome) == step


FAILOVER = NextStep(None, has_failed_for_now=True)


@pytest.mark.parametrize(
    ("outcome", "step"),
    [
        (RETRYABLE, FAILOVER._replace(events=events((E.FAILOVER, "503")))),
        (MISCONFIGURED, FAILOVER._replace(events=events((E.FAILOVER, "401")))),
        (NO_ROUTE, NextStep(None, events=events((E.FAILOVER, NO_ROUTE.reason)))),
        (SPAM, failed("spam")),
    ],
)
def test_another_account_is_tried_at_once(outcome, step):
    assert decide(delivery(has_untried_accounts=True), outcome) == step


def test_unknown_outcome_forbids_another_account():
    assert decide(delivery(has_untried_accounts=True), UNKNOWN).status is Status.UNKNOWN


@pytest.mark.parametrize("outcome", [RETRYABLE, NO_ROUTE])
def test_another_account_waits_for_the_next_claim_after_half_of_the_lease(outcome):
    step = decide(delivery(has_untried_accounts=True), outcome, may_fail_over=False)
    assert (step.status, step.due_at, step.is_try) == (Status.ACCEPTED, NOW, True)
    assert step.events == events((E.FAILOVER, outcome.reason))


def test_second_claim_backs_off_despite_an_untried_account():
    step = decide(delivery(has_untried_accounts=True, tries=1), RETRYABLE, may_fail_over=False)
    assert (step.due_at, step.waiting) == (seconds(1), WaitReason.PROVIDER)


@pytest.mark.parametrize(
    ("outcome", "falls_back"),
    [(DEAD, True), (GONE, True), (NO_ROUTE, True), (SPAM, False), (UNKNOWN, False)],
)
def test_another_channel(outcome, falls_back):
    step = decide(delivery(channels=("EMAIL",)), outcome)
    assert step.falls_back is falls_back
    if falls_back:
        assert (step.status, step.due_at, step.reason) == (Status.ACCEPTED, NOW, P)
        assert step.events[-1] == StepEvent(E.FALLBACK, P)


def test_retry_comes_before_another_channel():
    step = decide(delivery(channels=("EMAIL",)), RETRYABLE)
    assert (step.falls_back, step.waiting) == (False, WaitReason.PROVIDER)


@pytest.mark.parametrize(
    ("outcomes", "status"),
    [
        ((ACCEPTED, GONE), Status.SENT),
        ((GONE, ACCEPTED), Status.SENT),
        ((UNKNOWN, ACCEPTED), Status.SENT),
        ((UNKNOWN, RETRYABLE), Status.UNKNOWN),
        ((GONE, RETRYABLE), Status.ACCEPTED),
        ((GONE, GONE), Status.FAILED),
    ],
)
def test_several_devices(outcomes, status):
    """One device that accepted is enough; one in doubt forbids another try."""
    assert decide(delivery(), *outcomes).status is status


@pytest.mark.parametrize(
    ("channels", "fallback_after", "due_at"),
    [((), 300, None), (("SMS",), None, None), (("SMS",), 300, seconds(300))],
)
def test_sent_delivery_falls_back_unless_it_is_confirmed(channels, fallback_after, due_at):
    state = delivery(channels=channels, fallback_after=fallback_after)
    assert decide(state, ACCEPTED).due_at == due_at


def test_temporarily_failed_account_is_waited_for():
    """The second account serves no such region; the first does, and is down."""
    step = decide(delivery(has_failed_for_now=True), NO_ROUTE)
    assert (step.status, step.waiting) == (Status.ACCEPTED, WaitReason.PROVIDER)


@pytest.mark.parametrize(
    ("tries", "jitter", "retry_after", "wait"),
    [
        (0, 0.0, None, 0),
        (0, 1.0, None, 1),
        (3, 1.0, None, 8),
        (3, 0.5, None, 4),
        (3, 0.5, 6.0, 6),
        (3, 1.0, 6.0, 8),
        (30, 1.0, None, 900),
        (0, 0.0, 9999.0, 900),
    ],
)
def test_backoff_doubles_up_to_its_limit(tries, jitter, retry_after, wait):
    state = delivery(tries=tries)
    step = next_steps.back_off(
        state, now=NOW, first=1.0, jitter=jitter, reason="503", retry_after=retry_after
    )
    assert step.due_at == seconds(wait)


def test_wait_beyond_the_expiry_is_a_failure():
    outcome = AttemptOutcome(K.RETRYABLE, "503", retry_after=60.0)
    step = decide(delivery(expires_after=10), outcome)
    assert step == failed("503")._replace(has_failed_for_now=True)


@pytest.mark.parametrize(
    ("tries", "status", "reason"),
    [(0, Status.EXPIRED, StatusReason.EXPIRED), (1, Status.FAILED, P)],
)
def test_too_late(tries, status, reason):
    step = next_steps.expire(tries)
    assert (step.status, step.reason) == (status, reason)


@pytest.mark.parametrize("channels", [(), ("SMS",)])
def test_blocked_channel_names_the_entry_that_decided(channels):
    step = next_steps.end_channel(
        channels, Status.BLOCKED, "SUPPRESSED", "suppressed", now=NOW, entry="7"
    )
    kind = E.FALLBACK if channels else E.BLOCKED
    assert step.events == (StepEvent(kind, "SUPPRESSED", "7"),)


@pytest.mark.parametrize(
    ("outcome", "ends"),
    [(DEAD, True), (SPAM, True), (GONE, True), (NO_ROUTE, False), (RETRYABLE, False)],
)
def test_only_some_outcomes_end_a_device(outcome, ends):
    assert outcome.ends_device is ends


LAST = NOW - timedelta(minutes=1)
BACKOFF = (0.0, 300.0)
KEY = UUID("01b8fc3f-fcfb-7707-a993-53fffa4651c0")


def due(channel: str, category: str) -> DueDelivery:
    return DueDelivery(
        id=KEY,
        organization_id="acme",
        message_id=KEY,
        category=category,
        priority=0,
        channel=channel,
        scheduled_for=None,
        due_at=NOW,
        fence=1,
        expires_at=NOW + timedelta(hours=1),
        tries=0,
        test=False,
        channels=[],
        now=NOW,
    )


@pytest.mark.parametrize(
    ("channel", "category", "times", "moment"),
    [
        ("SMS", TRANSACTIONAL, 1, NOW),
        ("SMS", TRANSACTIONAL, 2, LAST + timedelta(seconds=360)),
        ("SMS", TRANSACTIONAL, 3, None),
        ("SMS", MARKETING, 1, None),
        ("PUSH", MARKETING, 1, NOW),
    ],
)
def test_resend_of_an_unknown_outcome(channel, category, times, moment):
    assert (
        resend_at(
            due(channel, category),
            UnknownAttempts(times, LAST),
            BUILT_IN[category],
            receipt_seconds=60.0,
            backoff_seconds=BACKOFF,
        )
        == moment
    )
