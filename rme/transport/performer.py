"""What those who build requests know of the transport."""

from collections.abc import Sequence
from typing import Protocol

from rme.transport.addresses import AddressPolicy
from rme.transport.messages import OnResults, Request, Result


class Performer(Protocol):
    """What performs requests, for those who build them: a `Transport`."""

    policy: AddressPolicy
    start_timeout: float | None

    def perform(
        self, requests: Sequence[Request], on_results: OnResults | None = None
    ) -> list[Result]: ...

    def isolated(self, name: str) -> "Performer": ...

    def close_isolated(self, name: str) -> None: ...
