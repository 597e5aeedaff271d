"""Decide what each recipient of a request gets: channel, account and time, or an error.

Everything here is a function of values, as are the two steps before it: `send_request` holds a
message against its organization's policy, and `drafts` finds each recipient's addresses, texts and
time. `facts` reads what they depend on, and `storing` stores the plan.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from messaging.accept.drafts import Draft, DraftRecipient, Option
from messaging.accept.requests import MessageInput
from messaging.accept.results import RecipientError, RecipientResult, Refusal, SendResult
from messaging.accept.send_request import SendRequest
from messaging.consent.gates import GateResult
from messaging.content.variable_checks import Problems
from messaging.domain.admission import Backlog
from messaging.domain.channels import Channel
from messaging.domain.decisions import CHOSEN, QUIET_HOURS, ChannelDecision
from messaging.domain.statuses import Status, aggregate
from messaging.domain.timing import quiet_until
from messaging.policy.organization_policy import Account
from rme.core import addresses, errors
from rme.core.db.clock import iso
from rme.core.zones import zone
from rme.crm.connectors.records import Record

RATE_TOO_SLOW = (
    "The provider's rate would make this wait for longer than it is of use; see Retry-After."
)


class SlowCheck(errors.Unavailable):
    """A call's variables take long to check: it must be answered by itself, not in a set."""


class OptionFacts(NamedTuple):
    """The facts about one channel of a recipient."""

    gate: GateResult
    account: Account | None = None
    """The account that is likely to be tried first; None if no account takes the address."""
    backlog: Backlog | None = None
    """What waits for these accounts, if they have a rate."""


class Facts(NamedTuple):
    """The facts about a draft from which its plan follows."""

    draft: Draft
    problems: Sequence[Problems]
    """The missing or wrong variables of each recipient, for each of its templates."""
    error: errors.ApiError | None
    """The error of a request whose variables cannot be checked now."""
    options: Mapping[tuple[int, Channel], OptionFacts]
    """By the position of a recipient that has no error, and the channel."""
    now: datetime


class RecipientPlan(NamedTuple):
    """One recipient of a plan: the channel and account, or the error."""

    draft: DraftRecipient
    decisions: Sequence[ChannelDecision]
    scheduled_for: datetime | None
    status: Status
    chosen: Option | None = None
    account: Account | None = None
    error: errors.ApiError | None = None

    @property
    def provider(self) -> str | None:
        """Return the name of its account."""
        return self.account.name if self.account else None

    @property
    def trace(self) -> list[list[str | None]] | None:
        """Return the decisions to store; None where the only channel requested was chosen."""
        if len(self.decisions) == 1:
            (only,) = self.decisions
            if only.result == CHOSEN and not only.detail:
                return None
        return [list(decision) for decision in self.decisions]

    @property
    def next_channels(self) -> list[Channel]:
        """Return the channels to try after the chosen one."""
        if self.chosen is None:
            return []
        options = self.draft.options
        return [option.channel for option in options[options.index(self.chosen) + 1 :]]


class Plan(NamedTuple):
    """A request, and the decision for each of its recipients."""

    request: SendRequest
    record: Record | None
    recipients: Sequence[RecipientPlan]
    error: errors.ApiError | None
    """The reason to refuse the request as a whole."""
    backlogs: Sequence[Backlog] = ()
    """The backlogs that it adds to, once for each recipient."""

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


def plan(requests: Sequence[Facts]) -> list[Plan]:
    """Return the plan of each request, in order. They count against the same backlogs."""
    added: Counter[Backlog] = Counter()
    return [_plan(facts, added) for facts in requests]


def _plan(facts: Facts, added: Counter[Backlog]) -> Plan:
    request, record, drafts, error = facts.draft
    error = error or facts.error or _variables_error(facts)
    if error is not None:
        return Plan(request, record, [_undecided(recipient) for recipient in drafts], error)
    choice = _Choice(facts, added)
    recipients = [
        _undecided(recipient) if recipient.error else choice.decide(recipient)
        for recipient in drafts
    ]
    # an error of the whole request, so that it can be repeated
    limits = [r.error for r in recipients if isinstance(r.error, errors.RateLimited)]
    error = limits[-1] if limits else None
    return Plan(request, record, recipients, error, choice.backlogs)


def _variables_error(facts: Facts) -> errors.ApiError | None:
    """Return the error of the first recipient whose variables do not fit its templates' schemas."""
    if not any(facts.problems):
        return None
    message = facts.draft.request.message
    for recipient, problems in zip(facts.draft.recipients, facts.problems, strict=True):
        if problems:
            details = list(
                dict.fromkeys(
                    errors.Detail(_variable_path(message, recipient, path), text)
                    for path, text in problems
                )
            )
            first = details[0]
            return errors.InvalidPayload(f"{first.field}: {first.message}", details=details)
    return None


def _variable_path(message: MessageInput, recipient: DraftRecipient, path: str) -> str:
    """Return the path of the field in which a variable is missing."""
    top = path.partition(".")[0].partition("[")[0]
    if top in recipient.input.variables or message.context is None:
        return f"to[{recipient.position}].variables.{path}".rstrip(".")
    return f"context.variables.{path}".rstrip(".")


def _undecided(recipient: DraftRecipient) -> RecipientPlan:
    return RecipientPlan(
        recipient,
        recipient.decisions,
        recipient.scheduled_for,
        recipient.status,
        error=recipient.error,
    )


class _Choice:
    """The choices for the recipients of one request, in their order."""

    def __init__(self, facts: Facts, added: Counter[Backlog]) -> None:
        self.facts, self.added = facts, added
        self.backlogs: list[Backlog] = []
        self._reached: set[tuple[str, str]] = set()
        """The channels and addresses of recipients that have a channel."""

    def decide(self, recipient: DraftRecipient) -> RecipientPlan:
        """Choose the first channel that passes the gates and has a route."""
        decisions, errors_by_channel = list(recipient.decisions), []
        for option in recipient.options:
            facts, place = self.facts.options[recipient.position, option.channel], _place(option)
            if option.address and facts.gate.refusal is None and place in self._reached:
                # No other channel: several contacts of one address are usually one person.
                duplicate = errors.DuplicateAddress()
                decisions.append(ChannelDecision(option.channel, duplicate.code))
                return _refused(recipient, decisions, duplicate)
            error = facts.gate.refusal() if facts.gate.refusal else self._take(option, facts)
            result = error.code if error else CHOSEN
            decisions.append(ChannelDecision(option.channel, result, facts.gate.entry))
            if error is None:
                self._reached.add(place)
                return self._chosen(recipient, option, facts.account, decisions)
            errors_by_channel.append(error)
        return _refused(recipient, decisions, [*errors_by_channel, errors.Unreachable()][0])

    def _take(self, option: Option, facts: OptionFacts) -> errors.ApiError | None:
        """Return why no account takes a message now, or count it."""
        if facts.account is None:
            return errors.ProviderError(f"No provider account for {option.channel}.")
        if facts.backlog is not None:
            if seconds := facts.backlog.seconds_too_many(self.added[facts.backlog]):
                headers = {"Retry-After": str(seconds)}
                return errors.RateLimited(RATE_TOO_SLOW, headers=headers)
            self.added[facts.backlog] += 1
            self.backlogs.append(facts.backlog)
        return None

    def _chosen(
        self,
        recipient: DraftRecipient,
        option: Option,
        account: Account | None,
        decisions: list[ChannelDecision],
    ) -> RecipientPlan:
        scheduled_for = recipient.scheduled_for
        if until := self._quiet_until(recipient, option):
            decisions.append(ChannelDecision(option.channel, QUIET_HOURS, iso(until)))
            scheduled_for = until
        status = Status.SCHEDULED if scheduled_for else Status.ACCEPTED
        return RecipientPlan(recipient, decisions, scheduled_for, status, option, account)

    def _quiet_until(self, recipient: DraftRecipient, option: Option) -> datetime | None:
        """Return the end of the channel's quiet hours, if a send would fall into them."""
        request, contact = self.facts.draft.request, recipient.contact
        hours = request.policy.quiet(option.channel, request.rules)
        if hours is None or contact is None:
            return None
        start = recipient.scheduled_for or self.facts.now
        return quiet_until(start, hours, zone(contact.zone, request.organization.zone))


def _refused(
    recipient: DraftRecipient, decisions: Sequence[ChannelDecision], error: errors.ApiError
) -> RecipientPlan:
    status = Status.FAILED if isinstance(error, errors.ProviderError) else Status.BLOCKED
    return RecipientPlan(recipient, decisions, recipient.scheduled_for, status, error=error)


def _place(option: Option) -> tuple[str, str]:
    spellings = addresses.phone_spellings(option.address) if option.address else ()
    return option.channel, min(spellings, default="")


def result_of(plan: Plan, message_id: str | None, request_id: str) -> SendResult | Refusal:
    """Build the result of a plan that is stored as a message, or of a dry run.

    A message without any recipient to send to is refused with its first recipient's error.
    """
    shown = [recipient_result(recipient) for recipient in plan.recipients]
    remaining = [recipient for recipient in shown if recipient.error is None]
    if not remaining:
        error = next(r.error for r in plan.recipients if r.error is not None)
        error.message_id = message_id
        return Refusal(error, request_id)
    if len(shown) == 1:  # as most are: nothing to aggregate
        (only,) = shown
        return SendResult(
            message_id=message_id,
            status=only.status,
            resolved_channel=only.resolved_channel,
            provider=only.provider,
            scheduled_for=only.scheduled_for,
            recipients=shown,
            request_id=request_id,
            warnings=plan.request.warnings,
        )
    times = [r.scheduled_for for r in remaining if r.scheduled_for]
    return SendResult(
        message_id=message_id,
        status=aggregate(recipient.status for recipient in plan.recipients),
        resolved_channel=_common(r.resolved_channel for r in remaining),
        provider=_common(r.provider for r in remaining),
        scheduled_for=min(times, default=None),
        recipients=shown,
        request_id=request_id,
        warnings=plan.request.warnings,
    )


def recipient_result(recipient: RecipientPlan) -> RecipientResult:
    """Build the result of one recipient of a plan."""
    error = recipient.error
    return RecipientResult(
        contact_id=recipient.draft.input.contact_id,
        status=recipient.status,
        resolved_channel=recipient.chosen.channel if recipient.chosen else None,
        provider=recipient.provider,
        scheduled_for=recipient.scheduled_for,
        error=RecipientError(error.code, error.message, error.details) if error else None,
    )


def _common(values: Iterable[str | None]) -> str | None:
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None
