"""The outcomes of an attempt. Each of the six determines what may follow.

| outcome | meaning | what follows |
|---|---|---|
| Accepted | the provider accepted it | SENT; receipts may come later |
| Retryable | certainly not accepted, another try may work | next account at once, then backoff |
| Rejected | refused for good | the recipient's fault: next channel; the content's: none |
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
    CONTENT = "CONTENT"


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
    """False: the failure concerns one device or host, or nothing was sent; the account works."""


NOT_TRIED = Retryable("no room on the way there", blames_account=False)
"""Nothing was sent: there was no time left, or no free connection."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """It will never be accepted. `hard`: the address itself is invalid (a hard bounce)."""

    reason: str
    fault: Fault = Fault.RECIPIENT
    hard: bool = False


@dataclass(frozen=True, slots=True)
class Gone:
    """The token is invalid; `since` when, in milliseconds since 1970, if reported."""

    reason: str
    since: int | None = None


@dataclass(frozen=True, slots=True)
class Misconfigured:
    """The account cannot send at all until a person changes something."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """It may have been accepted or not."""

    reason: str


Outcome = Accepted | Retryable | Rejected | Gone | Misconfigured | Unknown
