"""The simulator: takes what nobody else takes, and acts out what a provider can do.

For emails at `simulator.rme.test`, numbers `+15005550001` to `…07` and push tokens with
`simulator-` and the word: delivered, bounce, complaint, slow, down, reject, unknown, in this
order. Everything else is sent and delivered. Nothing leaves the machine.
"""

import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from messaging.providers.base import (
    Content,
    Dispatch,
    Email,
    Provider,
    ProviderSettings,
    Push,
    Sms,
)
from rme.core.channels import Channel
from rme.core.outcomes import Accepted, Fault, Outcome, Rejected, Retryable, Unknown
from rme.core.transport import Transport

DOMAIN = "@simulator.rme.test"
NUMBER = "+1500555000"
SLOW_SECONDS = 5.0

WORDS = ("delivered", "bounce", "complaint", "slow", "down", "reject", "unknown")

ACTS: dict[str, Outcome] = {
    "delivered": Accepted("simulated", ("delivered", "open")),
    "bounce": Accepted("simulated", ("bounced",)),
    "complaint": Accepted("simulated", ("delivered", "complained")),
    "slow": Accepted("simulated", ("delivered",)),
    "down": Retryable("simulated: the provider is down"),
    "reject": Rejected("simulated: refused", Fault.CONTENT),
    "unknown": Unknown("simulated: no answer"),
}
OTHERWISE = Accepted("simulated", ("delivered",))


def word_of(content: Content) -> str | None:
    """Say which act an address asks for."""
    match content:
        case Email(to=to) if to.endswith(DOMAIN):
            local = to.removesuffix(DOMAIN)
            return local if local in ACTS else None
        case Sms(to=to) if to.startswith(NUMBER) and to[len(NUMBER) :] in "1234567":
            return WORDS[int(to[len(NUMBER) :]) - 1]
        case Push(token=token) if "simulator-" in token:
            rest = token.partition("simulator-")[2]
            return next((word for word in WORDS if rest.startswith(word)), None)
    return None


class Simulator(Provider):
    """Act out a provider without one."""

    kind: ClassVar[str] = "simulator"
    label: ClassVar[str] = "Simulator"
    channels: ClassVar[frozenset[Channel]] = frozenset(Channel)

    def __init__(
        self, settings: ProviderSettings, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        super().__init__(settings)
        self.sleep = sleep

    def send(self, dispatches: Sequence[Dispatch], transport: Transport) -> list[Outcome]:
        """Answer each dispatch as its address asks; a slow one makes its window slow."""
        words = [word_of(dispatch.content) for dispatch in dispatches]
        if "slow" in words:
            self.sleep(SLOW_SECONDS)
        return [ACTS.get(word or "", OTHERWISE) for word in words]
