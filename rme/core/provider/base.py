"""What a provider is: frozen values in, outcomes out.

A provider knows one service's wire format and nothing else: no model, no settings of the
deployment, no organization. It turns a `Dispatch` into a transport `Request` and the transport's
`Reply` or `Failure` into an `Outcome`. One instance serves one account (its checked settings).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple

import structlog
from django.utils.translation import gettext_noop
from pydantic import BaseModel, ConfigDict

from rme.core.outcomes import NOT_TRIED, Fault, Outcome, Rejected, Unknown
from rme.core.provider.callbacks import (
    CallbackContent,
    CallbackRequest,
    DeliveryReceipt,
    SentMessage,
    UnknownCode,
)
from rme.core.provider.content import Content, Email, Push, Sms
from rme.transport.addresses import AddressPolicy
from rme.transport.messages import NOT_STARTED, Failure, Reply, Request
from rme.transport.performer import Performer

log = structlog.get_logger(__name__)

UNWRITABLE = Rejected("the provider cannot write this message", Fault.CONTENT)
"""The outcome of a dispatch for which the provider could build no request."""
UNREADABLE = Unknown("the answer cannot be read")
"""The outcome of a dispatch whose answer the provider could not read."""

StoreReceived = Callable[[Sequence[bytes]], bool]
"""Stores what came over a connection; returns whether it is safe, so that it can be confirmed."""
Progress = Callable[[Sequence[tuple[int, Outcome]]], object]
"""Takes outcomes that are known while others are awaited, each with its dispatch's index.

An outcome given here is final, whatever `send` returns for that index later. It must not raise.
"""


def no_progress(known: Sequence[tuple[int, Outcome]]) -> None:
    """Ignore early outcomes: the caller waits for all."""


class Dispatch(NamedTuple):
    """One attempt: its id (a provider's idempotency key where it takes one) and its content."""

    attempt_id: str
    content: Content
    callback_url: str = ""
    """Where the provider may report to, if it takes that with each message. No secret."""
    traceparent: str = ""
    """The context of its trace, for the header of an HTTP request; empty if it is not traced."""

    @property
    def email(self) -> Email:
        """Return the content of an EMAIL account's dispatch."""
        assert isinstance(self.content, Email)
        return self.content

    @property
    def sms(self) -> Sms:
        """Return the content of an SMS account's dispatch."""
        assert isinstance(self.content, Sms)
        return self.content

    @property
    def push(self) -> Push:
        """Return the content of a PUSH account's dispatch."""
        assert isinstance(self.content, Push)
        return self.content


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
    """Its name in the admin."""
    channels: ClassVar[frozenset[str]]
    platforms: ClassVar[frozenset[str]] = frozenset()
    """For PUSH: the platforms whose devices it reaches; empty for all."""
    refusal_problem: ClassVar[tuple[str, str]] = (
        "CREDENTIALS_FAILING",
        gettext_noop("The provider of %(name)s refuses its settings. Correct them."),
    )
    """What health shows while the provider refuses an account: a code, and a text with its name."""
    Settings: ClassVar[type[ProviderSettings]] = ProviderSettings
    listens: ClassVar[bool] = False
    """It receives over a connection that it keeps: each worker calls `listen` every few seconds."""
    callback_help: ClassVar[str] = ""
    """What to set at the service so that it calls the callback URL; empty: it never calls."""
    names_its_own_ids: ClassVar[bool] = False
    """Its receipts name its own ids of messages, which are therefore stored."""

    shows_ascii_senders_only: ClassVar[bool] = False
    """For SMS: it can't show a sender's name beyond ASCII. Its own sender is shown instead."""

    def __init__(self, settings: ProviderSettings) -> None:
        self.settings = settings

    def shows_sender(self, name: str) -> bool:
        """Return whether an SMS by this provider can show a sender's name."""
        return name.isascii() or not self.shows_ascii_senders_only

    def requested_sender(self, sms: Sms) -> str:
        """Return the sender that the request named; empty if it named none that can be shown."""
        return sms.sender if self.shows_sender(sms.sender) else ""

    @property
    def spf_mechanism(self) -> str:
        """Return what the SPF record of a sender domain needs for the service; empty: unknown."""
        return ""

    @property
    def polls(self) -> bool:
        """Return whether the account is asked for receipts, as its provider does not call us."""
        return False

    # --- sending --------------------------------------------------------------------------------

    def send(
        self,
        dispatches: Sequence[Dispatch],
        transport: Performer,
        progress: Progress = no_progress,
    ) -> list[Outcome]:
        """Send a window of dispatches at once; return their outcomes in the same order.

        After the transport's `start_timeout`, `progress` receives each outcome as it is known.
        """
        return send_together([(self, dispatch) for dispatch in dispatches], transport, progress)

    @property
    def sends_requests(self) -> bool:
        """Return whether a dispatch is one request, so that accounts can be sent to together."""
        return type(self).send is Provider.send

    def request(self, dispatch: Dispatch) -> Request:
        """Return the request for one dispatch. An error that it raises rejects that one alone."""
        raise NotImplementedError

    def outcome(self, reply: Reply | Failure) -> Outcome:
        """Return what the service's answer, or its absence, means."""
        raise NotImplementedError

    def outcome_of(self, dispatch: Dispatch, reply: Reply | Failure) -> Outcome:
        """Return what an answer means for one dispatch, where it depends on that, too."""
        return self.outcome(reply)

    def read_outcome(self, dispatch: Dispatch, reply: Reply | Failure) -> Outcome:
        """Return the outcome of one attempt; Unknown if `outcome_of` raises."""
        if reply is NOT_STARTED:
            return NOT_TRIED
        try:
            return self.outcome_of(dispatch, reply)
        except MemoryError:  # of the process, not of this one
            raise
        except Exception:
            log.exception("provider.outcome", kind=self.kind, attempt=dispatch.attempt_id)
            return UNREADABLE

    # --- a check without a message ----------------------------------------------------------------

    def check(self, transport: Performer) -> Outcome | None:
        """Log in without sending anything, by the cheapest request that the service offers.

        Return Accepted if it works, Retryable or Misconfigured if not. None, the default: only a
        message would show it.
        """
        return None

    # --- receipts and inbound SMS ---------------------------------------------------------------

    def is_authentic(self, callback: CallbackRequest, transport: Performer) -> bool:
        """Return whether a call comes from the provider, and is recent. Nothing is read before.

        `transport` fetches what it is verified by. Compare in constant time. The default is False:
        a provider that never calls leaves it.
        """
        return False

    def confirm(self, callback: CallbackRequest, transport: Performer) -> None:
        """Do what the service requires of an authentic call before it reports, if anything.

        No transaction is open.
        """

    def read_callback(self, callback: CallbackRequest) -> CallbackContent:
        """Return what an authentic call reports; nothing if it has no meaning for us."""
        return ()

    def listen(self, store: StoreReceived, policy: AddressPolicy) -> None:
        """Keep the connection open without waiting for it; what it receives goes to `store`.

        What was stored is read later by `read_callback`, as calls are.
        """

    def stop_listening(self) -> None:
        """Close the connection that `listen` keeps: the account is gone, or elsewhere."""

    def poll(
        self, messages: Sequence[SentMessage], transport: Performer
    ) -> list[Sequence[DeliveryReceipt | UnknownCode] | None]:
        """Ask for the receipts of messages, all at once; None where there was no answer."""
        replies = transport.perform([self.poll_request(each) for each in messages])
        return [
            self.read_poll_reply(each, reply) for each, reply in zip(messages, replies, strict=True)
        ]

    def poll_request(self, message: SentMessage) -> Request:
        """Return the request for a message's status."""
        raise NotImplementedError

    def read_poll_reply(
        self, message: SentMessage, reply: Reply | Failure
    ) -> Sequence[DeliveryReceipt | UnknownCode] | None:
        """Return what the answer reports; nothing if there is no news, None if it is no answer."""
        raise NotImplementedError


def traced(request: Request, dispatch: Dispatch) -> Request:
    """Return a request with the header that continues the trace of a dispatch, if it has one.

    A mail has no such header: its recipient would get it.
    """
    if not dispatch.traceparent or request.envelope:
        return request
    return replace(request, headers=(*request.headers, ("traceparent", dispatch.traceparent)))


def send_together(
    dispatches: Sequence[tuple[Provider, Dispatch]],
    transport: Performer,
    progress: Progress = no_progress,
) -> list[Outcome]:
    """Send dispatches of one or more accounts at once; return their outcomes in the same order.

    After the transport's `start_timeout`, `progress` receives each outcome as it is known. A
    dispatch that its provider cannot write, or whose answer it cannot read, fails alone and is
    logged: one defect must not stop the whole window.
    """
    requests: list[Request] = []
    indexes: list[int] = []  # of the requests' dispatches
    outcomes: dict[int, Outcome] = {}
    for index, (provider, dispatch) in enumerate(dispatches):
        try:
            requests.append(traced(provider.request(dispatch), dispatch))
            indexes.append(index)
        except MemoryError:  # of the process, not of this one
            raise
        except Exception:
            log.exception("provider.request", kind=provider.kind, attempt=dispatch.attempt_id)
            outcomes[index] = UNWRITABLE

    def read(index: int, reply: Reply | Failure) -> Outcome:
        provider, dispatch = dispatches[index]
        return provider.read_outcome(dispatch, reply)

    def on_replies(replies: Sequence[tuple[int, Reply | Failure]]) -> None:
        answers = [(indexes[place], read(indexes[place], reply)) for place, reply in replies]
        outcomes.update(answers)
        progress(answers)

    replies = transport.perform(requests, on_replies)
    for index, reply in zip(indexes, replies, strict=True):
        if index not in outcomes:
            outcomes[index] = read(index, reply)
    return [outcomes[index] for index in range(len(dispatches))]
