"""What follows from a provider's outcome: failover, fallback, waiting, or the end.

No database and no network here: besides what it is given, it reads settings, draws the backoff at
random and makes the ids of attempts. An `OutgoingDelivery` is a claimed delivery while a worker
sends it: it holds its attempts, takes their outcomes, and decides the delivery's next status.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.conf import settings

from messaging.delivery.claims import ClaimedDelivery
from messaging.feedback.receipts import Receipt
from messaging.models.statuses import EventType, Status, StatusReason, WaitReason
from messaging.models.transitions import Transition
from messaging.policy.organization_policy import Account, CategoryRules
from messaging.webhooks.events import EventRow
from push.devices import DeviceRecord
from rme.core import ids
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
from rme.core.telemetry.spans import Span
from rme.crm.connectors.records import ContactRecord

BACKOFF_LIMIT = 15 * 60.0
"""Seconds."""
NO_ROOM_SECONDS = 1.0
"""How long a delivery waits that could not be handed over because too many sends are under way."""


def storable(text: str) -> str:
    """Return a text from outside as PostgreSQL takes it: without NUL and lone surrogates."""
    if text.isprintable():
        return text
    return text.encode("utf-8", "replace").decode().replace("\0", "�")


class DeviceContent(NamedTuple):
    """What is to be handed over to one device, or to the address."""

    device_id: str | None
    """None for the address."""
    content: Content


@dataclass(slots=True)
class SendAttempt:
    """One hand-over of a delivery: to one address or device, by one account."""

    id: str
    account: Account
    device_id: str | None
    content: Content
    started_at: datetime
    outcome: Outcome | None = None
    """None until the provider has answered."""
    latency_ms: int | None = None
    span: Span | None = None
    """Its span, where its message is traced and it was handed over."""


class DeliveryEvent(NamedTuple):
    """An event of a delivery that is to be written with its next status."""

    type: EventType
    provider: str | None = None
    reason: str | None = None
    entry: str | None = None
    """The consent entry or suppression because of which a gate stopped the delivery."""

    @property
    def detail(self) -> dict[str, str] | None:
        """Return what the event records beyond its type."""
        if not (self.reason or self.entry):
            return None
        texts = {"reason": self.reason, "entry": self.entry}
        return {name: storable(text) for name, text in texts.items() if text}


@dataclass(slots=True)
class OutgoingDelivery:
    """A claimed delivery while a worker sends it."""

    claimed: ClaimedDelivery
    rules: CategoryRules
    contact: ContactRecord | None = None
    address: str | None = None
    devices: Sequence[DeviceRecord] = ()
    routes: Sequence[Account] = ()
    contents: Sequence[DeviceContent] = ()
    """What is to be handed over: for each device, or one for the address."""
    untried: dict[str | None, list[Account]] = field(default_factory=dict)
    """By device id: the accounts that are still to be tried, in order."""
    attempts: list[SendAttempt] = field(default_factory=list)
    """The attempts that are under way, or whose outcomes are to be recorded."""
    account: Account | None = None
    """The account of the last try."""
    previous_account: Account | None = None
    """The account of the try before the last."""
    events: list[DeliveryEvent] = field(default_factory=list)
    sent_by: str | None = None
    """The id of the attempt that stands for the event `sent`; None if that is one of `events`."""
    hard_bounced: bool = False
    status: Status | None = None
    """The next status; None until it is decided."""
    reason: str | None = None
    detail: str | None = None
    waiting: WaitReason | None = None
    due_at: datetime | None = None
    channel: str = ""
    channels: list[str] = field(default_factory=list)
    tries: int = 0

    def __post_init__(self) -> None:
        self.channel, self.channels = self.claimed.channel, list(self.claimed.channels)
        self.tries = self.claimed.tries

    @property
    def decided(self) -> bool:
        """Return whether the next status is decided: this worker is done with the delivery."""
        return self.status is not None

    def set_contents(
        self, contents: Sequence[DeviceContent], routes: Sequence[Sequence[Account]]
    ) -> None:
        """Set what is to be handed over, and for each content the accounts to try, in order."""
        self.contents = contents
        self.untried = {
            device_id: list(accounts)
            for (device_id, _), accounts in zip(contents, routes, strict=True)
        }

    # --- attempts -------------------------------------------------------------------------------

    @property
    def has_untried_accounts(self) -> bool:
        """Return whether any account is still to be tried."""
        return any(self.untried.values())

    def next_accounts(self) -> list[Account]:
        """Return the accounts to try next: one for each device, or for the address."""
        return [accounts[0] for accounts in self.untried.values() if accounts]

    def begin_attempts(self, now: datetime) -> list[SendAttempt]:
        """Return an attempt for each device, or for the address, by the account to try next."""
        attempts = [
            SendAttempt(ids.new_text_id(), self.untried[device_id].pop(0), device_id, content, now)
            for device_id, content in self.contents
            if self.untried[device_id]
        ]
        if attempts:
            self.previous_account, self.account = self.account, attempts[-1].account
            self.attempts += attempts
        return attempts

    def cancel_attempts(self) -> list[str]:
        """Remove attempts that are not made after all, and return their ids."""
        if not self.attempts:
            return []
        cancelled, self.attempts, self.account = self.attempts, [], self.previous_account
        return [attempt.id for attempt in cancelled]

    def take_attempts(self) -> list[SendAttempt]:
        """Remove and return the attempts, whose outcomes the caller records."""
        attempts, self.attempts = self.attempts, []
        return attempts

    def receipts(self, attempts: Sequence[SendAttempt]) -> list[Receipt]:
        """Return the receipts that came with the outcomes of attempts (the simulator's)."""
        return [
            Receipt(UUID(self.claimed.id), kind)
            for attempt in attempts
            if isinstance(attempt.outcome, Accepted)
            for kind in attempt.outcome.receipts
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
        """End the delivery in a status."""
        self.status, self.reason, self.detail = status, reason, detail
        event = _FINAL_EVENTS.get(status)
        if event:
            self._add_event(event, reason, entry)

    def wait(self, why: WaitReason, until: datetime) -> None:
        """Make the delivery wait: it is due again at that time."""
        self.status, self.waiting, self.due_at = Status.ACCEPTED, why, until

    def release(self, now: datetime) -> None:
        """Release the claim: the delivery is ready again as it was."""
        self.status, self.due_at = Status.ACCEPTED, now

    def expire(self) -> None:
        """End a delivery whose time has passed: no provider took it as far as is known, or it was
        found too late.
        """
        if self.tries:
            self.decide(
                Status.FAILED,
                StatusReason.PROVIDER_ERROR,
                "no provider is known to have taken it in time",
            )
        else:
            self.decide(Status.EXPIRED, StatusReason.EXPIRED, "too late to be of use")

    def back_off(
        self,
        *,
        now: datetime,
        reason: str = "no active account",
        retry_after: float | None = None,
    ) -> None:
        """Wait with full jitter (1 s · 2ⁿ), at least `retry_after` seconds; or fail, where the
        delivery would expire meanwhile.
        """
        step = min(settings.BACKOFF_SECONDS * 2 ** min(self.tries, 20), BACKOFF_LIMIT)
        delay = max(random.uniform(0, step), min(retry_after or 0, BACKOFF_LIMIT))
        until = now + timedelta(seconds=delay)
        if until >= self.claimed.expires_at:
            self.decide(Status.FAILED, StatusReason.PROVIDER_ERROR, reason)
            return
        self.tries += 1
        self.detail = reason
        self._add_event(EventType.DEFERRED, reason)
        self.wait(WaitReason.PROVIDER, until)

    def end_channel(
        self, status: Status, reason: str, detail: str, *, now: datetime, entry: str | None = None
    ) -> None:
        """Fall back to the next channel; without one, end the delivery in a status."""
        if not self.channels:
            self.decide(status, reason, detail, entry=entry)
            return
        self._add_event(EventType.FALLBACK, reason, entry)
        self.channel, *self.channels = self.channels
        self.reason, self.detail = reason, detail
        self.status, self.due_at = Status.ACCEPTED, now

    def apply_outcomes(self, *, now: datetime, may_fail_over: bool) -> None:
        """Decide what follows from the outcomes of the attempts.

        Several attempts are several devices of one recipient: one that was accepted is enough, and
        one whose outcome is unknown forbids another try.
        """
        outcomes = [attempt.outcome for attempt in self.attempts if attempt.outcome]
        outcome = outcomes[0] if len(outcomes) == 1 else min(outcomes, key=lambda o: _RANK[type(o)])
        for attempt in self.attempts:
            if isinstance(attempt.outcome, (Gone, Rejected)):  # X | Y makes a union anew
                self.untried[attempt.device_id] = []  # no other account would reach it
        match outcome:
            case Accepted():
                last = self.attempts[-1]
                # events that came before would follow, since the attempt's id is older than theirs
                if self.events or not isinstance(last.outcome, Accepted):
                    self._add_event(EventType.SENT)
                else:
                    self.sent_by = last.id
                self.status = Status.SENT
                if self.channels and self.claimed.fallback_after:
                    self.due_at = now + timedelta(seconds=self.claimed.fallback_after)
            case Unknown(reason=reason):
                self.status, self.reason = Status.UNKNOWN, StatusReason.UNKNOWN_OUTCOME
                self.detail = reason
                self.due_at = now + timedelta(seconds=settings.UNKNOWN_SECONDS)
            case Retryable() | Misconfigured():
                self._fail_over(outcome, now=now, may_fail_over=may_fail_over)
            case Rejected(reason=reason, fault=Fault.CONTENT):
                self.decide(Status.FAILED, StatusReason.PROVIDER_ERROR, reason)
            case Rejected(reason=reason, hard=hard):
                self.hard_bounced = hard
                if hard:
                    self._add_event(EventType.BOUNCED, reason)
                self.end_channel(Status.FAILED, StatusReason.PROVIDER_ERROR, reason, now=now)
            case Gone(reason=reason):
                self.end_channel(Status.FAILED, StatusReason.PROVIDER_ERROR, reason, now=now)

    def _fail_over(
        self, outcome: Retryable | Misconfigured, *, now: datetime, may_fail_over: bool
    ) -> None:
        """Go on to the next account, now or by the next claim; or wait."""
        if self.has_untried_accounts and may_fail_over:
            self._add_event(EventType.FAILOVER, outcome.reason)
        elif outcome is NOT_TRIED:
            self.wait(WaitReason.PROVIDER, now + timedelta(seconds=NO_ROOM_SECONDS))
        elif self.has_untried_accounts and not self.tries:
            self.tries += 1
            self._add_event(EventType.FAILOVER, outcome.reason)
            self.release(now)
        else:
            retry_after = outcome.retry_after if isinstance(outcome, Retryable) else None
            self.back_off(now=now, reason=outcome.reason, retry_after=retry_after)

    def _add_event(
        self, event: EventType, reason: str | None = None, entry: str | None = None
    ) -> None:
        account = self.account
        self.events.append(DeliveryEvent(event, account.name if account else None, reason, entry))

    # --- rows -----------------------------------------------------------------------------------

    def transition(self) -> Transition:
        """Return the transition to the status that was decided."""
        assert self.status is not None
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
            channels=self.channels or None,
            address=self.address if self.channel == self.claimed.channel else None,
            provider=account.name if account else None,
            account_id=account.id if account else None,
            tries=self.tries,
        )

    def event_rows(self, now: datetime) -> list[EventRow]:
        """Return the rows of the events."""
        claimed = self.claimed
        return [
            EventRow(
                claimed.organization_id,
                claimed.message_id,
                claimed.id,
                event.type,
                now,
                channel=claimed.channel,
                provider=event.provider,
                detail=event.detail,
            )
            for event in self.events
        ]


_FINAL_EVENTS = {
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
"""Of several devices' outcomes, the one with the lowest rank decides the delivery's status."""
