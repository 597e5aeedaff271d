"""What needs an admin now. Home, the pages of provider accounts, health and metrics all ask here.

Each function takes the facts of one thing and returns a finding, or None if all is well.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import reduce
from uuid import UUID

from messaging.domain.accounts.admission import CircuitState
from messaging.domain.channels import Channel
from messaging.domain.sentences import counted, sentence

GOOD_RATE, BAD_RATE = 0.95, 0.5
"""From which share of accepted attempts an account is well, and below which it is down."""
WEBHOOK_FAILING = timedelta(minutes=10)
"""A webhook that has been failing for less time needs nobody: it is retried."""
LATE = (timedelta(minutes=1), timedelta(minutes=15))
"""How long messages may wait to be sent, by priority."""


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    """Sends fail or wait because of it."""
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that an admin should do something about."""

    organization_id: str
    severity: str
    code: str
    message: str
    row_id: int | UUID | str | None = None
    """The id of the account, sender domain, endpoint, pause or import, or a template's name."""
    kind: str = ""
    """Of an import: the model of its rows."""


Problem = tuple[str, str, str]
"""Severity, code and message."""


class AccountStatus(StrEnum):
    """Whether a provider account sends."""

    OK = "ok"
    DEGRADED = "degraded"
    DOWN = "down"
    PAUSED = "paused"
    DRAINING = "draining"


@dataclass(frozen=True, slots=True)
class AccountFacts:
    """A provider account, and its attempts of the last hour.

    `accepted` and `answered` leave out what was rejected because of the recipient or the content.
    """

    name: str
    is_broken: bool = False
    """Its settings can't be read."""
    is_active: bool = True
    is_draining: bool = False
    is_refused: bool = False
    """The provider refused the account itself, and has accepted nothing since."""
    circuit: CircuitState = CircuitState.CLOSED
    accepted: int = 0
    answered: int = 0

    @property
    def rate(self) -> float:
        return self.accepted / self.answered if self.answered else 1.0


def account_status(facts: AccountFacts) -> AccountStatus:
    """Return whether an account sends."""
    if facts.is_broken or facts.is_refused:
        return AccountStatus.DOWN
    if facts.is_draining:
        return AccountStatus.DRAINING
    if not facts.is_active:
        return AccountStatus.PAUSED
    if facts.circuit is CircuitState.OPEN or facts.rate < BAD_RATE:
        return AccountStatus.DOWN
    if facts.circuit is CircuitState.HALF_OPEN or facts.rate < GOOD_RATE:
        return AccountStatus.DEGRADED
    return AccountStatus.OK


def account_problem(facts: AccountFacts, refusal: tuple[str, str]) -> Problem | None:
    """Return the severity, code and message of an account that fails; None if it doesn't.

    `refusal` has the code and the marked template of an account that its provider refuses.
    """
    status = account_status(facts)
    if status not in (AccountStatus.DOWN, AccountStatus.DEGRADED):
        return None
    severity = Severity.ERROR if status is AccountStatus.DOWN else Severity.WARNING
    if facts.is_broken:
        text = sentence("The settings of %(name)s can't be read. Save them again.", name=facts.name)
        return severity, "ACCOUNT_BROKEN", text
    if facts.is_refused:
        code, template = refusal
        return severity, code, sentence(template, name=facts.name)
    figures = {"name": facts.name, "accepted": facts.accepted, "answered": facts.answered}
    if facts.circuit is CircuitState.CLOSED:
        text = sentence(
            "%(name)s is failing: its provider accepted %(accepted)s of %(answered)s attempts in "
            "the last hour.",
            **figures,
        )
        return severity, "PROVIDER_FAILING", text
    if facts.answered:
        text = sentence(
            "%(name)s stopped after failures and is being retried. Its provider accepted "
            "%(accepted)s of %(answered)s attempts in the last hour.",
            **figures,
        )
    else:
        text = sentence("%(name)s stopped after failures and is being retried.", name=facts.name)
    return severity, "PROVIDER_STOPPED", text


@dataclass(frozen=True, slots=True)
class EndpointFacts:
    """A webhook endpoint."""

    name: str
    failing_for: timedelta | None = None
    """None: the last request was ok."""
    waiting: int = 0
    waiting_limit: int = 0
    """So many are counted at most."""
    disabled_because: str = ""
    """Why rme disabled it; empty if it is enabled, or was disabled on purpose."""


def endpoint_problem(facts: EndpointFacts) -> Problem | None:
    """Return the severity, code and message of an endpoint that gets no events."""
    if facts.disabled_because:
        text = sentence(
            "The webhook %(name)s is disabled: %(reason)s",
            name=facts.name,
            reason=facts.disabled_because,
        )
        return Severity.WARNING, "WEBHOOK_DISABLED", text
    if facts.failing_for is None or facts.failing_for < WEBHOOK_FAILING:
        return None
    return Severity.WARNING, "WEBHOOK_FAILING", _failing_webhook(facts, facts.failing_for)


def _failing_webhook(facts: EndpointFacts, failing_for: timedelta) -> str:
    values = {"name": facts.name, "time": in_words(failing_for)}
    if not facts.waiting:
        return sentence("The webhook %(name)s has been failing for %(time)s.", **values)
    if facts.waiting >= facts.waiting_limit:
        return sentence(
            "The webhook %(name)s has been failing for %(time)s, and %(count)s or more events are "
            "waiting.",
            count=facts.waiting,
            **values,
        )
    return counted(
        "The webhook %(name)s has been failing for %(time)s, and %(count)s event is waiting.",
        "The webhook %(name)s has been failing for %(time)s, and %(count)s events are waiting.",
        facts.waiting,
        **values,
    )


@dataclass(frozen=True, slots=True)
class BacklogFacts:
    """The messages of a channel and priority that could be sent and haven't been."""

    channel: Channel
    priority: int
    ready: int
    age: timedelta
    """How long the oldest has been ready."""


def backlog_problem(facts: BacklogFacts) -> Problem | None:
    """Return the severity, code and message of a backlog that is too old."""
    if not facts.ready or facts.age < LATE[facts.priority]:
        return None
    severity = Severity.WARNING if facts.priority else Severity.ERROR
    values = {"channel": facts.channel.noun, "time": in_words(facts.age)}
    if facts.priority:
        text = counted(
            "%(count)s %(channel)s message is waiting to be sent, for %(time)s.",
            "%(count)s %(channel)s messages are waiting to be sent, the oldest for %(time)s.",
            facts.ready,
            **values,
        )
    else:
        text = counted(
            "%(count)s transactional %(channel)s message is waiting to be sent, for %(time)s.",
            "%(count)s transactional %(channel)s messages are waiting to be sent, the oldest "
            "for %(time)s.",
            facts.ready,
            **values,
        )
    return severity, "BACKLOG_LATE", text


@dataclass(frozen=True, slots=True)
class PauseFacts:
    """A pause; empty parts don't limit it."""

    channel: str
    category: str
    template: str
    reason: str


def pause_problem(facts: PauseFacts) -> Problem:
    """Return the problem that a pause is: what it holds waits until somebody ends it."""
    parts = [
        facts.channel,
        sentence("category %(category)s", category=facts.category) if facts.category else "",
        sentence("template %(template)s", template=facts.template) if facts.template else "",
    ]
    subject = reduce(_join, filter(None, parts), "")
    if not subject:
        text = sentence("All sending is paused: %(reason)s", reason=facts.reason)
    elif subject == facts.channel:
        text = sentence("%(channel)s is paused: %(reason)s", channel=subject, reason=facts.reason)
    else:
        text = sentence(
            "Sending is paused for %(subject)s: %(reason)s", subject=subject, reason=facts.reason
        )
    return Severity.WARNING, "PAUSED", text


def _join(start: str, end: str) -> str:
    return sentence("%(start)s, %(end)s", start=start, end=end) if start else end


@dataclass(frozen=True, slots=True)
class ImportFacts:
    """An import that has ended, in rows."""

    name: str
    rows: int
    rejected: int


def import_problem(facts: ImportFacts) -> Problem:
    """Return the problem of an import that rejected rows."""
    text = sentence(
        "The import of %(name)s rejected %(rejected)s of %(rows)s rows.",
        name=facts.name,
        rejected=facts.rejected,
        rows=facts.rows,
    )
    return Severity.WARNING, "IMPORT_REJECTED", text


def review_problem(count: int) -> Problem:
    """Return the problem of texts that somebody asked to be reviewed."""
    text = counted(
        "%(count)s draft waits for a review.", "%(count)s drafts wait for a review.", count
    )
    return Severity.WARNING, "REVIEW_WAITING", text


def in_words(duration: timedelta) -> str:
    """Return a duration in its largest unit, rounded down, such as `15 min`."""
    seconds = int(duration.total_seconds())
    if seconds >= 86_400:
        return sentence("%(number)s d", number=seconds // 86_400)
    if seconds >= 3600:
        return sentence("%(number)s h", number=seconds // 3600)
    if seconds >= 60:
        return sentence("%(number)s min", number=seconds // 60)
    return sentence("%(number)s s", number=seconds)


def by_harm(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings with the most harmful first, otherwise in their order."""
    return sorted(findings, key=lambda each: each.severity != Severity.ERROR)
