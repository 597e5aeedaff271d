"""A change of a delivery's status: flows decide it, `messaging.store.transitions` applies it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from uuid import UUID

from messaging.domain.statuses import Status


class Unchanged(Enum):
    """The type of UNCHANGED, for a column that a transition does not set."""

    UNCHANGED = None


UNCHANGED = Unchanged.UNCHANGED


# Without slots: orjson writes such a dataclass as quickly as a dict, one with slots in four times
# that time.
@dataclass(kw_only=True)
class Transition:
    """A delivery's next status, and the columns that are set with it.

    All transitions of one statement set the same columns.
    """

    id: UUID | str
    status: Status
    due_at: datetime | None
    fence: int | Unchanged = UNCHANGED
    """The claim by which the status was decided: under a later one, the delivery stays as it is."""
    reason: str | Unchanged | None = UNCHANGED
    detail: str | Unchanged | None = UNCHANGED
    waiting: str | Unchanged | None = UNCHANGED
    channel: str | Unchanged = UNCHANGED
    channels: Sequence[str] | Unchanged | None = UNCHANGED
    address: str | Unchanged | None = UNCHANGED
    provider: str | Unchanged | None = UNCHANGED
    account_id: int | Unchanged | None = UNCHANGED
    tries: int | Unchanged = UNCHANGED
    expires_at: datetime | Unchanged = UNCHANGED
