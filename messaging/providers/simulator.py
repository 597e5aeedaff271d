"""The simulator: the provider of organizations without an account; it acts out outcomes.

An address names its outcome: delivered, bounce, complaint, slow, down, reject or unknown. Emails
are `<outcome>@simulator.rme.test`, numbers `+15005550001` to `…07` in this order, and push tokens
contain `simulator-<outcome>`. Every other address is delivered. Nothing leaves the machine.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from messaging.domain.channels import Channel
from rme.core.outcomes import Accepted, Fault, Outcome, Rejected, Retryable, Unknown
from rme.core.provider import (
    Content,
    Dispatch,
    Email,
    Progress,
    Provider,
    ProviderSettings,
    Push,
    Sms,
    no_progress,
)
from rme.transport.performer import Performer

OUTCOMES: dict[str, Outcome] = {
    "delivered": Accepted(receipts=("delivered", "open")),
    "bounce": Accepted(receipts=("bounced",)),
    "complaint": Accepted(receipts=("delivered", "complained")),
    "slow": Accepted(receipts=("delivered",)),
    "down": Retryable("simulated: the provider is down"),
    # the content's fault, since only that tries no other channel: a caller sees the refusal
    "reject": Rejected("simulated: refused", Fault.CONTENT),
    "unknown": Unknown("simulated: no answer"),
}
DEFAULT = Accepted(receipts=("delivered",))
SLOW_SECONDS = 5.0

ADDRESSES = {f"{word}@simulator.rme.test": word for word in OUTCOMES}
NUMBERS = {f"+1500555000{place}": word for place, word in enumerate(OUTCOMES, start=1)}


def named_outcome(content: Content) -> str | None:
    """Return the outcome that an address names; None if it names none."""
    match content:
        case Email(to=to):
            return ADDRESSES.get(to.lower())
        case Sms(to=to):
            return NUMBERS.get(to)
        case Push(token=token):
            return next((word for word in OUTCOMES if f"simulator-{word}" in token), None)


class Simulator(Provider):
    """Act out a provider without one."""

    kind = "simulator"
    label = "Simulator"
    channels = frozenset(Channel)

    def __init__(
        self, settings: ProviderSettings, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Create a provider. `sleep` takes seconds; a test passes one that only records them."""
        super().__init__(settings)
        self.sleep = sleep

    def check(self, transport: Performer) -> Outcome:
        return Accepted()

    def send(
        self,
        dispatches: Sequence[Dispatch],
        transport: Performer,
        progress: Progress = no_progress,
    ) -> list[Outcome]:
        """Return the outcome that each address names.

        All slow dispatches of a window together take 5 s, as concurrent requests do.
        """
        words = [named_outcome(dispatch.content) for dispatch in dispatches]
        outcomes = [
            _outcome(word, dispatch) for word, dispatch in zip(words, dispatches, strict=True)
        ]
        if "slow" in words:
            progress([each for each in enumerate(outcomes) if words[each[0]] != "slow"])
            self.sleep(SLOW_SECONDS)
        return outcomes


def _outcome(word: str | None, dispatch: Dispatch) -> Outcome:
    outcome = OUTCOMES[word] if word else DEFAULT
    if isinstance(outcome, Accepted):
        return replace(outcome, provider_id=f"simulated-{dispatch.attempt_id}")
    return outcome
