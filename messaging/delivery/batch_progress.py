"""Where the sending of a batch stands: what is not prepared, about to leave, and decided."""

from collections import deque
from collections.abc import Mapping
from functools import cached_property
from time import monotonic

from messaging.delivery import prepare
from messaging.delivery.claims import Batch
from messaging.delivery.next_steps import OutgoingDelivery
from messaging.models.statuses import Status
from messaging.policy import organization_policy
from rme.core.db import clock
from rme.crm.connectors.records import ContactRecord


class BatchProgress:
    """The part of one organization's batch in the windows of the send loop."""

    def __init__(self, batch: Batch, contacts: Mapping[str, ContactRecord] | None) -> None:
        self.batch, self.contacts = batch, contacts
        self.policy = organization_policy.of(batch.organization_id)
        self.fresh = deque(batch.deliveries)
        """Deliveries that are not prepared yet."""
        self.window: list[OutgoingDelivery] = []
        """Deliveries that leave next; after the hand-over, those that were answered in time."""
        self.decided = self._unreadable()
        """Deliveries whose next status is to be recorded."""
        self.released_count = 0

    @cached_property
    def preparation(self) -> prepare.Preparation:
        """Read what preparing needs, once, when the first delivery is about to leave."""
        return prepare.Preparation(self.batch, self.policy, self.contacts)

    @property
    def is_open(self) -> bool:
        """Return whether anything is still to be sent or recorded."""
        return bool(self.window or self.fresh or self.decided)

    @property
    def sent_count(self) -> int:
        """Return how many deliveries were tried, or ended without a try."""
        return len(self.batch.deliveries) - self.released_count

    def set_decided_apart(self) -> None:
        """Move the decided deliveries out of the window."""
        self.decided += [each for each in self.window if each.decided]
        self.window = [each for each in self.window if not each.decided]

    def fill(self, count: int, until: float) -> None:
        """Add `count` prepared deliveries to the window; after `until` (monotonic) at most one."""
        most = len(self.window) + count
        while self.fresh and len(self.window) < most:
            self.window += self.preparation.take(self.fresh, most - len(self.window), until)
            self.set_decided_apart()
            if monotonic() > until:
                break

    def release_fresh(self) -> None:
        """Release the claim of what has not been tried."""
        self.released_count += len(self.fresh)
        for claimed in self.fresh:
            delivery = OutgoingDelivery(claimed, self.policy.rules(claimed.category))
            delivery.release(clock.now())
            self.decided.append(delivery)
        self.fresh.clear()

    def _unreadable(self) -> list[OutgoingDelivery]:
        """Return the deliveries whose rows cannot be read, as failed."""
        failed = [
            OutgoingDelivery(each, self.policy.rules(each.category))
            for each in self.batch.unreadable
        ]
        for delivery in failed:
            delivery.decide(Status.FAILED, "TEMPLATE_ERROR", "what was to be sent cannot be read")
        return failed
