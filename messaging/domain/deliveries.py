"""Deliveries, as workers and the sweeper see them."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from messaging.domain.contents import ContentBody


class ClaimedDelivery(NamedTuple):
    """A delivery of a batch, with what is to be sent."""

    organization_id: str
    id: str
    message_id: str
    contact_id: str
    category: str
    channels: list[str]
    """The channels to fall back to."""
    channel: str
    address: str | None
    template_version_id: int | None
    fence: int
    """The fencing token of this claim."""
    tries: int
    expires_at: datetime
    test: bool
    previous_account_id: int | None
    """The account of the last try, if there was one."""
    ready_since: float | None
    """When it was accepted, or the time it is scheduled for, in seconds since 1970."""
    template: str | None
    fallback_after: int | None
    """FIRST_DELIVERED: the seconds to wait for a confirmation before the next channel is tried."""
    body: ContentBody

    @property
    def traceparent(self) -> str:
        """Return the context of its message's trace; empty if that is not traced."""
        return str(self.body.get("traceparent", ""))


class DueDelivery(NamedTuple):
    """A delivery that is due and locked; `now` is the database's time."""

    id: UUID
    organization_id: str
    message_id: UUID
    category: str
    priority: int
    channel: str
    scheduled_for: datetime | None
    due_at: datetime
    fence: int
    expires_at: datetime
    tries: int
    test: bool
    channels: list[str]
    now: datetime
