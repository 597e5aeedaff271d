"""Decide what each recipient of a request gets: channel, account and time, or a refusal."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol
from zoneinfo import ZoneInfo

from messaging.domain.accounts.admission import Backlog
from messaging.domain.channels import Channel
from messaging.domain.gates import GateRefusal, GateVerdict, Spellings
from messaging.domain.planning.decisions import CHOSEN, QUIET_HOURS, ChannelDecision
from messaging.domain.planning.drafts import Draft, DraftRecipient, Option
from messaging.domain.planning.outlines import Outline
from messaging.domain.planning.refusals import FieldProblem, RefusalCode, SendRefusal
from messaging.domain.sentences import sentence
from messaging.domain.statuses import Status
from messaging.domain.timing import quiet_until

RATE_TOO_SLOW = sentence(
    "The provider's rate would make this wait for longer than it is of use; see Retry-After."
)
_BY_GATE = {gate: SendRefusal(RefusalCode(gate)) for gate in GateRefusal}
_INVALID = (RefusalCode.INVALID_PAYLOAD, RefusalCode.NOT_FOUND)
_REPEATABLE = (RefusalCode.RATE_LIMITED,)
Problems = Sequence[tuple[str, str]]
"""Path and text of each variable that is missing or wrong."""


class PlannedAccount(Protocol):
    """An account, as far as plans depend on it."""

    @property
    def id(self) -> int | None: ...
    @property
    def name(self) -> str: ...


class OptionFacts(NamedTuple):
    """The facts about one channel of a recipient."""

    verdict: GateVerdict
    account: PlannedAccount | None = None
    """The account that is likely to be tried first; None if no account takes the address."""
    backlog: Backlog | None = None
    """What waits for these accounts, if they have a rate."""


class PlanFacts(NamedTuple):
    """A draft, and the facts about it from which its plan follows."""

    draft: Draft
    problems: Sequence[Problems] = ()
    """The missing or wrong variables of each recipient, for each of its templates."""
    options: Sequence[Sequence[OptionFacts]] = ()
    """For each recipient, in order, those of its options; of a refused one there are none."""


class RecipientPlan(NamedTuple):
    """One recipient of a plan: the channel and account, or the refusal."""

    draft: DraftRecipient
    decisions: Sequence[ChannelDecision]
    scheduled_for: datetime | None
    status: Status
    chosen: Option | None = None
    account: PlannedAccount | None = None
    refusal: SendRefusal | None = None

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
        options = self.draft.options
        if self.chosen is None or len(options) == 1:
            return []
        return [option.channel for option in options[options.index(self.chosen) + 1 :]]


class Plan(NamedTuple):
    """A request, and the decision for each of its recipients."""

    outline: Outline
    record: Mapping[str, Any] | None
    recipients: Sequence[RecipientPlan]
    whole_refusal: SendRefusal | None
    """The reason to refuse the request as a whole."""
    backlogs: Sequence[Backlog] = ()
    """The backlogs that it adds to, once for each recipient."""

    @property
    def refusal(self) -> SendRefusal | None:
        """Return why a request is refused and not stored; None for all others."""
        if self.whole_refusal is not None:
            return self.whole_refusal
        if len(self.recipients) == 1:
            (only,) = self.recipients
            if only.refusal and only.refusal.code in _INVALID:
                return only.refusal
        return None

    @property
    def is_repeatable(self) -> bool:
        """Return whether the request may be repeated, although it is refused."""
        return self.whole_refusal is not None and self.whole_refusal.code in _REPEATABLE

    @property
    def latest_schedule(self) -> datetime | None:
        """Return the latest time for which a recipient is scheduled."""
        times = [r.scheduled_for for r in self.recipients if r.scheduled_for]
        return max(times) if times else None


def plan(requests: Iterable[PlanFacts], now: datetime, spell: Spellings) -> list[Plan]:
    """Return the plan of each request of a set, in order. They count against the same backlogs.

    `spell` returns all ways to write a phone number.
    """
    added: Counter[Backlog] = Counter()
    return [_plan(facts, added, now, spell) for facts in requests]


def _plan(facts: PlanFacts, added: Counter[Backlog], now: datetime, spell: Spellings) -> Plan:
    outline, record, drafts, refusal = facts.draft
    refusal = refusal or _variables_refusal(facts)
    if refusal is not None:
        return Plan(outline, record, [_undecided(recipient) for recipient in drafts], refusal)
    choice = _Choice(outline, added, now, spell)
    recipients = [
        _undecided(recipient) if recipient.refusal else choice.decide(recipient, options)
        for recipient, options in zip(drafts, facts.options, strict=True)
    ]
    # of the whole request, so that it can be repeated
    limits = [r.refusal for r in recipients if r.refusal and r.refusal.code in _REPEATABLE]
    return Plan(outline, record, recipients, limits[-1] if limits else None, choice.backlogs)


def _variables_refusal(facts: PlanFacts) -> SendRefusal | None:
    """Return the refusal of the first recipient whose variables do not fit its templates' schemas.

    Each problem is named once.
    """
    if not any(facts.problems):
        return None
    outline = facts.draft.outline
    for recipient, problems in zip(facts.draft.recipients, facts.problems, strict=True):
        if problems:
            fields = tuple(
                dict.fromkeys(
                    FieldProblem(_variable_path(outline, recipient, path), text)
                    for path, text in problems
                )
            )
            field, problem = fields[0]
            return SendRefusal(RefusalCode.INVALID_PAYLOAD, f"{field}: {problem}", fields)
    return None


def _variable_path(outline: Outline, recipient: DraftRecipient, path: str) -> str:
    """Return the path of the field in which a variable is missing."""
    top = path.partition(".")[0].partition("[")[0]
    if top in recipient.requested.variables or outline.request.variables is None:
        return f"to[{recipient.position}].variables.{path}".rstrip(".")
    return f"context.variables.{path}".rstrip(".")


def _undecided(recipient: DraftRecipient) -> RecipientPlan:
    return RecipientPlan(
        recipient,
        recipient.decisions,
        recipient.scheduled_for,
        recipient.status,
        refusal=recipient.refusal,
    )


class _Choice:
    """The choices for the recipients of one request, in their order."""

    def __init__(
        self, outline: Outline, added: Counter[Backlog], now: datetime, spell: Spellings
    ) -> None:
        self.backlogs: list[Backlog] = []
        self._outline, self._added, self._now, self._spell = outline, added, now, spell
        self._has_several = len(outline.request.recipients) > 1
        self._reached: set[tuple[str, str]] = set()
        """The channels and addresses of recipients that have a channel."""

    def decide(self, recipient: DraftRecipient, options: Sequence[OptionFacts]) -> RecipientPlan:
        """Choose the first channel that passes the gates and has a route."""
        decisions, first_refusal = list(recipient.decisions), None
        for option, facts in zip(recipient.options, options, strict=True):
            verdict = facts.verdict
            if verdict.refusal is None and self._is_reached(option):
                # No other channel: several contacts of one address are usually one person.
                duplicate = SendRefusal(RefusalCode.DUPLICATE_ADDRESS)
                decisions.append(ChannelDecision(option.channel, duplicate.code))
                return _refused(recipient, decisions, duplicate)
            refusal = _BY_GATE[verdict.refusal] if verdict.refusal else self._take(option, facts)
            result = refusal.code if refusal else CHOSEN
            decisions.append(ChannelDecision(option.channel, result, verdict.entry))
            if refusal is None:
                return self._chosen(recipient, option, facts.account, decisions)
            first_refusal = first_refusal or refusal
        return _refused(recipient, decisions, first_refusal or SendRefusal(RefusalCode.UNREACHABLE))

    def _is_reached(self, option: Option) -> bool:
        """Return whether an earlier recipient has the option's address."""
        return self._has_several and bool(option.address) and self._place(option) in self._reached

    def _place(self, option: Option) -> tuple[str, str]:
        return option.channel, min(self._spell(option.address)) if option.address else ""

    def _take(self, option: Option, facts: OptionFacts) -> SendRefusal | None:
        """Return why no account takes a message now, or count it."""
        if facts.account is None:
            text = sentence("No provider account for %(channel)s.", channel=option.channel.noun)
            return SendRefusal(RefusalCode.PROVIDER_ERROR, text)
        backlog = facts.backlog
        if backlog is not None:
            if seconds := backlog.seconds_too_many(self._added[backlog]):
                code = RefusalCode.RATE_LIMITED
                return SendRefusal(code, RATE_TOO_SLOW, retry_after=seconds)
            self._added[backlog] += 1
            self.backlogs.append(backlog)
        return None

    def _chosen(
        self,
        recipient: DraftRecipient,
        option: Option,
        account: PlannedAccount | None,
        decisions: list[ChannelDecision],
    ) -> RecipientPlan:
        if self._has_several:
            self._reached.add(self._place(option))
        scheduled_for = recipient.scheduled_for
        if until := self._quiet_until(recipient, option):
            text = f"{until:%Y-%m-%dT%H:%M:%SZ}"
            decisions.append(ChannelDecision(option.channel, QUIET_HOURS, text))
            scheduled_for = until
        status = Status.SCHEDULED if scheduled_for else Status.ACCEPTED
        return RecipientPlan(recipient, decisions, scheduled_for, status, option, account)

    def _quiet_until(self, recipient: DraftRecipient, option: Option) -> datetime | None:
        """Return the end of the channel's quiet hours, if a send would fall into them."""
        hours = self._outline.policy.quiet(option.channel, self._outline.rules)
        if hours is None or recipient.contact is None:
            return None
        start = recipient.scheduled_for or self._now
        return quiet_until(start, hours, ZoneInfo(recipient.contact.zone))


def _refused(
    recipient: DraftRecipient, decisions: Sequence[ChannelDecision], refusal: SendRefusal
) -> RecipientPlan:
    is_failure = refusal.code is RefusalCode.PROVIDER_ERROR
    status = Status.FAILED if is_failure else Status.BLOCKED
    return RecipientPlan(recipient, decisions, recipient.scheduled_for, status, refusal=refusal)
