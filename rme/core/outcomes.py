"""The outcomes of an attempt. Each of the six determines what may follow.

| outcome | meaning | what follows |
|---|---|---|
| Accepted | the provider accepted it | SENT; receipts may come later |
| Retryable | certainly not accepted, another try may work | next account at once, then backoff |
| Rejected | refused for good | see `Fault` |
| Gone | the push token is invalid now | the next device; none left: next channel |
| Misconfigured | our credentials or set-up are wrong | next account, then backoff |
| Unknown | it may have been accepted | no failover: a receipt or the category decides |

A provider never raises for a failure of the other side, and never raises an API error.
"""

from dataclasses import dataclass
from enum import StrEnum


class Fault(StrEnum):
    """Whose fault a refusal is."""

    RECIPIENT = "RECIPIENT"
    """The address can't be reached: try the next channel."""
    CONTENT = "CONTENT"
    """No account can send this message: it fails."""
    ROUTE = "ROUTE"
    """This account can't send it, because of its sender or destination: try the next account;
    without one, the next channel."""


class OptOut(StrEnum):
    """How a recipient opted out with the provider, which therefore sent nothing."""

    STOP = "STOP"
    """They wrote STOP: the number is suppressed."""
    COMPLAINT = "COMPLAINT"
    """They complained: the address is suppressed."""
    UNSUBSCRIBED = "UNSUBSCRIBED"
    """They left a list: rme records OPTED_OUT for the message's category."""

    @property
    def suppresses_as(self) -> str | None:
        """Return the reason of the address's suppression; None for an opt-out of a category."""
        return None if self is OptOut.UNSUBSCRIBED else self.value


@dataclass(frozen=True, slots=True)
class Accepted:
    """The provider accepted it. `provider_id` is its id for the message, which receipts name."""

    provider_id: str = ""
    receipts: tuple[str, ...] = ()
    """Receipts known at once; only the simulator, which sends no callbacks, has any."""


@dataclass(frozen=True, slots=True)
class Retryable:
    """It was not accepted. `retry_after` is what the provider requests, in seconds."""

    reason: str
    retry_after: float | None = None
    blames_account: bool = True
    """False: the failure concerns one message, device or host, or nothing was sent; the account
    works."""
    of_sender: bool = False
    """The sender is refused: the request's, if it named one, else the account's own."""


NOT_TRIED = Retryable("no room on the way there", blames_account=False)
"""Nothing was sent: there was no time left, or no free connection."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """It will never be accepted. `hard`: the address itself is invalid (a hard bounce)."""

    reason: str
    fault: Fault = Fault.RECIPIENT
    hard: bool = False
    opt_out: OptOut | None = None
    """The recipient opted out with the provider."""

    @property
    def is_of_route(self) -> bool:
        """Return whether another account may send it."""
        return self.fault is Fault.ROUTE

    @property
    def suppress_as(self) -> str | None:
        """Return the reason to suppress the address; None to leave it."""
        if self.hard:
            return "HARD_BOUNCE"
        return self.opt_out.suppresses_as if self.opt_out else None


@dataclass(frozen=True, slots=True)
class Gone:
    """The token is invalid; `since` when, in milliseconds since 1970, if reported."""

    reason: str
    since: int | None = None


@dataclass(frozen=True, slots=True)
class Misconfigured:
    """The account cannot send at all until a person changes something."""

    reason: str
    of_sender: bool = False
    """The sender is refused: the request's, if it named one, else the account's own."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """It may have been accepted or not."""

    reason: str


Outcome = Accepted | Retryable | Rejected | Gone | Misconfigured | Unknown
