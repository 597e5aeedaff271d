"""Push: each sender (`push.providers`) as a provider, under its own name."""

from collections.abc import Sequence
from typing import ClassVar, cast

from push import providers
from push.providers.base import Sender, Shot
from rme.core.channels import Channel
from rme.core.outcomes import Outcome
from rme.core.provider import Dispatch, Progress, Provider, ProviderSettings, no_progress
from rme.transport import Transport


class PushProvider(Provider):
    """Hand a window to a sender."""

    channels: ClassVar[frozenset[Channel]] = frozenset({Channel.PUSH})
    sender: ClassVar[type[Sender]]

    def __init__(self, settings: ProviderSettings) -> None:
        super().__init__(settings)
        self._sender = self.sender(settings)

    def send(
        self,
        dispatches: Sequence[Dispatch],
        transport: Transport,
        progress: Progress = no_progress,
    ) -> list[Outcome]:
        """Send a window of pushes at once; the outcomes come in the same order."""
        shots = cast("Sequence[Shot]", dispatches)  # the contents are the account's channel's
        return self._sender.send(shots, transport, progress)


def _provider(sender: type[Sender]) -> type[Provider]:
    return type(
        sender.__name__,
        (PushProvider,),
        {
            "__doc__": sender.__doc__,
            "kind": sender.kind,
            "label": sender.label,
            "platforms": sender.platforms,
            "refusal_problem": sender.refused or PushProvider.refusal_problem,
            "sender": sender,
            "Settings": sender.Settings,
        },
    )


PUSH = tuple(_provider(sender) for sender in providers.REGISTRY.values())
