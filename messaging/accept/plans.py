"""What planning decides: a request, its recipients, and the channels of each."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from messaging.accept.requests import MessageInput, RecipientInput
from messaging.content.templates import ActiveTemplate
from messaging.models.decisions import CHOSEN, ChannelDecision
from messaging.models.statuses import Status
from messaging.policy.organization_policy import CategoryRules, Domain, Policy
from rme.core import errors
from rme.core.channels import Channel
from rme.crm.connectors.records import ContactRecord, Record
from rme.tenants.authentication import Caller, OrganizationRecord


@dataclass(slots=True)
class Option:
    """One channel on which a recipient can be reached, with its address and its template."""

    channel: Channel
    address: str | None
    devices: frozenset[tuple[str, str]] = frozenset()
    """For PUSH: the (platform, app) of each of the contact's devices."""
    template: ActiveTemplate | None = None


@dataclass(slots=True)
class Recipient:
    """One recipient of a plan. Planning fills it in step by step."""

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
        if len(self.decisions) == 1:
            (only,) = self.decisions
            if only.result == CHOSEN and not only.detail:
                return None
        return [list(decision) for decision in self.decisions]

    def note(self, channel: str, result: str, detail: str | None = None) -> None:
        """Add a decision to the trace."""
        self.decisions.append(ChannelDecision(channel, result, detail))

    def refuse(self, error: errors.ApiError, status: Status = Status.BLOCKED) -> None:
        """Set the error because of which the recipient gets nothing."""
        self.error, self.status, self.chosen = error, status, None


class CallerMessage(NamedTuple):
    """A message to plan, and its caller."""

    caller: Caller
    message: MessageInput


@dataclass(slots=True)
class Plan:
    """One request and its recipients. Planning fills it in step by step."""

    caller: Caller
    policy: Policy
    given: MessageInput
    rules: CategoryRules
    channels: list[Channel]
    recipients: list[Recipient]
    sender: Domain | None = None
    record: Record | None = None
    error: errors.ApiError | None = None
    """Because of which the request is refused as a whole."""

    @property
    def organization(self) -> OrganizationRecord:
        """Return the organization of its caller."""
        return self.caller.organization

    @property
    def refusal(self) -> errors.ApiError | None:
        """Return the error of a request that is refused and not stored; None for all others."""
        if self.error is not None:
            return self.error
        if len(self.recipients) == 1:
            (only,) = self.recipients
            if isinstance(only.error, errors.InvalidPayload | errors.NotFound):
                return only.error
        return None

    @property
    def latest_schedule(self) -> datetime | None:
        """Return the latest time for which a recipient is scheduled."""
        times = [r.scheduled_for for r in self.recipients if r.scheduled_for]
        return max(times) if times else None
