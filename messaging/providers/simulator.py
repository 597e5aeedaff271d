"""The simulator: takes what nobody else takes, and acts out what a provider can do.

For emails at `simulator.rme.test`, numbers `+15005550001` to `…07` and push tokens with
`simulator-` and the word: delivered, bounce, complaint, slow, down, reject, unknown, in this
order. Everything else is sent and delivered. Nothing leaves the machine.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

from rme.core.channels import Channel
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
from rme.transport import Transport

ACTS: dict[str, Outcome] = {
    "delivered": Accepted(receipts=("delivered", "open")),
    "bounce": Accepted(receipts=("bounced",)),
    "complaint": Accepted(receipts=("delivered", "complained")),
    "slow": Accepted(receipts=("delivered",)),
    "down": Retryable("simulated: the provider is down"),
    # the content's fault: that alone tries no other channel, so that a caller sees the refusal
    "reject": Rejected("simulated: refused", Fault.CONTENT),
    "unknown": Unknown("simulated: no answer"),
}
OTHERWISE = Accepted(receipts=("delivered",))
SLOW_SECONDS = 5.0

ADDRESSES = {f"{word}@simulator.rme.test": word for word in ACTS}
NUMBERS = {f"+1500555000{place}": word for place, word in enumerate(ACTS, start=1)}


def word_of(content: Content) -> str | None:
    """Say which act an address asks for; None: no special one."""
    match content:
        case Email(to=to):
            return ADDRESSES.get(to.lower())
        case Sms(to=to):
            return NUMBERS.get(to)
        case Push(token=token):
            return next((word for word in ACTS if f"simulator-{word}" in token), None)


class Simulator(Provider):
    """Act out a provider without one."""

    kind: ClassVar[str] = "simulator"
    label: ClassVar[str] = "Simulator"
    channels: ClassVar[frozenset[Channel]] = frozenset(Channel)

    def __init__(
        self, settings: ProviderSettings, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Serve an account. `sleep` takes seconds; a test gives one that only takes note."""
        super().__init__(settings)
        self.sleep = sleep

    def send(
        self,
        dispatches: Sequence[Dispatch],
        transport: Transport,
        progress: Progress = no_progress,
    ) -> list[Outcome]:
        """Answer each dispatch as its address asks.

        However many slow ones a window has, it takes 5 s once, as with real requests side by side.
        """
        words = [word_of(dispatch.content) for dispatch in dispatches]
        outcomes = [_act(word, dispatch) for word, dispatch in zip(words, dispatches, strict=True)]
        if "slow" in words:
            progress([each for each in enumerate(outcomes) if words[each[0]] != "slow"])
            self.sleep(SLOW_SECONDS)
        return outcomes


def _act(word: str | None, dispatch: Dispatch) -> Outcome:
    outcome = ACTS[word] if word else OTHERWISE
    if isinstance(outcome, Accepted):
        return replace(outcome, provider_id=f"simulated-{dispatch.attempt_id}")
    return outcome
