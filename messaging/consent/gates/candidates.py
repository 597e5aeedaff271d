"""What is checked before it is sent."""

from typing import NamedTuple

from messaging.policy.organization_policy import CategoryRules


class Candidate(NamedTuple):
    """One contact on one channel at one address (None where the channel has none, like push)."""

    organization_id: str
    contact_id: str
    channel: str
    address: str | None
    category: CategoryRules
    delivery_id: str | None = None
    """Set right before sending: the delivery itself does not count against its own cap."""
