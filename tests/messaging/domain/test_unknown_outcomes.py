"""When what may have been sent is sent again."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from messaging.domain.deliveries import DueDelivery
from messaging.domain.policy import BUILT_IN, MARKETING, TRANSACTIONAL
from messaging.domain.unknown_outcomes import UnknownAttempts, resend_at

NOW = datetime(2030, 1, 1, tzinfo=UTC)
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
