"""Changes of consent, suppressions and devices: the webhook deliveries that they cause.

They are written in the transaction of the change, at most by one statement. Their payload is kept
in the delivery, since no event of a message holds it. Payloads have no addresses and no tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from messaging.models.endpoints import ChangeType
from messaging.store.webhooks import queue
from rme.core import ids
from rme.core.db import sql


@dataclass(frozen=True, slots=True)
class ChangeEvent:
    """A change that endpoints may subscribe to. `id` is its webhook-id, whose time is its own."""

    organization_id: str
    type: ChangeType
    data: Mapping[str, object]
    id: str = field(default_factory=ids.new_text_id)
    test: bool = False
    """Whether it is a change of TEST data, which only goes to endpoints of TEST applications."""


def write_changes(changes: Sequence[ChangeEvent]) -> None:
    """Queue changes for the endpoints that subscribe to them, in one statement."""
    sql.execute(
        {
            "live_deliveries": queueing_step([each for each in changes if not each.test]),
            "test_deliveries": queueing_step([each for each in changes if each.test]),
        }
    )


def queueing_step(changes: Sequence[ChangeEvent]) -> sql.Step | None:
    """Return the step that queues changes, which are all TEST or all live."""
    if not changes:
        return None
    return queue.queueing_step(
        [
            {
                "organization_id": change.organization_id,
                "event_id": change.id,
                "type": str(change.type),
                "data": change.data,
            }
            for change in changes
        ],
        "enabled.test" if changes[0].test else "NOT enabled.test",
    )
