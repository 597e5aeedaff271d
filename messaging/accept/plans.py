"""What is decided of a request, while it is decided: its recipients and their channels."""

from dataclasses import dataclass, field
from datetime import datetime

from messaging.accept.requests import MessageInput, RecipientInput
from messaging.content.templates import ActiveTemplate
from messaging.models.decisions import CHOSEN, ChannelDecision
from messaging.models.statuses import Status
from messaging.policy.organization_policy import CategoryRules, Domain
from rme.core import errors
from rme.core.channels import Channel
from rme.crm.connectors.records import ContactRecord, Record


@dataclass(slots=True)
class Option:
    """One channel for one recipient: where to, and with which template."""

    channel: Channel
    address: str | None
    devices: frozenset[tuple[str, str]] = frozenset()
    """What the person's devices are, for PUSH: (platform, app)."""
    template: ActiveTemplate | None = None


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
    decisions: list[ChannelDecision] = field(default_factory=list)

    @property
    def trace(self) -> list[list[str | None]] | None:
        """Return the decisions to store; None where the only channel requested was chosen."""
        if (
            len(self.decisions) == 1
            and self.decisions[0].result == CHOSEN
            and not self.decisions[0].detail
        ):
            return None
        return [list(decision) for decision in self.decisions]

    def note(self, channel: str, result: str, detail: str | None = None) -> None:
        """Add a decision to the trace."""
        self.decisions.append(ChannelDecision(channel, result, detail))

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
