"""Push: each sender (`push.senders`) as a provider, under its own name."""

from collections.abc import Sequence
from typing import ClassVar, cast

from messaging.providers.base import (
    Dispatch,
    Progress,
    Provider,
    ProviderSettings,
    no_progress,
)
from push import senders
from push.notification import Shot
from push.senders.base import Sender
from rme.core.channels import Channel
from rme.core.outcomes import Outcome
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
            "refused": sender.refused or PushProvider.refused,
            "sender": sender,
            "Settings": sender.Settings,
        },
    )


PUSH = tuple(_provider(sender) for sender in senders.REGISTRY.values())
