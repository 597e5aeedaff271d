"""What needs an admin now. Home, the pages of provider accounts, health and metrics all ask here.

Each function takes the facts of one thing and returns a finding, or None if all is well.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from uuid import UUID

from messaging.domain.admission import CircuitState
from messaging.domain.channels import Channel

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
    row_id: int | UUID | None = None
    """The id of the account, sender domain, endpoint, pause or import."""
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

    `refusal` has the code and the text of an account that its provider refuses.
    """
    status = account_status(facts)
    if status not in (AccountStatus.DOWN, AccountStatus.DEGRADED):
        return None
    severity = Severity.ERROR if status is AccountStatus.DOWN else Severity.WARNING
    if facts.is_broken:
        text = f"The settings of {facts.name} can't be read. Save them again."
        return severity, "ACCOUNT_BROKEN", text
    if facts.is_refused:
        code, text = refusal
        return severity, code, text.format(facts.name)
    figures = f"{facts.accepted:,} of {facts.answered:,} attempts in the last hour"
    if facts.circuit is CircuitState.CLOSED:
        text = f"{facts.name} is failing: its provider accepted {figures}."
        return severity, "PROVIDER_FAILING", text
    text = f"{facts.name} stopped after failures and is being retried."
    if facts.answered:
        text = f"{text} Its provider accepted {figures}."
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
        text = f"The webhook {facts.name} is disabled: {facts.disabled_because}"
        return Severity.WARNING, "WEBHOOK_DISABLED", text
    if facts.failing_for is None or facts.failing_for < WEBHOOK_FAILING:
        return None
    text = f"The webhook {facts.name} has been failing for {in_words(facts.failing_for)}"
    if facts.waiting:
        more = " or more" if facts.waiting >= facts.waiting_limit else ""
        text = f"{text}, and {facts.waiting:,}{more} {_plural('event', facts.waiting)} waiting"
    return Severity.WARNING, "WEBHOOK_FAILING", f"{text}."


def _plural(noun: str, count: int) -> str:
    return f"{noun} is" if count == 1 else f"{noun}s are"


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
    noun = "message is" if facts.ready == 1 else "messages are"
    kind = f"{facts.channel.label} {noun}" if facts.priority else (
        f"transactional {facts.channel.label} {noun}"
    )  # fmt: skip
    text = f"{facts.ready:,} {kind} waiting to be sent, the oldest for {in_words(facts.age)}."
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
        f"the category {facts.category}" if facts.category else "",
        f"the template {facts.template}" if facts.template else "",
    ]
    subject = ", ".join(filter(None, parts)) or "all sending"
    text = f"{subject[:1].upper()}{subject[1:]} is paused: {facts.reason}"
    return Severity.WARNING, "PAUSED", text


@dataclass(frozen=True, slots=True)
class ImportFacts:
    """An import that has ended, in rows."""

    name: str
    rows: int
    rejected: int


def import_problem(facts: ImportFacts) -> Problem:
    """Return the problem of an import that rejected rows."""
    text = f"The import of {facts.name} rejected {facts.rejected:,} of {facts.rows:,} rows."
    return Severity.WARNING, "IMPORT_REJECTED", text


def review_problem(count: int) -> Problem:
    """Return the problem of texts that somebody asked to be reviewed."""
    noun = "draft waits" if count == 1 else "drafts wait"
    return Severity.WARNING, "REVIEW_WAITING", f"{count:,} {noun} for a review."


def in_words(duration: timedelta) -> str:
    """Return a duration in its largest unit, rounded down, such as `15 min`."""
    seconds = int(duration.total_seconds())
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def by_harm(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings with the most harmful first, otherwise in their order."""
    return sorted(findings, key=lambda each: each.severity != Severity.ERROR)
