"""The state machine as a table, and a message's status from its deliveries'."""

import re
from pathlib import Path

import pytest

from messaging.console import wording
from messaging.domain.statuses import (
    TRANSITIONS,
    Status,
    StatusReason,
    WaitReason,
    aggregate,
    before,
)
from rme.core import errors

S = Status


@pytest.mark.promise("events-7")
@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([S.ACCEPTED], S.ACCEPTED),
        ([S.ACCEPTED, S.BLOCKED], S.SENDING),
        ([S.SENT, S.DELIVERED], S.DELIVERED),
        ([S.SENT, S.FAILED, S.BLOCKED], S.SENT),
        ([S.SCHEDULED, S.CANCELLED], S.SCHEDULED),
        ([S.UNKNOWN, S.DELIVERED], S.UNKNOWN),
        ([S.EXPIRED, S.BLOCKED, S.CANCELLED], S.EXPIRED),
    ],
)
def test_message_status_is_aggregated_from_deliveries(statuses, expected):
    assert aggregate(statuses) == expected


def test_wait_reasons_are_documented_and_have_wording():
    text = (Path(__file__).parents[3] / "docs/operations.md").read_text()
    (table,) = re.findall(r"### Why a delivery waits .*?\n\n(.*?)\n\n", text, re.S)
    assert re.findall(r"^\| `(\w+)` \|", table, re.M) == list(WaitReason)
    assert set(wording.WAITING) == set(WaitReason)
    assert set(StatusReason) <= set(wording.REASONS)


def test_reasons_equal_the_codes_of_their_errors():
    assert errors.ProviderError.code == StatusReason.PROVIDER_ERROR
    assert errors.Unreachable.code == StatusReason.UNREACHABLE


def test_before_is_the_inverse_of_the_transitions():
    reachable = {(source, target) for target in Status for source in before(target)}
    assert reachable == {(old, new) for old, following in TRANSITIONS.items() for new in following}
