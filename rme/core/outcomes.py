"""What a provider can answer to one attempt. Six answers, and each says what may follow.

| outcome | meaning | what follows |
|---|---|---|
| Accepted | the provider took it | SENT; receipts may come later |
| Retryable | certainly not taken, another try may work | next account at once, then backoff |
| Rejected | refused for good | the recipient's fault: next channel; the content's: the end |
| Gone | the push token is dead | the next device; all dead: next channel |
| Misconfigured | our credentials or set-up are wrong | next account, then backoff |
| Unknown | it may have been taken | never failed over: a receipt or the category decides |

A provider never raises for what the other side does, and never raises an API error.
"""

from dataclasses import dataclass
from enum import StrEnum


class Fault(StrEnum):
    """Whose fault a refusal is."""

    RECIPIENT = "RECIPIENT"
    CONTENT = "CONTENT"


@dataclass(frozen=True, slots=True)
class Accepted:
    """The provider took it. `provider_id` is its own id for the message, for matching receipts."""

    provider_id: str = ""
    receipts: tuple[str, ...] = ()
    """Receipt types known at once. Only the simulator, which has no other way back, fills it."""


@dataclass(frozen=True, slots=True)
class Retryable:
    """It was not taken. `retry_after` is the provider's own wish in seconds, if it had one."""

    reason: str
    retry_after: float | None = None
    blames_account: bool = True
    """False: it is about one device or host alone, or nobody was asked; the account is well."""


NOT_TRIED = Retryable("no room on the way there", blames_account=False)
"""Nobody was asked: there was no time left, or no connection free, in this turn."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """It will never be taken. `hard` says that the address itself is dead (a hard bounce)."""

    reason: str
    fault: Fault = Fault.RECIPIENT
    hard: bool = False


@dataclass(frozen=True, slots=True)
class Gone:
    """The token is dead. `since` is the provider's time of death in ms since 1970, if it says."""

    reason: str
    since: int | None = None


@dataclass(frozen=True, slots=True)
class Misconfigured:
    """The account cannot send at all until a person changes something."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nobody can say whether it was taken."""

    reason: str


Outcome = Accepted | Retryable | Rejected | Gone | Misconfigured | Unknown
