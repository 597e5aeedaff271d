"""What follows from outcomes: a table of a delivery's next status, without a database."""

from datetime import UTC, datetime, timedelta

import pytest

from messaging.delivery.claims import ClaimedDelivery
from messaging.delivery.next_steps import DeviceContent, OutgoingDelivery
from messaging.models.statuses import Status, StatusReason, WaitReason
from messaging.policy.organization_policy import BUILT_IN, Account
from rme.core.channels import Channel
from rme.core.outcomes import (
    NOT_TRIED,
    Accepted,
    Fault,
    Gone,
    Misconfigured,
    Outcome,
    Rejected,
    Retryable,
    Unknown,
)
from rme.core.provider import Sms

NOW = datetime(2030, 1, 1, tzinfo=UTC)
FIRST, SECOND = (Account(number, f"sms-{number}", Channel.SMS, None) for number in (1, 2))
DEAD = Rejected("no such number", Fault.RECIPIENT, hard=True)
P = StatusReason.PROVIDER_ERROR


def outgoing(
    accounts: tuple[Account, ...] = (FIRST,),
    channels: tuple[str, ...] = (),
    devices: tuple[str | None, ...] = (None,),
    **claimed: object,
) -> OutgoingDelivery:
    """Build a delivery by SMS with an attempt on the first account for each device."""
    values: dict[str, object] = {
        "organization_id": "org",
        "id": "01b8fc3f-fcfb-7707-a993-53fffa4651c0",
        "message_id": "01b8fc3f-fcfb-74dc-8b91-4396346ce5f8",
        "contact_id": "ada",
        "category": "TRANSACTIONAL",
        "channels": list(channels),
        "channel": "SMS",
        "address": "+12125550100",
        "template_version_id": None,
        "fence": 1,
        "tries": 0,
        "expires_at": NOW + timedelta(hours=24),
        "test": False,
        "template": None,
        "fallback_after": None,
        "previous_account_id": None,
        "ready_since": None,
        "body": {},
        **claimed,
    }
    delivery = OutgoingDelivery(ClaimedDelivery(**values), BUILT_IN["TRANSACTIONAL"])  # type: ignore[arg-type]
    contents = [DeviceContent(device, Sms("+12125550100", "Hi")) for device in devices]
    delivery.set_contents(contents, [accounts] * len(devices))
    delivery.begin_attempts(NOW)
    return delivery


def decide(delivery: OutgoingDelivery, *outcomes: Outcome, may_fail_over: bool = True) -> None:
    for attempt, outcome in zip(delivery.attempts, outcomes, strict=True):
        attempt.outcome = outcome
    delivery.apply_outcomes(now=NOW, may_fail_over=may_fail_over)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Accepted("7"), (Status.SENT, None, None)),
        (Unknown("no answer"), (Status.UNKNOWN, StatusReason.UNKNOWN_OUTCOME, None)),
        (Retryable("503"), (Status.ACCEPTED, None, WaitReason.PROVIDER)),
        (Misconfigured("401"), (Status.ACCEPTED, None, WaitReason.PROVIDER)),
        (NOT_TRIED, (Status.ACCEPTED, None, WaitReason.PROVIDER)),
        (DEAD, (Status.FAILED, P, None)),
        (Gone("unregistered"), (Status.FAILED, P, None)),
        (Rejected("spam", Fault.CONTENT), (Status.FAILED, P, None)),
    ],
)
def test_the_last_account_and_channel(outcome, expected):
    delivery = outgoing()
    decide(delivery, outcome)
    assert (delivery.status, delivery.reason, delivery.waiting) == expected


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Retryable("503"), None),
        (Misconfigured("401"), None),
        (Unknown("no answer"), Status.UNKNOWN),
        (DEAD, Status.FAILED),
        (Rejected("spam", Fault.CONTENT), Status.FAILED),
    ],
)
def test_another_account_is_left(outcome, status):
    """No status is decided: the next account is tried at once. An unknown outcome forbids that."""
    delivery = outgoing((FIRST, SECOND))
    decide(delivery, outcome)
    assert delivery.status is status
    assert ("failover" in [event.type for event in delivery.events]) == (status is None)


def test_half_of_the_lease_has_passed_so_the_next_account_waits_for_the_next_claim():
    delivery = outgoing((FIRST, SECOND))
    decide(delivery, Retryable("503"), may_fail_over=False)
    assert (delivery.status, delivery.due_at, delivery.tries) == (Status.ACCEPTED, NOW, 1)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (DEAD, (Status.ACCEPTED, "EMAIL", [])),
        (Gone("unregistered"), (Status.ACCEPTED, "EMAIL", [])),
        (Rejected("spam", Fault.CONTENT), (Status.FAILED, "SMS", ["EMAIL"])),
        (Unknown("no answer"), (Status.UNKNOWN, "SMS", ["EMAIL"])),
        (Retryable("503"), (Status.ACCEPTED, "SMS", ["EMAIL"])),
    ],
)
def test_another_channel_is_left(outcome, expected):
    delivery = outgoing(channels=("EMAIL",))
    decide(delivery, outcome)
    assert (delivery.status, delivery.channel, delivery.channels) == expected


@pytest.mark.parametrize(
    ("outcomes", "status"),
    [
        ((Accepted(), Gone("dead")), Status.SENT),
        ((Gone("dead"), Accepted()), Status.SENT),
        ((Unknown("no answer"), Accepted()), Status.SENT),
        ((Unknown("no answer"), Retryable("503")), Status.UNKNOWN),
        ((Gone("dead"), Retryable("503")), Status.ACCEPTED),
        ((Gone("dead"), Gone("dead")), Status.FAILED),
    ],
)
def test_several_devices(outcomes, status):
    """One device that accepted is enough; one in doubt forbids another try."""
    delivery = outgoing(devices=("phone", "tablet"))
    decide(delivery, *outcomes)
    assert delivery.status is status


def test_a_wait_beyond_the_expiry_is_a_failure():
    delivery = outgoing(expires_at=NOW + timedelta(seconds=10))
    decide(delivery, Retryable("503", retry_after=60.0))
    assert (delivery.status, delivery.reason, delivery.detail) == (Status.FAILED, P, "503")


def test_a_hard_bounce_is_remembered_for_the_suppressions():
    delivery = outgoing()
    decide(delivery, DEAD)
    assert delivery.hard_bounced
    assert [event.type for event in delivery.events] == ["bounced", "failed"]


@pytest.mark.parametrize(
    ("tries", "expected"),
    [(0, (Status.EXPIRED, StatusReason.EXPIRED)), (1, (Status.FAILED, P))],
)
def test_too_late(tries, expected):
    delivery = outgoing(tries=tries)
    delivery.expire()
    assert (delivery.status, delivery.reason) == expected


def test_attempts_that_are_cancelled_leave_the_account_of_the_try_before():
    delivery = outgoing((FIRST, SECOND))
    decide(delivery, Retryable("503"))
    delivery.take_attempts()
    (second,) = delivery.begin_attempts(NOW)
    assert delivery.cancel_attempts() == [second.id]
    assert delivery.account is FIRST
