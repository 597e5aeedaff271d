"""A provider that answers as the test says, and the one delivery that it is about."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from messaging.domain.channels import Channel
from messaging.models import Delivery
from rme.core.outcomes import Outcome
from rme.core.provider import Dispatch, Progress, Provider, ProviderSettings, no_progress
from rme.transport import Transport


class Scripted(Provider):
    """A provider without a service: answers what the test has set for its account, and counts."""

    kind = "scripted"
    label = "Scripted"
    channels = frozenset(Channel)
    answers: ClassVar[dict[str, list[Outcome]]] = {}
    sent: ClassVar[list[tuple[str, str]]] = []

    class Settings(ProviderSettings):
        name: str

    def send(
        self,
        dispatches: Sequence[Dispatch],
        transport: Transport,
        progress: Progress = no_progress,
    ) -> list[Outcome]:
        script = self.answers[self.settings.name]
        outcomes = []
        for dispatch in dispatches:
            self.sent.append((self.settings.name, dispatch.content.to))
            outcomes.append(script.pop(0) if len(script) > 1 else script[0])
        return outcomes


def delivery() -> Delivery:
    return Delivery.objects.get()


def due_now() -> None:
    Delivery.objects.update(due_at=datetime.now(UTC) - timedelta(seconds=1))
