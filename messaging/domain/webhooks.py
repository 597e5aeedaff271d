"""Webhook deliveries as values: what is due, what each attempt came to, and what a payload says."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypedDict
from uuid import UUID

TEST_EVENT = "webhook.test"
"""The type of the event that somebody sends to try an endpoint."""
GIVE_UP = timedelta(days=4)
"""A delivery this old is not tried again: its attempts take a little more than three days."""
DISABLE_AFTER = timedelta(days=5)
"""An endpoint that has failed for this time, without a success, is disabled."""


class AttemptEntry(TypedDict):
    """One attempt of a webhook delivery, as its row stores it."""

    at: str | None
    status: int | None
    ms: int
    error: str | None
    answer: str | None


class WebhookEvent(NamedTuple):
    """What a webhook delivery tells. `id` is its webhook-id, `data` what it says besides its time.

    `data` is None if the event or its message no longer exists.
    """

    id: UUID
    type: str
    at: datetime
    data: dict[str, Any] | None
    message_id: UUID | None = None
    """The message that it is about; None for a change or a test."""
    is_live_message: bool = False


class DueWebhookDelivery(NamedTuple):
    """A claimed webhook delivery. `is_last_attempt`: it is given up if this attempt fails."""

    id: int
    event: WebhookEvent
    tries: int
    attempts: Sequence[AttemptEntry]
    is_last_attempt: bool
    traceparent: str = ""


class ClaimedQueue(NamedTuple):
    """An endpoint's queue under a claim, and the first of its deliveries."""

    endpoint_id: int
    fence: int
    due: Sequence[DueWebhookDelivery]


class DeliveryResult(NamedTuple):
    """The result of one attempt. `wait`: seconds until the next one, if the status is PENDING."""

    id: int
    status: str
    wait: float
    attempts: Sequence[AttemptEntry]


class EndpointResult(NamedTuple):
    """The end of an endpoint's claim. `wait`: seconds until it may be claimed again.

    `failures` counts consecutive failures; `gone`: the endpoint wants no more events (410).
    """

    id: int
    fence: int
    wait: float
    failures: int
    succeeded: bool
    gone: bool
