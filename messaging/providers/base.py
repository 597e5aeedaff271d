"""What a provider is: frozen values in, outcomes out.

A provider knows one service's wire format and nothing else: no model, no settings of the
deployment, no organization. It turns a `Dispatch` into a transport `Request` and the transport's
`Reply` or `Failure` into an `Outcome`. One instance serves one account (its checked settings).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, NamedTuple
from uuid import UUID

import structlog
from pydantic import BaseModel, ConfigDict

from push.notification import Notification
from rme.core.channels import Channel
from rme.core.outcomes import NOT_TRIED, Fault, Outcome, Rejected, Unknown
from rme.transport import NOT_STARTED, AddressPolicy, Failure, Reply, Request, Transport

log = structlog.get_logger(__name__)

Hear = Callable[[Sequence[bytes]], bool]
Progress = Callable[[Sequence[tuple[int, Outcome]]], object]
"""Takes the outcomes that are known while others are awaited, each with the place of its dispatch.
What it was given counts, whatever is returned for that place later. It must not raise.
"""


def no_progress(known: Sequence[tuple[int, Outcome]]) -> None:
    """Ignore what is known early: the caller waits for all."""


@dataclass(frozen=True, slots=True)
class Email:
    """A rendered email. Every text may hold any character: the provider makes it safe."""

    to: str
    from_address: str
    from_name: str
    subject: str
    text: str
    html: str = ""
    to_name: str = ""
    message_id: str = ""
    """Our Message-ID without angle brackets; it is how late bounces find their message."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further headers, such as List-Unsubscribe. Names are ours, never a caller's."""


@dataclass(frozen=True, slots=True)
class Sms:
    """A rendered SMS. `to` is E.164; `sender` a sender id or an empty string."""

    to: str
    text: str
    sender: str = ""


class Push(Notification):
    """A rendered push for one device."""

    __slots__ = ()


Content = Email | Sms | Push


class Dispatch(NamedTuple):
    """One attempt: its id (a provider's idempotency key where it takes one) and its content."""

    attempt_id: str
    content: Content
    callback_url: str = ""
    """Where the provider may report to, if it takes that with each message. No secret."""


@dataclass(frozen=True, slots=True, repr=False)
class Callback:
    """A call from the provider, as it arrived.

    `url` is the account's own, as the provider was given it, and `query` what came behind it.
    Header names are lower case.
    """

    url: str
    method: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    received_at: datetime


@dataclass(frozen=True, slots=True)
class Report:
    """What the provider says became of an attempt: an event's type, `bounced` for a dead address.

    Providers send our own id of the attempt there and back. It is in the database before the
    message leaves, so that no report comes too early to be understood, and it is known where the
    provider's own id never arrived. One that cannot (`names_its_own_ids`) has no `attempt_id`, and
    `provider_id` is what it answered when it took the message.
    """

    attempt_id: UUID | None
    type: str
    reason: str | None = None
    soft: bool = False
    """Of a failure: the address could not be reached for now. Many such in a row end it."""
    machine: bool = False
    """Of an open or a click: a scanner or a proxy made it."""
    provider_id: str = ""


@dataclass(frozen=True, slots=True)
class Taken:
    """A message that the provider took, by our id of the attempt and by its own."""

    attempt_id: UUID
    provider_id: str


@dataclass(frozen=True, slots=True)
class UnknownCode:
    """A code that the provider's tables lack. The call is kept, and the code is counted."""

    code: str


@dataclass(frozen=True, slots=True)
class Part:
    """Which part of a long text an SMS is, from 1; the same `reference` holds all together."""

    reference: int
    total: int
    number: int


@dataclass(frozen=True, slots=True)
class Inbound:
    """What a person wrote to us by SMS. `sender` is their number, `to` ours."""

    sender: str
    to: str
    text: str
    answered: bool = False
    """The provider has answered a keyword itself."""
    part: Part | None = None
    """Of a text that came in parts, and that the provider has not put together."""


class ProviderSettings(BaseModel):
    """An account's settings. Secrets are `SecretStr`; the admin's form is made from the fields."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, str_strip_whitespace=True, hide_input_in_errors=True
    )


class Provider:
    """Base of all providers. A new one sets the four names and writes `request` and `outcome`."""

    kind: ClassVar[str]
    """Its name in the registry, in the database and in `provider` of the API."""
    label: ClassVar[str]
    """Its name for people."""
    channels: ClassVar[frozenset[Channel]]
    platforms: ClassVar[frozenset[str]] = frozenset()
    """Of PUSH: the devices that it reaches; none named: all."""
    refused: ClassVar[tuple[str, str]] = (
        "CREDENTIALS_FAILING",
        "{} is refused by its provider: its settings are wrong.",
    )
    """What health says while the provider refuses an account: a code, and a text for its name."""
    Settings: ClassVar[type[ProviderSettings]] = ProviderSettings
    listens: ClassVar[bool] = False
    """It hears over a link that it keeps: `listen` is called every few seconds by each worker."""
    names_its_own_ids: ClassVar[bool] = False
    """Its reports name its own ids of messages, which are then kept to be looked up."""

    def __init__(self, settings: ProviderSettings) -> None:
        self.settings = settings

    @property
    def polls(self) -> bool:
        """Say whether the account is to be asked what became of messages, since nobody calls us."""
        return False

    def send(
        self,
        dispatches: Sequence[Dispatch],
        transport: Transport,
        progress: Progress = no_progress,
    ) -> list[Outcome]:
        """Send a window of dispatches at once; the outcomes come in the same order.

        Once the transport's patience has passed, `progress` is given each outcome as it is known.
        """
        return send_together([(self, dispatch) for dispatch in dispatches], transport, progress)

    @property
    def sends_requests(self) -> bool:
        """Return whether a dispatch is one request, so that accounts can be sent to together."""
        return type(self).send is Provider.send

    def read_outcome(self, dispatch: Dispatch, reply: Reply | Failure) -> Outcome:
        """Return the outcome of one attempt; Unknown if the answer is one that raises."""
        if reply is NOT_STARTED:
            return NOT_TRIED
        try:
            return self.outcome_of(dispatch, reply)
        except Exception:
            log.exception("provider.outcome", kind=self.kind, attempt=dispatch.attempt_id)
            return Unknown("the answer cannot be read")

    def outcome_of(self, dispatch: Dispatch, reply: Reply | Failure) -> Outcome:
        """Return what an answer means for one dispatch, where it depends on that, too."""
        return self.outcome(reply)

    def request(self, dispatch: Dispatch) -> Request:
        """Say what has to go over the wire for one dispatch."""
        raise NotImplementedError

    def outcome(self, reply: Reply | Failure) -> Outcome:
        """Say what the other side's answer, or its absence, means."""
        raise NotImplementedError

    def listen(self, hear: Hear, policy: AddressPolicy) -> None:
        """Keep the link open, without waiting for it; what comes is given to `hear`.

        That takes what was heard and says whether it is safe. It is `read` later, as calls are.
        """

    def authentic(self, callback: Callback) -> bool:
        """Say whether a call comes from the provider, and not long ago. Nothing is read before.

        Compare in constant time. A provider that never calls leaves this: then none is authentic.
        """
        return False

    def confirm(self, callback: Callback) -> None:
        """Do what the service asks for with an authentic call before it reports, if it asks.

        No transaction is open.
        """

    def read(self, callback: Callback) -> Sequence[Report | Inbound | UnknownCode]:
        """Say what an authentic call reports; nothing for what means nothing to us."""
        return ()

    def poll(
        self, taken: Sequence[Taken], transport: Transport
    ) -> list[Sequence[Report | UnknownCode] | None]:
        """Ask what became of messages, all at once; None for one of which nothing was told."""
        replies = transport.perform([self.question(each) for each in taken])
        return [self.told(each, reply) for each, reply in zip(taken, replies, strict=True)]

    def question(self, taken: Taken) -> Request:
        """Say how to ask what became of a message."""
        raise NotImplementedError

    def told(self, taken: Taken, reply: Reply | Failure) -> Sequence[Report | UnknownCode] | None:
        """Say what the answer reports; nothing where there is no news, None where it is none."""
        raise NotImplementedError


def send_together(
    dispatches: Sequence[tuple[Provider, Dispatch]],
    transport: Transport,
    progress: Progress = no_progress,
) -> list[Outcome]:
    """Send dispatches of one or more accounts at once; the outcomes come in the same order.

    Once the transport's patience has passed, `progress` is given each outcome as it is known. A
    dispatch that its provider cannot write, or whose answer it cannot read, fails alone: a fault of
    ours, which the log shows, must not keep the whole window from going.
    """
    requests: list[Request] = []
    places: list[int] = []  # of the requests' dispatches
    outcomes: dict[int, Outcome] = {}
    for place, (provider, dispatch) in enumerate(dispatches):
        try:
            requests.append(provider.request(dispatch))
            places.append(place)
        except Exception:
            log.exception("provider.request", kind=provider.kind, attempt=dispatch.attempt_id)
            outcomes[place] = Rejected("the provider cannot write this message", Fault.CONTENT)

    def judge(place: int, reply: Reply | Failure) -> Outcome:
        provider, dispatch = dispatches[place]
        return provider.read_outcome(dispatch, reply)

    def report(answered: Sequence[tuple[int, Reply | Failure]]) -> None:
        known = [(places[index], judge(places[index], reply)) for index, reply in answered]
        outcomes.update(known)
        progress(known)

    replies = transport.perform(requests, report)
    for place, reply in zip(places, replies, strict=True):
        if place not in outcomes:
            outcomes[place] = judge(place, reply)
    return [outcomes[place] for place in range(len(dispatches))]
