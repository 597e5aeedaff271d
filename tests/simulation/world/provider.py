"""The provider world: it takes messages or not, answers or not, and reports when it likes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import ClassVar
from uuid import UUID

import orjson

from messaging.domain.channels import Channel
from rme.core.outcomes import (
    Accepted,
    Fault,
    Gone,
    Misconfigured,
    Outcome,
    Rejected,
    Retryable,
    Unknown,
)
from rme.core.provider import (
    CallbackContent,
    CallbackRequest,
    DeliveryReceipt,
    Dispatch,
    InboundSms,
    Progress,
    Provider,
    ProviderSettings,
    Push,
    Sms,
    no_progress,
)
from rme.transport import Transport
from tests.simulation.world.faults import Faults
from tests.simulation.world.turns import Turns, current

FATES = {
    "accepts": 56,
    "accepts slowly": 20,
    "answers twice": 4,
    "takes it, its answer is lost": 9,
    "its answer is lost": 4,
    "fails after it took it": 3,
    "refuses for now": 8,
    "refuses the recipient": 3,
    "finds the address dead": 2,
    "refuses the content": 2,
    "is misconfigured": 2,
}
"""What becomes of a call, and how often in a hundred or so."""
SLOW_SECONDS = (0.05, 0.4, 5.0, 15.0, 40.0, 70.0)
REPORTS = (("delivered",), ("sent", "delivered"), ("delivered", "open"), ("failed",), ("bounced",),
           ("delivered", "failed"), ())  # fmt: skip
REPORT_WEIGHTS = (40, 15, 10, 8, 4, 6, 17)
REPORT_SECONDS = (0.0, 0.01, 0.5, 20.0, 100.0, 400.0)
OUR_NUMBER = "12345"
"""Where people write to; replies have it as their sender."""
DEAD = "dead"
LOST = Unknown("no answer")


@dataclass
class Taken:
    """What the provider took in one call."""

    attempt_id: str
    account: str
    to: str
    at: float
    gate_at: float
    """When its worker had last checked the gates, and committed that."""
    outcome: str
    """What it answered; "" if nothing was answered."""


@dataclass
class Report:
    """What the provider is to report, and when."""

    due: float
    account: str
    attempt_id: str
    type: str
    number: int
    """Repeated reports differ by it, or not: then they are one callback."""
    sender: str = ""
    """Of an inbound SMS: who sent it; its text is `type`."""

    @property
    def content(self) -> dict[str, object]:
        """Return the body of the callback."""
        if self.sender:
            return {"from": self.sender, "text": self.type, "n": self.number}
        return {"attempt": self.attempt_id, "type": self.type, "n": self.number}


@dataclass
class World:
    """What the provider knows in one history."""

    rng: Random
    turns: Turns
    faults: Faults
    is_mute: bool
    """Whether it takes all and answers nothing on the account a."""
    calls: dict[str, int] = field(default_factory=dict)
    """How often each attempt was handed to it."""
    taken: list[Taken] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    reported: dict[str, set[str]] = field(default_factory=dict)
    """What it has reported, by attempt."""
    dead: set[str] = field(default_factory=set)
    """The tokens that it found dead."""
    replies: list[str] = field(default_factory=list)
    """The numbers to which a reply to a keyword was sent."""
    at_rest: bool = False
    answers_twice: bool = False
    """Whether the last call is answered a second time, by something else: the first counts."""

    def call(self, account: str, dispatch: Dispatch) -> Outcome:
        """Take one dispatch, or not, and answer."""
        self.turns.pause(f"call of {account}")
        self.faults.in_call()
        self.calls[dispatch.attempt_id] = self.calls.get(dispatch.attempt_id, 0) + 1
        fate = self._fate(account)
        self.turns.note(f"{account} {fate}")
        self.answers_twice = fate == "answers twice"
        match fate:
            case "accepts" | "accepts slowly" | "answers twice":
                taken = self._take(account, dispatch)
                if fate == "accepts slowly":
                    self.turns.sleep(self.rng.choice(SLOW_SECONDS))
                self.faults.in_call()
                taken.outcome = "Accepted"
                return Accepted(f"p-{dispatch.attempt_id}")
            case "takes it, its answer is lost":
                self._take(account, dispatch).outcome = "Unknown"
                return LOST
            case "fails after it took it":
                self._take(account, dispatch).outcome = "Unknown"
                raise ValueError("simulated: the provider's code fails")
            case "its answer is lost":
                return LOST
            case "refuses for now":
                return Retryable("busy", retry_after=self.rng.choice((None, 2.0, 40.0)))
            case "refuses the recipient":
                return Rejected("unknown here")
            case "finds the address dead":
                if isinstance(dispatch.content, Push):
                    self.dead.add(dispatch.content.token)
                    return Gone("unregistered")
                return Rejected(DEAD, hard=True)
            case "refuses the content":
                return Rejected("too long", Fault.CONTENT)
        return Misconfigured("wrong password")

    def _fate(self, account: str) -> str:
        if self.is_mute and account == "a":
            return "takes it, its answer is lost"
        if self.at_rest:
            return "accepts"
        return self.rng.choices(list(FATES), list(FATES.values()))[0]

    def _take(self, account: str, dispatch: Dispatch) -> Taken:
        thread = current()
        assert thread is not None
        now = self.turns.clock.now
        taken = Taken(dispatch.attempt_id, account, _address(dispatch), now, thread.gate_at, "")
        self.taken.append(taken)
        if self.is_mute and account == "a":
            return taken
        kinds = list(self.rng.choices(REPORTS, REPORT_WEIGHTS)[0])
        if self.rng.random() < 0.3:
            kinds += kinds
        self.rng.shuffle(kinds)
        for number, kind in enumerate(kinds):
            due = self.turns.clock.now + self.rng.choice(REPORT_SECONDS)
            own = number if self.rng.random() < 0.5 else 0
            self.reports.append(Report(due, account, dispatch.attempt_id, kind, own))
        return taken

    def next_due(self) -> Report | None:
        """Return a report that is due; None if there is none."""
        now = self.turns.clock.now
        return next((each for each in self.reports if each.due <= now or self.at_rest), None)


def _address(dispatch: Dispatch) -> str:
    """Return whom a dispatch reaches."""
    content = dispatch.content
    return content.token if isinstance(content, Push) else content.to


class WorldProvider(Provider):
    """The provider of the simulation's accounts."""

    kind = "world"
    label = "Simulated world"
    channels = frozenset(Channel)
    world: ClassVar[World]

    class Settings(ProviderSettings):
        name: str

    def send(
        self, dispatches: Sequence[Dispatch], transport: Transport, progress: Progress = no_progress
    ) -> list[Outcome]:
        """Hand over one by one; each outcome is reported as it comes."""
        outcomes: list[Outcome] = []
        assert isinstance(self.settings, self.Settings)
        for place, dispatch in enumerate(dispatches):
            if isinstance(dispatch.content, Sms) and dispatch.content.sender == OUR_NUMBER:
                self.world.replies.append(dispatch.content.to)
                outcomes.append(Accepted("reply"))
                continue
            outcome = self.world.call(self.settings.name, dispatch)
            progress([(place, outcome)])
            outcomes.append(LOST if self.world.answers_twice else outcome)
        return outcomes

    def read_callback(self, callback: CallbackRequest) -> CallbackContent:
        report = orjson.loads(callback.body)
        if "from" in report:
            return [InboundSms(report["from"], OUR_NUMBER, report["text"], id=str(report["n"]))]
        return [DeliveryReceipt(UUID(report["attempt"]), report["type"], report.get("reason"))]
