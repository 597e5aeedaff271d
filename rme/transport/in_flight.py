"""Requests under way that others may join at any time: what is slow holds up nothing else."""

from collections.abc import Hashable
from time import monotonic
from typing import Generic, TypeVar

from rme.transport.addresses import origin_of
from rme.transport.client import Transport
from rme.transport.messages import Failure, FailureKind, Reply, Request
from rme.transport.scheduler import ActiveRequest

K = TypeVar("K", bound=Hashable)


class RequestsInFlight(Generic[K]):
    """Requests under way, each with a key of the caller's, over a transport of its own.

    `Transport.perform` answers when all its requests have ended; here each is given when it has.
    How many may be under way at once, to one host or in all, is for the caller to bound.
    """

    def __init__(self, transport: Transport) -> None:
        """Take a transport over: nobody else may use it, and `close` closes it."""
        self.transport = transport
        self._under_way: dict[ActiveRequest, K] = {}
        self._ended: list[tuple[K, Reply | Failure]] = []

    def __len__(self) -> int:
        """Count what has not been given yet."""
        return len(self._under_way) + len(self._ended)

    def add(self, key: K, request: Request) -> None:
        """Set an HTTP request on its way. What may not be called ends at the next step."""
        where = origin_of(request.url)
        if where is None or where.scheme not in ("http", "https"):
            self._refuse(key, "not an address to call")
        elif refusal := self.transport.policy.refuses(where):
            self._refuse(key, refusal)
        else:
            self._under_way[self.transport.begin(request, where)] = key

    def step(self, seconds: float) -> list[tuple[K, Reply | Failure]]:
        """Wait until something happens, at most for a time; give what has ended."""
        ended, self._ended = self._ended, []
        if self._under_way:
            wait = 0.0 if ended else seconds
            for way, result in self.transport.step(monotonic() + wait):
                ended.append((self._under_way.pop(way), result))
        return ended

    def close(self) -> None:
        """Break off what is under way, and close the connections."""
        for way in self._under_way:
            self.transport.drop(way)
        self._under_way.clear()
        self.transport.close()

    def _refuse(self, key: K, why: str) -> None:
        self._ended.append((key, Failure(FailureKind.REFUSED_ADDRESS, why)))
