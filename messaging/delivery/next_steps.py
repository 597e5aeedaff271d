"""What follows from a provider's answer: the rules of failover, fallback, waiting and giving up.

No input or output here: a `Sending` is one delivery in a worker's hand. It hears the outcomes of
its shots and decides where the delivery goes next.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.conf import settings

from messaging.delivery.claims import Claimed
from messaging.feedback.receipts import Receipt
from messaging.models.statuses import EventType, Status
from messaging.models.transitions import Transition
from messaging.policy.organization_policy import Account, CategoryRules
from push.devices import DeviceRecord
from rme.core.outcomes import (
    NOT_TRIED,
    Accepted,
    Fault,
    Gone,
    Misconfigured,
    Outcome,
    Rejected,
    Retryable,
    Unknown,
)
from rme.core.provider import Content
from rme.crm.connectors.records import ContactRecord

BACKOFF_LIMIT = 15 * 60.0
NO_ROOM_SECONDS = 1.0
"""How long a delivery waits that nobody was asked to take, for want of room."""


def storable(text: str) -> str:
    """Return a text from outside as PostgreSQL takes it: without NUL and halves of surrogates."""
    if text.isprintable():
        return text
    return text.encode("utf-8", "replace").decode().replace("\0", "�")


@dataclass(slots=True)
class Shot:
    """One attempt: to one address or device, by one account."""

    attempt_id: str
    account: Account
    device_id: str | None
    content: Content
    started_at: datetime
    outcome: Outcome | None = None
    latency_ms: int | None = None


class Happening(NamedTuple):
    """An event to be written."""

    type: EventType
    provider: str | None = None
    reason: str | None = None
    entry: str | None = None
    """The consent entry or suppression that decided, where one did."""

    @property
    def detail(self) -> dict[str, str] | None:
        """Give what the event says beyond its type."""
        if not (self.reason or self.entry):
            return None
        said = {"reason": self.reason, "entry": self.entry}
        return {name: storable(text) for name, text in said.items() if text}


@dataclass(slots=True)
class Sending:
    """One delivery in hand."""

    claimed: Claimed
    rules: CategoryRules
    contact: ContactRecord | None = None
    address: str | None = None
    devices: Sequence[DeviceRecord] = ()
    routes: Sequence[Account] = ()
    contents: Sequence[tuple[str | None, Content]] = ()
    turns: dict[str | None, list[Account]] = field(default_factory=dict)
    """By device: the accounts that are still to be tried for it, in order."""
    shots: list[Shot] = field(default_factory=list)
    """What is under way, or has just been answered."""
    account: Account | None = None
    """By which the last try is, or was."""
    before: Account | None = None
    """By which the one before it was."""
    events: list[Happening] = field(default_factory=list)
    bounced_hard: bool = False
    status: Status | None = None
    reason: str | None = None
    detail: str | None = None
    waiting: str | None = None
    due_at: datetime | None = None
    channel: str = ""
    channels: list[str] = field(default_factory=list)
    tries: int = 0

    def __post_init__(self) -> None:
        self.channel, self.channels = self.claimed.channel, list(self.claimed.channels)
        self.tries = self.claimed.tries

    @property
    def decided(self) -> bool:
        """Say whether this worker is done with the delivery, for now or for good."""
        return self.status is not None

    def compose(
        self, contents: Sequence[tuple[str | None, Content]], turns: Sequence[Sequence[Account]]
    ) -> None:
        """Take what is to be handed over, and the accounts that take each."""
        self.contents = contents
        self.turns = {
            device_id: list(accounts)
            for (device_id, _), accounts in zip(contents, turns, strict=True)
        }

    @property
    def has_turns(self) -> bool:
        """Say whether any account is still to be tried."""
        return any(self.turns.values())

    def coming(self) -> list[Account]:
        """Give the accounts whose turn it is: one for each device, or for the address."""
        return [accounts[0] for accounts in self.turns.values() if accounts]

    def next_turns(self) -> list[tuple[str | None, Content, Account]]:
        """Take what is to be handed over now: to each device by the account that is next."""
        return [
            (device_id, content, self.turns[device_id].pop(0))
            for device_id, content in self.contents
            if self.turns[device_id]
        ]

    def fire(self, shot: Shot) -> None:
        """Take note of a try that is about to be made."""
        if not self.shots:
            self.before = self.account
        self.shots.append(shot)
        self.account = shot.account

    def take_back(self) -> list[str]:
        """Give the attempts that are not made after all: nobody was tried."""
        never, self.shots, self.account = self.shots, [], self.before
        return [shot.attempt_id for shot in never]

    def heard(self) -> list[Shot]:
        """Give the shots whose outcome has just come, once."""
        heard, self.shots = self.shots, []
        return heard

    def receipts(self, shots: Sequence[Shot]) -> list[Receipt]:
        """Return the receipts that came with the outcomes of attempts (the simulator's)."""
        delivery_id = UUID(self.claimed.id)
        return [
            Receipt(delivery_id, kind)
            for shot in shots
            if isinstance(shot.outcome, Accepted)
            for kind in shot.outcome.receipts
        ]

    # --- decisions ------------------------------------------------------------------------------

    def decide(
        self,
        status: Status,
        reason: str | None = None,
        detail: str | None = None,
        *,
        entry: str | None = None,
    ) -> None:
        """End this delivery's turn."""
        self.status, self.reason, self.detail = status, reason, detail
        event = _ENDINGS.get(status)
        if event:
            self._note(event, reason, entry)

    def wait(self, why: str, until: datetime) -> None:
        """Put the delivery back; somebody will look again at that time."""
        self.status, self.waiting, self.due_at = Status.ACCEPTED, why, until

    def put_back(self, now: datetime) -> None:
        """Leave the delivery to whoever comes next, as it was."""
        self.status, self.due_at = Status.ACCEPTED, now

    def end_late(self) -> None:
        """End what came too late to be of use: for no provider took it, or nobody looked."""
        if self.tries:
            self.decide(Status.FAILED, "PROVIDER_ERROR", "no provider took it in time")
        else:
            self.decide(Status.EXPIRED, "EXPIRED", "too late to be of use")

    def wait_for_provider(
        self, *, now: datetime, reason: str = "no active account", after: float | None = None
    ) -> None:
        """Wait with full jitter (1 s · 2ⁿ), or as long as the provider wants; or give up."""
        step = min(settings.BACKOFF_SECONDS * 2 ** min(self.tries, 20), BACKOFF_LIMIT)
        delay = max(random.uniform(0, step), min(after or 0, BACKOFF_LIMIT))
        until = now + timedelta(seconds=delay)
        if until >= self.claimed.expires_at:
            self.decide(Status.FAILED, "PROVIDER_ERROR", reason)
            return
        self.tries += 1
        self.detail = reason
        self._note(EventType.DEFERRED, reason)
        self.wait("PROVIDER", until)

    def give_up(
        self, status: Status, reason: str, detail: str, *, now: datetime, entry: str | None = None
    ) -> None:
        """End this channel: the next one has its turn, or the delivery ends."""
        if not self.channels:
            self.decide(status, reason, detail, entry=entry)
            return
        self._note(EventType.FALLBACK, reason, entry)
        self.channel, *self.channels = self.channels
        self.reason, self.detail = reason, detail
        self.status, self.due_at = Status.ACCEPTED, now

    def judge(self, *, now: datetime, may_go_on: bool) -> None:
        """Say what follows from the outcomes of the last round.

        Several shots are several devices of one person: one that was taken is enough, and one
        whose fate is unknown forbids another try.
        """
        outcomes = [shot.outcome for shot in self.shots if shot.outcome]
        outcome = outcomes[0] if len(outcomes) == 1 else min(outcomes, key=lambda o: _RANK[type(o)])
        for shot in self.shots:
            if isinstance(shot.outcome, (Gone, Rejected)):  # X | Y makes a union anew
                self.turns[shot.device_id] = []  # no other account would reach it
        match outcome:
            case Accepted():
                self._note(EventType.SENT)
                self.status = Status.SENT
                if self.channels and self.claimed.fallback_after:
                    self.due_at = now + timedelta(seconds=self.claimed.fallback_after)
            case Unknown(reason=reason):
                self.status, self.detail, self.reason = Status.UNKNOWN, reason, "UNKNOWN_OUTCOME"
                self.due_at = now + timedelta(seconds=settings.UNKNOWN_SECONDS)
            case Retryable() | Misconfigured():
                self._try_on(outcome, now=now, may_go_on=may_go_on)
            case Rejected(reason=reason, fault=Fault.CONTENT):
                self.decide(Status.FAILED, "PROVIDER_ERROR", reason)
            case Rejected(reason=reason, hard=hard):
                self.bounced_hard = hard
                if hard:
                    self._note(EventType.BOUNCED, reason)
                self.give_up(Status.FAILED, "PROVIDER_ERROR", reason, now=now)
            case Gone(reason=reason):
                self.give_up(Status.FAILED, "PROVIDER_ERROR", reason, now=now)

    def _try_on(
        self, outcome: Retryable | Misconfigured, *, now: datetime, may_go_on: bool
    ) -> None:
        """Go on to the next account, now or by the next claim; or wait."""
        if self.has_turns and may_go_on:
            self._note(EventType.FAILOVER, outcome.reason)
        elif outcome is NOT_TRIED:
            self.wait("PROVIDER", now + timedelta(seconds=NO_ROOM_SECONDS))
        elif self.has_turns and not self.tries:
            self.tries += 1
            self._note(EventType.FAILOVER, outcome.reason)
            self.put_back(now)
        else:
            after = outcome.retry_after if isinstance(outcome, Retryable) else None
            self.wait_for_provider(now=now, reason=outcome.reason, after=after)

    def _note(self, event: EventType, reason: str | None = None, entry: str | None = None) -> None:
        account = self.account
        self.events.append(Happening(event, account.name if account else None, reason, entry))

    def transition(self) -> Transition:
        """Return the delivery's next status, as this claim leaves it."""
        assert self.status is not None  # it was decided
        account = self.account
        return Transition(
            id=self.claimed.id,
            fence=self.claimed.fence,
            status=self.status,
            reason=self.reason,
            detail=storable(self.detail[:500]) if self.detail else None,
            waiting=self.waiting,
            due_at=self.due_at,
            channel=self.channel,
            channels=self.channels,
            address=self.address if self.channel == self.claimed.channel else None,
            provider=account.name if account else None,
            account_id=account.id if account else None,
            tries=self.tries,
        )


_ENDINGS = {
    Status.FAILED: EventType.FAILED,
    Status.BLOCKED: EventType.BLOCKED,
    Status.EXPIRED: EventType.EXPIRED,
}

_RANK: dict[type, int] = {
    Accepted: 0,
    Unknown: 1,
    Retryable: 2,
    Misconfigured: 3,
    Rejected: 4,
    Gone: 5,
}
"""Of several devices' outcomes the first of these speaks for the delivery."""
