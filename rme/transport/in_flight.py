"""Requests in flight that others may join at any time: a slow one delays no other."""

from collections.abc import Hashable
from time import monotonic
from typing import Generic, TypeVar

from rme.transport.addresses import origin_of
from rme.transport.client import Transport
from rme.transport.connections import ActiveRequest
from rme.transport.messages import Failure, FailureKind, Request, Result

K = TypeVar("K", bound=Hashable)


class RequestsInFlight(Generic[K]):
    """HTTP requests in flight, each with a key of the caller's, over a transport of their own.

    `Transport.perform` returns when all its requests have ended; `step` returns each when it has.
    The caller limits how many are in flight at once, to one host and in all.
    """

    def __init__(self, transport: Transport) -> None:
        """Take over a transport: no one else may use it, and `close` closes it."""
        self.transport = transport
        self._active: dict[ActiveRequest, K] = {}
        self._ended: list[tuple[K, Result]] = []

    def __len__(self) -> int:
        """Return how many requests `step` has not returned yet."""
        return len(self._active) + len(self._ended)

    def add(self, key: K, request: Request) -> None:
        """Start an HTTP request. One to a refused address ends at the next step."""
        origin = origin_of(request.url)
        if origin is None or origin.scheme not in ("http", "https"):
            self._refuse(key, "not an address to call")
        elif refusal := self.transport.policy.refuses(origin):
            self._refuse(key, refusal)
        else:
            self._active[self.transport.connections.start(request, origin)] = key

    def step(self, seconds: float) -> list[tuple[K, Result]]:
        """Wait for the next event, at most some seconds; return what has ended."""
        ended, self._ended = self._ended, []
        if self._active:
            wait = 0.0 if ended else seconds
            for active, result in self.transport.connections.step(monotonic() + wait):
                ended.append((self._active.pop(active), result))
        return ended

    def close(self) -> None:
        """Cancel what is in flight, and close the connections."""
        for active in self._active:
            self.transport.connections.cancel(active)
        self._active.clear()
        self.transport.close()

    def _refuse(self, key: K, reason: str) -> None:
        self._ended.append((key, Failure(FailureKind.REFUSED_ADDRESS, reason)))
