"""What push providers share: a credential, a throttle key, backoff, and one more try.

A push provider turns a `Dispatch` and its credential into a `Request` (`write`), and the service's
`Reply` into an `Answer` (`read_reply`): an outcome, or that the credential or host is to be
throttled (`Backoff`), or that the credential was refused (`CredentialRefused`). It changes no
device: an outcome says that a token is dead, and `push.feedback` deactivates the device.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import structlog

from push.providers import backoff
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
from rme.core.provider import Dispatch, Progress, Provider, no_progress
from rme.core.provider.base import UNREADABLE, UNWRITABLE, traced
from rme.core.provider.http import failure_outcome, read_object, retry_after
from rme.transport.messages import NOT_STARTED, TIME_OUT, Failure, FailureKind, Reply, Request
from rme.transport.performer import Performer

log = structlog.get_logger(__name__)

TIME_OUT_SECONDS = 5.0
"""The first backoff, in seconds, of a service that answered nothing in time."""
DAY = 86_400
"""The default time to live of a notification, in seconds."""
THROTTLED = "the push service asked for a backoff"
FORM_HEADERS = (("Content-Type", "application/x-www-form-urlencoded"),)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Not taken, and the throttle key is to be slowed down.

    It waits for `retry_after` seconds if the service named them, else for `first`, doubled for each
    refusal. The message itself waits for `at_least` seconds.
    """

    reason: str
    first: float = 1.0
    retry_after: float | None = None
    at_least: float = 0.0


@dataclass(frozen=True, slots=True)
class CredentialRefused:
    """Not taken; one more try with a new credential. If that is refused too: `otherwise`."""

    otherwise: Outcome


Answer = Outcome | Backoff | CredentialRefused
Unthrottled = Outcome | CredentialRefused


class NoCredential(Exception):
    """The service gave no token to send with; `outcome` says why."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(str(outcome))
        self.outcome = outcome


class PushProvider(Provider):
    """Base of push providers. A new one sets the names and writes the first five methods."""

    channels = frozenset({"PUSH"})
    throttles_account: ClassVar[bool] = True
    """False: its throttle keys are hosts, whose backoff says nothing of the account's health."""

    # --- what each provider writes --------------------------------------------------------------

    def credential(self, transport: Performer, refused: str) -> str:
        """Return the token to send with, if possible another one than `refused`.

        Raises NoCredential.
        """
        return ""

    def throttle_key(self, dispatch: Dispatch) -> str:
        """Return what is slowed down together: the credential, or the host."""
        raise NotImplementedError

    def write(self, dispatch: Dispatch, credential: str) -> Request | Outcome:
        """Return the request; or an outcome, if none has to be sent."""
        raise NotImplementedError

    def read_reply(self, dispatch: Dispatch, reply: Reply) -> Answer:
        """Return what the service's reply means."""
        raise NotImplementedError

    def on_accepted(self, dispatches: Sequence[Dispatch]) -> None:
        """Store what the service accepted, before its refusals are read."""

    def refusal(self, dispatch: Dispatch, transport: Performer) -> Outcome | None:
        """Return the outcome of what must not be sent; None for what may be.

        Devices of other platforms are not tried: their tokens would seem dead.
        """
        platform = dispatch.push.platform
        return None if platform in self.platforms else Retryable(f"serves no {platform}")

    def read_failure(self, dispatch: Dispatch, failure: Failure) -> Outcome:
        """Return what a missing reply means."""
        return failure_outcome(failure)

    def is_accepted(self, reply: Reply) -> bool:
        """Return whether a reply accepts the message."""
        return 200 <= reply.status < 300

    # --- how all of them send -------------------------------------------------------------------

    def send(
        self,
        dispatches: Sequence[Dispatch],
        transport: Performer,
        progress: Progress = no_progress,
    ) -> list[Outcome]:
        """Send a window at once; return the outcomes in the same order.

        After the transport's `start_timeout`, `progress` is given each outcome as it is known,
        except for what is throttled or tried once more.
        """
        answers, used = self._send_once(dispatches, transport, "", progress)
        again = [
            index for index, answer in enumerate(answers) if isinstance(answer, CredentialRefused)
        ]
        if again:
            retried = [dispatches[index] for index in again]
            second, _ = self._send_once(retried, transport, used, _reindexed(again, progress))
            for index, answer in zip(again, second, strict=True):
                if not isinstance(answer, CredentialRefused):
                    answers[index] = answer
        return [
            answer.otherwise if isinstance(answer, CredentialRefused) else answer
            for answer in answers
        ]

    def _send_once(
        self,
        dispatches: Sequence[Dispatch],
        transport: Performer,
        refused: str,
        progress: Progress,
    ) -> tuple[list[Unthrottled], str]:
        """Send what is not throttled; return the answers and the credential that was used."""
        used = ""
        answers: list[Answer | None] = [self.refusal(each, transport) for each in dispatches]
        going = [index for index, answer in enumerate(answers) if answer is None]
        throttled = backoff.remaining(sorted({self.throttle_key(dispatches[i]) for i in going}))
        for index in going if throttled else ():
            if (seconds := throttled.get(self.throttle_key(dispatches[index]))) is not None:
                answers[index] = Retryable(THROTTLED, seconds, blames_account=False)
        going = [index for index in going if answers[index] is None]
        if going:
            dispatches_to_send = [dispatches[index] for index in going]
            replies, used = self._exchange(
                dispatches_to_send, transport, refused, _reindexed(going, progress)
            )
            for index, answer in zip(going, replies, strict=True):
                answers[index] = answer
        return self._throttle(dispatches, [each for each in answers if each is not None]), used

    def _exchange(
        self,
        dispatches: Sequence[Dispatch],
        transport: Performer,
        refused: str,
        progress: Progress,
    ) -> tuple[list[Answer], str]:
        try:
            credential = self.credential(transport, refused)
        except NoCredential as error:
            return [error.outcome] * len(dispatches), refused
        if refused and credential == refused:
            unchanged = CredentialRefused(Misconfigured("the same again"))
            return [unchanged] * len(dispatches), refused
        return self.perform(dispatches, transport, credential, progress), credential

    def perform(
        self,
        dispatches: Sequence[Dispatch],
        transport: Performer,
        credential: str,
        progress: Progress,
    ) -> list[Answer]:
        """Send a request for each dispatch, all at once, with a credential."""
        results: list[Reply | Failure | Outcome | None] = []
        requests, indexes = [], []
        for index, dispatch in enumerate(dispatches):
            prepared = self._write(dispatch, credential)
            if isinstance(prepared, Request):
                requests.append(prepared)
                indexes.append(index)
                results.append(None)
            else:
                results.append(prepared)

        def on_replies(replies: Sequence[tuple[int, Reply | Failure]]) -> None:
            dispatch_indexes = [indexes[place] for place, _ in replies]
            answers = self._read(
                [dispatches[i] for i in dispatch_indexes], [reply for _, reply in replies]
            )
            progress(
                [
                    (index, answer)
                    for index, answer in zip(dispatch_indexes, answers, strict=True)
                    if not isinstance(answer, Backoff | CredentialRefused)
                ]
            )

        for index, reply in zip(indexes, transport.perform(requests, on_replies), strict=True):
            results[index] = reply
        complete = [each for each in results if each is not None]
        for key in self._timed_out(dispatches, complete):
            backoff.start(key, TIME_OUT_SECONDS)
        return self._read(dispatches, complete)

    def _read(
        self, dispatches: Sequence[Dispatch], results: Sequence[Reply | Failure | Outcome]
    ) -> list[Answer]:
        """Return the answers. What was accepted comes first, since refusals depend on it."""
        accepted = [
            dispatch
            for dispatch, result in zip(dispatches, results, strict=True)
            if isinstance(result, Reply) and self.is_accepted(result)
        ]
        if accepted:
            backoff.reset({self.throttle_key(dispatch) for dispatch in accepted})
            self.on_accepted(accepted)
        return [
            self.read_answer(dispatch, result)
            for dispatch, result in zip(dispatches, results, strict=True)
        ]

    def _timed_out(
        self, dispatches: Sequence[Dispatch], results: Sequence[Reply | Failure | Outcome]
    ) -> set[str]:
        """Return the throttle keys without any answer in time."""
        if not any(isinstance(each, Failure) and each.reason == TIME_OUT for each in results):
            return set()
        keyed = [
            (self.throttle_key(d), result) for d, result in zip(dispatches, results, strict=True)
        ]
        late_keys = {
            key for key, each in keyed if isinstance(each, Failure) and each.reason == TIME_OUT
        }
        return late_keys - {key for key, each in keyed if isinstance(each, Reply)}

    def _write(self, dispatch: Dispatch, credential: str) -> Request | Outcome:
        """Return one request. What cannot be written fails alone."""
        try:
            prepared = self.write(dispatch, credential)
            return traced(prepared, dispatch) if isinstance(prepared, Request) else prepared
        except MemoryError:  # of the process, not of this one
            raise
        except Exception:
            log.exception("push.request", kind=self.kind, attempt=dispatch.attempt_id)
            return UNWRITABLE

    def read_answer(self, dispatch: Dispatch, result: Reply | Failure | Outcome) -> Answer:
        """Return what a result means; Unknown if reading it raises."""
        if result is NOT_STARTED:
            return NOT_TRIED
        try:
            if isinstance(result, Failure):
                return self.read_failure(dispatch, result)
            return self.read_reply(dispatch, result) if isinstance(result, Reply) else result
        except MemoryError:  # of the process, not of this one
            raise
        except Exception:
            log.exception("push.answer", kind=self.kind, attempt=dispatch.attempt_id)
            return UNREADABLE

    def _throttle(
        self, dispatches: Sequence[Dispatch], answers: Sequence[Answer]
    ) -> list[Unthrottled]:
        """Start the backoff of each throttle key once, and let its messages wait."""
        seconds: dict[str, float] = {}
        unthrottled: list[Unthrottled] = []
        for dispatch, answer in zip(dispatches, answers, strict=True):
            if not isinstance(answer, Backoff):
                unthrottled.append(answer)
                continue
            key = self.throttle_key(dispatch)
            if key not in seconds:
                seconds[key] = backoff.start(key, answer.first, answer.retry_after)
            wait = max(seconds[key], answer.at_least)
            unthrottled.append(Retryable(answer.reason, wait, self.throttles_account))
        return unthrottled


def _reindexed(indexes: Sequence[int], progress: Progress) -> Progress:
    """Return a `Progress` for some dispatches that reports them by their indexes in the window."""
    return lambda answers: progress([(indexes[index], outcome) for index, outcome in answers])


def too_large(payload: bytes, limit: int) -> Outcome | None:
    """Return the refusal of a payload that is larger than the service takes. Sizes in bytes."""
    if len(payload) <= limit:
        return None
    return Rejected(f"{len(payload)} bytes; at most {limit} can be pushed", Fault.CONTENT)


def log_in(transport: Performer, request: Request) -> tuple[str, dict[str, object]]:
    """Return the access token of a log-in (RFC 6749 §5), and the answer that holds it.

    Raises NoCredential, whose outcome is never Unknown: in any case nothing was pushed.
    """
    (reply,) = transport.perform([request])
    if isinstance(reply, Failure):
        away = reply.kind in (FailureKind.NOT_SENT, FailureKind.UNKNOWN)
        reason = f"log-in: {reply.reason}"
        raise NoCredential(Retryable(reason) if away else Misconfigured(reason))
    body = read_object(reply.body)
    token = body.get("access_token")
    if reply.status == 200 and isinstance(token, str) and token:
        return token, body
    reason = f"log-in: {body.get('error') or reply.status}"[:200]
    if reply.status == 429 or reply.status >= 500:
        raise NoCredential(Retryable(reason, retry_after(reply)))
    raise NoCredential(Misconfigured(reason))


def check_outcome(answer: Answer) -> Outcome:
    """Return what the answer to a check says of an account. Nothing was to be delivered, so it is
    not in doubt, and no device is dead.
    """
    match answer:
        case CredentialRefused(otherwise=otherwise):
            return check_outcome(otherwise)
        case Backoff(reason=reason) | Unknown(reason=reason):
            return Retryable(reason)
        case Rejected(reason=reason) | Gone(reason=reason):
            return Misconfigured(reason)
    return answer


def log_in_outcome(make_token: Callable[[], object]) -> Outcome:
    """Return what a log-in says of an account's settings. Nothing is pushed, nothing is kept."""
    try:
        make_token()
    except NoCredential as error:
        return error.outcome
    return Accepted()


def objects_of(value: object) -> list[dict[str, object]]:
    """Return the objects of a JSON list; none for any other value."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def accepted(message_id: object) -> Accepted:
    """Return the outcome of an accepted message, with the service's id of it."""
    return Accepted(message_id[:255] if isinstance(message_id, str) else "")


def now() -> int:
    """Return the seconds since 1970."""
    return int(time.time())
