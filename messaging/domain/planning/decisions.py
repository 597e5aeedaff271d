"""The choice of a recipient's channel at accept, as `Delivery.trace` stores it."""

from typing import NamedTuple

CHOSEN = "CHOSEN"
QUIET_HOURS = "QUIET_HOURS"


class ChannelDecision(NamedTuple):
    """One channel that was considered for a recipient, and the result.

    `result` is CHOSEN, QUIET_HOURS, or the code of the error that excluded the channel. `detail` is
    the id of the suppression or consent entry that decided; for QUIET_HOURS it is their end.
    """

    channel: str
    result: str
    detail: str | None = None
