"""What is decided of a request, while it is decided: its recipients and their channels."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from messaging.accept.requests import MessageInput, RecipientInput
from messaging.content.templates import ActiveTemplate
from messaging.models.statuses import Status
from messaging.policy.organization_policy import CategoryRules, Domain
from rme.core import errors
from rme.core.channels import Channel
from rme.crm.connectors.records import ContactRecord, Record

CHOSEN = "CHOSEN"
QUIET_HOURS = "QUIET_HOURS"


@dataclass(slots=True)
class Option:
    """One channel for one recipient: where to, and with which template."""

    channel: Channel
    address: str | None
    devices: frozenset[tuple[str, str]] = frozenset()
    """What the person's devices are, for PUSH: (platform, app)."""
    template: ActiveTemplate | None = None


class Step(NamedTuple):
    """One channel that was considered, and what came of it: for the trace.

    `result` is CHOSEN, QUIET_HOURS, or the code of the error that spoke against it; `detail` the
    entry that decided, or the time at which the quiet hours end.
    """

    channel: str
    result: str
    detail: str | None = None


@dataclass(slots=True)
class Recipient:
    """One recipient, while it is decided."""

    position: int
    given: RecipientInput
    contact: ContactRecord | None = None
    options: list[Option] = field(default_factory=list)
    chosen: Option | None = None
    provider: str | None = None
    account_id: int | None = None
    scheduled_for: datetime | None = None
    error: errors.ApiError | None = None
    status: Status = Status.ACCEPTED
    steps: list[Step] = field(default_factory=list)

    @property
    def trace(self) -> list[list[str | None]] | None:
        """Give the steps to be kept; None where the one channel asked for was simply taken."""
        if len(self.steps) == 1 and self.steps[0].result == CHOSEN and not self.steps[0].detail:
            return None
        return [list(step) for step in self.steps]

    def note(self, channel: str, result: str, detail: str | None = None) -> None:
        """Add a step to the trace."""
        self.steps.append(Step(channel, result, detail))

    def refuse(self, error: errors.ApiError, status: Status = Status.BLOCKED) -> None:
        self.error, self.status, self.chosen = error, status, None


@dataclass(slots=True)
class Plan:
    """One request, while it is decided. `error`: it is refused as a whole and leaves no trace."""

    given: MessageInput
    rules: CategoryRules
    channels: list[Channel]
    recipients: list[Recipient]
    sender: Domain | None = None
    record: Record | None = None
    error: errors.ApiError | None = None
