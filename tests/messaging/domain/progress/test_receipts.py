"""Receipts fold into the same events and status, in any order and any number of times."""

from datetime import UTC, datetime, timedelta
from itertools import permutations
from uuid import UUID

import pytest

from messaging.domain.progress.receipts import (
    NO_EVENT,
    Fold,
    FoldedDelivery,
    Receipt,
    SeenEvent,
    SentDelivery,
    fold,
    moves,
)
from messaging.domain.progress.transitions import Transition
from messaging.domain.statuses import EventType, Status, StatusReason

E = EventType
NOW = datetime(2030, 1, 1, tzinfo=UTC)
KEY = UUID("01b8fc3f-fcfb-7707-a993-53fffa4651c0")


def delivery(
    *seen: EventType,
    channel: str = "SMS",
    status: Status = Status.SENT,
    fallback_after: int | None = None,
) -> SentDelivery:
    return SentDelivery(
        id=KEY,
        organization_id="acme",
        message_id=KEY,
        channel=channel,
        address="+12125550100",
        provider="first",
        status=status,
        fallback_after=fallback_after,
        seen=frozenset(SeenEvent(channel, kind) for kind in seen),
        test=False,
    )


def receipt(kind: str, **fields) -> Receipt:
    return Receipt(KEY, kind, **fields)


def kinds(folded: Fold) -> set[str]:
    return {event.type for event in folded.events}


@pytest.mark.parametrize(
    ("channel", "received", "status", "events"),
    [
        ("SMS", [E.SENT], Status.SENT, {E.SENT}),
        ("SMS", [E.DELIVERED], Status.DELIVERED, {E.SENT, E.DELIVERED}),
        ("EMAIL", [E.OPEN], Status.DELIVERED, {E.SENT, E.DELIVERED, E.OPEN}),
        ("SMS", [E.FAILED], Status.FAILED, {E.FAILED}),
        ("SMS", [E.SENT, E.FAILED], Status.FAILED, {E.SENT, E.FAILED}),
        ("SMS", [E.FAILED, E.DELIVERED], Status.DELIVERED, {E.SENT, E.DELIVERED, E.FAILED}),
        ("EMAIL", [E.DELIVERED, E.BOUNCED], Status.FAILED, {E.SENT, E.DELIVERED, E.BOUNCED}),
        ("SMS", [E.DEFERRED], None, {E.SENT, E.DEFERRED}),
        ("SMS", [E.UNSUBSCRIBED], None, {E.UNSUBSCRIBED}),
        ("SMS", [NO_EVENT], None, set()),
    ],
)
def test_receipts_in_any_order(channel, received, status, events):
    orders = list(permutations([receipt(kind) for kind in received]))
    assert orders
    for order in orders:
        once = fold(delivery(channel=channel), order)
        twice = fold(delivery(channel=channel), [*order, *order])
        assert (once.status, kinds(once)) == (twice.status, kinds(twice)) == (status, events)
        assert len(twice.events) == len(events)


def test_existing_events_are_not_added_again():
    assert kinds(fold(delivery(E.SENT), [receipt(E.DELIVERED)])) == {E.DELIVERED}


def test_open_counts_once_for_a_person_and_once_for_a_machine():
    opens = [receipt(E.OPEN, machine=machine) for machine in (True, False, True)]
    folded = fold(delivery(E.SENT, E.DELIVERED, channel="EMAIL"), opens)
    assert [event.receipt.machine for event in folded.events] == [True, False]


def test_soft_bounce_after_the_delivery_is_an_automatic_reply():
    folded = fold(delivery(E.SENT, E.DELIVERED), [receipt(E.BOUNCED, soft=True)])
    assert folded.events == []


@pytest.mark.parametrize(
    ("received", "status"),
    [(E.FAILED, None), (E.SENT, None), (E.DELIVERED, Status.DELIVERED)],
)
def test_only_a_confirmation_counts_from_the_channel_before_a_fallback(received, status):
    folded = fold(delivery(channel="EMAIL"), [receipt(received, channel="SMS")])
    assert folded.status is status


def test_bounced_email_is_not_confirmed_after_the_fallback():
    bounced = delivery()
    bounced = bounced._replace(seen=frozenset({SeenEvent("EMAIL", E.BOUNCED)}))
    assert fold(bounced, [receipt(E.OPEN, channel="EMAIL")]).status is None


@pytest.mark.parametrize(
    ("fields", "reasons"),
    [
        ({"type": E.BOUNCED}, ["HARD_BOUNCE"]),
        ({"type": E.COMPLAINED}, ["COMPLAINT"]),
        ({"type": E.FAILED}, []),
        ({"type": E.FAILED, "opt_out": "STOP"}, ["STOP"]),
        ({"type": E.FAILED, "opt_out": "COMPLAINT"}, ["COMPLAINT"]),
        ({"type": E.FAILED, "opt_out": "UNSUBSCRIBED"}, []),
        ({"type": E.BOUNCED, "channel": "EMAIL"}, []),
    ],
)
def test_receipt_suppresses_the_address(fields, reasons):
    received = receipt(E.FAILED)
    assert fold(delivery(), [received._replace(**fields)]).suppress_as == reasons
    assert fold(delivery()._replace(address=None), [received._replace(**fields)]).suppress_as == []


@pytest.mark.parametrize(
    ("opt_out", "events"),
    [
        ("STOP", {E.FAILED, E.UNSUBSCRIBED}),
        ("UNSUBSCRIBED", {E.FAILED, E.UNSUBSCRIBED}),
        ("COMPLAINT", {E.FAILED}),
    ],
)
def test_opt_out_of_a_failure_is_an_event(opt_out, events):
    assert kinds(fold(delivery(), [receipt(E.FAILED, opt_out=opt_out)])) == events


# --- changes of statuses --------------------------------------------------------------------------


def changes(sent: SentDelivery, *received: Receipt):
    return moves([FoldedDelivery(sent, received, fold(sent, received))], NOW)


def test_receipt_without_a_status_change_has_no_effect():
    assert changes(delivery(), receipt(E.DEFERRED)) == ([], [], [], [])


def test_failure_sets_the_reason():
    failed = Transition(
        id=KEY, status=Status.FAILED, due_at=None, reason=StatusReason.PROVIDER_ERROR
    )
    assert changes(delivery(), receipt(E.FAILED)) == ([], [], [], [failed])


def test_failure_with_another_channel_falls_back_now():
    assert changes(delivery(fallback_after=0), receipt(E.FAILED)) == ([], [], [KEY], [])
    unknown = delivery(status=Status.UNKNOWN, fallback_after=300)
    sent = Transition(id=KEY, status=Status.SENT, due_at=NOW, reason=None)
    assert changes(unknown, receipt(E.FAILED)) == ([], [], [], [sent])


def test_confirmed_hand_over_of_an_unknown_outcome_waits_for_its_fallback():
    unknown = delivery(status=Status.UNKNOWN, fallback_after=300)
    due_at = NOW + timedelta(seconds=300)
    sent = Transition(id=KEY, status=Status.SENT, due_at=due_at, reason=None)
    assert changes(unknown, receipt(E.SENT)).changed == [sent]


def test_confirmation_of_an_earlier_attempt_ends_the_wait():
    waiting = delivery(status=Status.ACCEPTED, channel="EMAIL")
    confirmed = receipt(E.DELIVERED, channel="SMS", provider="other", account_id=7)
    resumed = Transition(
        id=KEY,
        status=Status.SENDING,
        due_at=NOW,
        waiting=None,
        channel="SMS",
        provider="other",
        account_id=7,
    )
    assert changes(waiting, confirmed) == (
        [resumed],
        [Transition(id=KEY, status=Status.SENT, due_at=None)],
        [],
        [Transition(id=KEY, status=Status.DELIVERED, due_at=None, reason=None)],
    )
