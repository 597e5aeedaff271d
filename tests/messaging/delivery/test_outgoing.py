"""A delivery while a worker sends it: steps add up over its attempts. Without a database."""

from datetime import UTC, datetime, timedelta

import pytest

from messaging.delivery.outgoing import DeviceContent, OutgoingDelivery, outcome_value
from messaging.domain.channels import Channel
from messaging.domain.deliveries import ClaimedDelivery
from messaging.domain.policy import BUILT_IN
from messaging.domain.progress.outcomes import AttemptOutcome, OutcomeKind
from messaging.domain.statuses import Status, StatusReason, WaitReason
from messaging.policy.organization_policy import Account
from rme.core.outcomes import (
    NOT_TRIED,
    Accepted,
    Fault,
    Gone,
    Misconfigured,
    OptOut,
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


def test_accepted_delivery_waits_for_its_confirmation():
    delivery = outgoing(channels=("EMAIL",), fallback_after=60)
    decide(delivery, Accepted("7"))
    assert (delivery.status, delivery.due_at) == (Status.SENT, NOW + timedelta(seconds=60))


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
def test_only_retryable_or_misconfigured_tries_the_next_account(outcome, status):
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
def test_only_a_dead_address_falls_back_to_the_next_channel(outcome, expected):
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


@pytest.mark.parametrize(
    ("outcome", "reason", "events"),
    [
        (DEAD, "HARD_BOUNCE", ["bounced", "failed"]),
        (Rejected("21610", opt_out=OptOut.STOP), "STOP", ["unsubscribed", "failed"]),
        (Rejected("they complained", opt_out=OptOut.COMPLAINT), "COMPLAINT", ["failed"]),
    ],
)
def test_dead_and_stopped_addresses_are_suppressed(outcome, reason, events):
    delivery = outgoing((FIRST, SECOND))
    decide(delivery, outcome)
    assert delivery.suppress_as == reason
    assert [event.type for event in delivery.events] == events


ROUTE = Rejected("the region is not enabled", Fault.ROUTE)


def test_refused_route_goes_to_the_next_account():
    delivery = outgoing((FIRST, SECOND), channels=("EMAIL",))
    decide(delivery, ROUTE)
    assert (delivery.status, [event.type for event in delivery.events]) == (None, ["failover"])
    assert (delivery.next_accounts(), delivery.suppress_as) == ([SECOND], None)


def test_refused_route_waits_for_the_next_claim():
    delivery = outgoing((FIRST, SECOND))
    decide(delivery, ROUTE, may_fail_over=False)
    assert (delivery.status, delivery.due_at, delivery.tries) == (Status.ACCEPTED, NOW, 1)


@pytest.mark.parametrize(
    ("channels", "expected"),
    [((), (Status.FAILED, P, "SMS")), (("EMAIL",), (Status.ACCEPTED, P, "EMAIL"))],
)
def test_route_refused_by_all_accounts_ends_the_channel(channels, expected):
    delivery = outgoing((FIRST, SECOND), channels=channels)
    decide(delivery, ROUTE)
    delivery.take_attempts()
    delivery.begin_attempts(NOW)
    decide(delivery, ROUTE)
    assert (delivery.status, delivery.reason, delivery.channel) == expected


@pytest.mark.parametrize("failure", [Retryable("503"), Misconfigured("401")])
def test_temporarily_failed_account_is_waited_for(failure):
    """The second account serves no such region; the first does, and is down."""
    delivery = outgoing((FIRST, SECOND))
    decide(delivery, failure)
    delivery.take_attempts()
    delivery.begin_attempts(NOW)
    decide(delivery, ROUTE)
    assert (delivery.status, delivery.waiting) == (Status.ACCEPTED, WaitReason.PROVIDER)


@pytest.mark.parametrize(
    ("tries", "expected"),
    [(0, (Status.EXPIRED, StatusReason.EXPIRED)), (1, (Status.FAILED, P))],
)
def test_too_late(tries, expected):
    delivery = outgoing(tries=tries)
    delivery.expire()
    assert (delivery.status, delivery.reason) == expected


def test_cancelled_attempts_keep_the_account_of_the_previous_try():
    delivery = outgoing((FIRST, SECOND))
    decide(delivery, Retryable("503"))
    delivery.take_attempts()
    (second,) = delivery.begin_attempts(NOW)
    assert delivery.cancel_attempts() == [second.id]
    assert delivery.account is FIRST


@pytest.mark.parametrize(
    ("outcome", "value"),
    [
        (Accepted("7"), AttemptOutcome(OutcomeKind.ACCEPTED)),
        (Unknown("no answer"), AttemptOutcome(OutcomeKind.UNKNOWN, "no answer")),
        (Retryable("503", 7.0), AttemptOutcome(OutcomeKind.RETRYABLE, "503", 7.0)),
        (
            NOT_TRIED,
            AttemptOutcome(OutcomeKind.RETRYABLE, "no room on the way there", is_tried=False),
        ),
        (Misconfigured("401"), AttemptOutcome(OutcomeKind.MISCONFIGURED, "401")),
        (Gone("unregistered"), AttemptOutcome(OutcomeKind.GONE, "unregistered")),
        (
            DEAD,
            AttemptOutcome(
                OutcomeKind.REJECTED, "no such number", is_bounce=True, suppress_as="HARD_BOUNCE"
            ),
        ),
        (
            Rejected("21610", opt_out=OptOut.STOP),
            AttemptOutcome(OutcomeKind.REJECTED, "21610", is_unsubscribe=True, suppress_as="STOP"),
        ),
        (ROUTE, AttemptOutcome(OutcomeKind.REJECTED, ROUTE.reason, is_of_route=True)),
        (
            Rejected("spam", Fault.CONTENT),
            AttemptOutcome(OutcomeKind.REJECTED, "spam", is_of_content=True),
        ),
    ],
)
def test_provider_outcome_as_a_value(outcome, value):
    assert outcome_value(outcome) == value
    assert value.kind == type(outcome).__name__  # as attempts store it
