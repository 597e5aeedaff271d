"""What a sender is: notifications in, outcomes out, for one push service.

A sender knows one service's wire format. It turns a `Shot` into a transport `Request`, and the
`Reply` to it into an answer: an outcome, or that the credential or host asks for patience
(`Backoff`), or that the same is worth one more try at once (`Again`). It touches no device: what is
said of tokens is in the outcomes, and `push.feedback` takes it from there.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, cast

import orjson
import structlog
from pydantic import BaseModel, ConfigDict

from push.providers import backoff
from rme.core import retry_after_header
from rme.core.outcomes import (
    NOT_TRIED,
    Accepted,
    Fault,
    Misconfigured,
    Outcome,
    Rejected,
    Retryable,
    Unknown,
)
from rme.core.provider import Push
from rme.transport import NOT_STARTED, Failure, FailureKind, Reply, Request, Transport
from rme.transport.messages import TIME_OUT

log = structlog.get_logger(__name__)
retry_after = retry_after_header.retry_after

SILENCE = 5.0
"""How long, in seconds, a service is left alone at first that answered nothing in time."""
DAY = 86_400
"""The default life of a notification that nobody could be given, in seconds."""
PATIENCE = "the push service asked for patience"


@dataclass(frozen=True, slots=True)
class Backoff:
    """Not taken, and the lane asks for patience: as long as it wishes, else `first` s, doubling.

    The message itself waits as long, or `later` seconds where that is more.
    """

    reason: str
    first: float = 1.0
    wish: float | None = None
    later: float = 0.0


@dataclass(frozen=True, slots=True)
class Again:
    """Not taken, but worth one more try at once; if it ends so again, it is `otherwise`."""

    otherwise: Outcome


Answer = Outcome | Backoff | Again
Progress = Callable[[Sequence[tuple[int, Outcome]]], object]
"""Takes the outcomes that are known while others are awaited, each with its place."""


def no_progress(known: Sequence[tuple[int, Outcome]]) -> None:
    """Ignore what is known early: the caller waits for all."""


def at(places: Sequence[int], progress: Progress) -> Progress:
    """Return what passes on the outcomes of a part, with their places in the whole."""
    return lambda known: progress([(places[place], outcome) for place, outcome in known])


class Shot(Protocol):
    """One attempt: its id, and what goes to which device."""

    @property
    def attempt_id(self) -> str: ...

    @property
    def content(self) -> Push: ...


class NoCredential(Exception):
    """The service gave no token to send with; the outcome says why."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(str(outcome))
        self.outcome = outcome


class SenderSettings(BaseModel):
    """An account's settings. Secrets are `SecretStr`; the admin's form is made from the fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class Sender:
    """Base of all senders. A new one sets the names and writes `request` and `answer`."""

    kind: ClassVar[str]
    label: ClassVar[str]
    platforms: ClassVar[frozenset[str]]
    """The devices it reaches. Others are left alone: their tokens would seem dead to it."""
    lanes_are_the_account: ClassVar[bool] = True
    """False: its lanes are hosts, and one that asks for patience says nothing of the account."""
    refused: ClassVar[tuple[str, str] | None] = None
    """What health says while the service refuses an account, if not what it says of any other."""
    Settings: ClassVar[type[SenderSettings]] = SenderSettings

    def __init__(self, settings: BaseModel) -> None:
        self.settings = settings

    # --- what a sender says ---------------------------------------------------------------------

    def credential(self, transport: Transport, refused: str) -> str:
        """Give the token to send with: another than what was refused, if there can be one now.

        Raises NoCredential.
        """
        return ""

    def refusal(self, shot: Shot, transport: Transport) -> Outcome | None:
        """Refuse what this sender is not to touch, before anything else."""
        if shot.content.platform not in self.platforms:
            return Retryable(f"serves no {shot.content.platform}")
        return None

    def lane(self, shot: Shot) -> str:
        """Name what is slowed down together: the credential, or the host."""
        raise NotImplementedError

    def request(self, shot: Shot, credential: str) -> Request | Outcome:
        """Say what goes over the wire; or the outcome, for what need not even leave."""
        raise NotImplementedError

    def answer(self, shot: Shot, reply: Reply) -> Answer:
        """Say what the service's answer means."""
        raise NotImplementedError

    def took(self, shots: Sequence[Shot]) -> None:
        """Take note of what a service took, before its refusals are looked at."""

    def failed(self, shot: Shot, failure: Failure) -> Outcome:
        """Say what the absence of an answer means."""
        match failure.kind:
            case FailureKind.NOT_SENT:
                return Retryable(failure.reason)
            case FailureKind.UNKNOWN:
                return Unknown(failure.reason)
        return Misconfigured(failure.reason)

    def is_taken(self, reply: Reply) -> bool:
        """Say whether an answer says yes."""
        return 200 <= reply.status < 300

    # --- the one way of sending -----------------------------------------------------------------

    def send(
        self, shots: Sequence[Shot], transport: Transport, progress: Progress = no_progress
    ) -> list[Outcome]:
        """Send a window at once; the outcomes come in the same order.

        Once the transport's patience has passed, `progress` is given each outcome as it is known,
        but for what has to wait or is to be tried once more.
        """
        answers, used = self._round(shots, transport, "", progress)
        again = [place for place, answer in enumerate(answers) if isinstance(answer, Again)]
        if not again:
            return cast("list[Outcome]", answers)
        once_more = [shots[place] for place in again]
        second, _ = self._round(once_more, transport, used, at(again, progress))
        for place, answer in zip(again, second, strict=True):
            if not isinstance(answer, Again):
                answers[place] = answer
        return [answer.otherwise if isinstance(answer, Again) else answer for answer in answers]

    def _round(
        self, shots: Sequence[Shot], transport: Transport, refused: str, progress: Progress
    ) -> tuple[list[Outcome | Again], str]:
        """Send once, all that is not held; give the answers and the credential that was used."""
        used = ""
        answers: list[Answer | None] = [self.refusal(shot, transport) for shot in shots]
        going = [place for place, answer in enumerate(answers) if answer is None]
        held = backoff.held(sorted({self.lane(shots[place]) for place in going}))
        if held:
            for place in going:
                if (left := held.get(self.lane(shots[place]))) is not None:
                    answers[place] = Retryable(PATIENCE, left, blames_account=False)
            going = [place for place in going if answers[place] is None]
        if going:
            chosen = [shots[place] for place in going]
            fresh, used = self._exchange(chosen, transport, refused, at(going, progress))
            for place, answer in zip(going, fresh, strict=True):
                answers[place] = answer
        said = [answer for answer in answers if answer is not None]
        return self._slow_down(shots, said), used

    def _exchange(
        self, shots: Sequence[Shot], transport: Transport, refused: str, progress: Progress
    ) -> tuple[list[Answer], str]:
        try:
            credential = self.credential(transport, refused)
        except NoCredential as none:
            return [none.outcome] * len(shots), refused
        if refused and credential == refused:
            return [Again(Misconfigured("the same again"))] * len(shots), refused
        return self.perform(shots, transport, credential, progress), credential

    def perform(
        self, shots: Sequence[Shot], transport: Transport, credential: str, progress: Progress
    ) -> list[Answer]:
        """Send with a credential: a request a shot, side by side."""
        written = [self._write(shot, credential) for shot in shots]
        requests = [each for each in written if isinstance(each, Request)]
        places = [place for place, each in enumerate(written) if isinstance(each, Request)]

        def report(answered: Sequence[tuple[int, Reply | Failure]]) -> None:
            known = [places[index] for index, _ in answered]
            answers = self._judge([shots[place] for place in known], [said for _, said in answered])
            progress(
                [
                    (place, answer)
                    for place, answer in zip(known, answers, strict=True)
                    if not isinstance(answer, Backoff | Again)
                ]
            )

        replies = iter(transport.perform(requests, report))
        heard = [next(replies) if isinstance(each, Request) else each for each in written]
        if any(isinstance(said, Failure) and said.reason == TIME_OUT for said in heard):
            for lane in self._silent(shots, heard):
                backoff.hold(lane, SILENCE)
        return self._judge(shots, heard)

    def _judge(
        self, shots: Sequence[Shot], heard: Sequence[Reply | Failure | Outcome]
    ) -> list[Answer]:
        """Return what the answers mean: what was taken first, since refusals depend on it."""
        taken = [
            shot
            for shot, said in zip(shots, heard, strict=True)
            if isinstance(said, Reply) and self.is_taken(said)
        ]
        if taken:
            backoff.release({self.lane(shot) for shot in taken})
            self.took(taken)
        return [self._hear(shot, said) for shot, said in zip(shots, heard, strict=True)]

    def _silent(
        self, shots: Sequence[Shot], heard: Sequence[Reply | Failure | Outcome]
    ) -> set[str]:
        """Give the lanes that answered nothing in time: a window more would wait in vain, too."""
        said = [(self.lane(shot), one) for shot, one in zip(shots, heard, strict=True)]
        late = {lane for lane, one in said if isinstance(one, Failure) and one.reason == TIME_OUT}
        return late - {lane for lane, one in said if isinstance(one, Reply)}

    def _write(self, shot: Shot, credential: str) -> Request | Outcome:
        """Write one request; what cannot be written fails alone."""
        try:
            return self.request(shot, credential)
        except Exception:
            log.exception("push.request", kind=self.kind, attempt=shot.attempt_id)
            return Rejected("the sender cannot write this message", Fault.CONTENT)

    def _hear(self, shot: Shot, said: Reply | Failure | Outcome) -> Answer:
        """Return what an answer means; Unknown if it is one that raises."""
        if said is NOT_STARTED:
            return NOT_TRIED
        try:
            if isinstance(said, Failure):
                return self.failed(shot, said)
            return self.answer(shot, said) if isinstance(said, Reply) else said
        except Exception:
            log.exception("push.answer", kind=self.kind, attempt=shot.attempt_id)
            return Unknown("the answer cannot be read")

    def _slow_down(self, shots: Sequence[Shot], answers: Sequence[Answer]) -> list[Outcome | Again]:
        """Hold each lane that asks for patience once, and let its messages wait."""
        if not any(isinstance(answer, Backoff) for answer in answers):
            return cast("list[Outcome | Again]", answers)
        seconds: dict[str, float] = {}
        told: list[Outcome | Again] = []
        for shot, answer in zip(shots, answers, strict=True):
            if not isinstance(answer, Backoff):
                told.append(answer)
                continue
            lane = self.lane(shot)
            if lane not in seconds:
                seconds[lane] = backoff.hold(lane, answer.first, answer.wish)
            wait = max(seconds[lane], answer.later)
            told.append(Retryable(answer.reason, wait, self.lanes_are_the_account))
        return told


def too_large(payload: bytes, limit: int) -> Outcome | None:
    """Refuse a payload that the service would refuse. Sizes in bytes."""
    if len(payload) <= limit:
        return None
    return Rejected(f"{len(payload)} bytes; at most {limit} can be pushed", Fault.CONTENT)


def no_login(failure: Failure) -> NoCredential:
    """Say that the log-in was not answered: whatever became of it, nothing was pushed."""
    if failure.kind in (FailureKind.NOT_SENT, FailureKind.UNKNOWN):
        return NoCredential(Retryable(f"log-in: {failure.reason}"))
    return NoCredential(Misconfigured(f"log-in: {failure.reason}"))


def login_refused(reply: Reply) -> NoCredential:
    """Say that the log-in was refused (RFC 6749 §5.2), for now or until a person acts."""
    reason = f"log-in: {read_object(reply.body).get('error') or reply.status}"[:200]
    if reply.status == 429 or reply.status >= 500:
        return NoCredential(Retryable(reason, retry_after(reply)))
    return NoCredential(Misconfigured(reason))


def read_object(body: bytes) -> dict[str, Any]:
    """Read an answer; one that is not a JSON object says nothing."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def accepted(identifier: Any) -> Accepted:
    """Say that it was taken, under the service's own id."""
    return Accepted(identifier[:255] if isinstance(identifier, str) else "")


def now() -> int:
    """Give the seconds since 1970."""
    return int(time.time())
