"""Bodies of requests: short ones are kept, and can be sent again; long ones are streamed."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

from rme.cells.router.environment import RouterBounds
from rme.cells.router.heads import Head

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


class BodyTooLate(Exception):
    """The body did not arrive in time."""


class BodyTooLong(Exception):
    """The body is longer than any that a cell takes."""


class TooManyBodies(Exception):
    """The kept bodies of this process take as much memory as they may."""


class ClientGone(Exception):
    """The client has closed the connection."""


class Memory:
    """The bytes of the kept bodies of a process, of all clients and of each."""

    def __init__(self) -> None:
        self.used = 0
        self.by_client: Counter[str] = Counter()

    def add(self, client: str, count: int) -> None:
        """Count bytes of a client; a negative number releases them."""
        self.used += count
        self.by_client[client] += count
        if not self.by_client[client]:
            del self.by_client[client]


class RequestBody:
    """The body of a request. `begin` reads it, or its beginning."""

    def __init__(
        self, head: Head, receive: Receive, bounds: RouterBounds, memory: Memory, client: str
    ) -> None:
        self.head, self.receive, self.bounds, self.memory = head, receive, bounds, memory
        self.client = client
        self.failure: BodyTooLate | BodyTooLong | ClientGone | None = None
        """What ended the stream; the client library raises an error of its own then."""
        self.start = b""
        self.is_kept = not head.has_body
        self.was_sent = False
        self._counted = 0

    async def begin(self) -> None:
        """Read a short body whole, and of a longer one the beginning.

        Raise BodyTooLate, BodyTooLong, TooManyBodies or ClientGone.
        """
        if (self.head.length or 0) > self.bounds.body:
            raise BodyTooLong
        if self.is_kept:
            return
        until = asyncio.get_running_loop().time() + self.bounds.buffered_body_seconds
        pieces: list[bytes] = []
        while self._counted <= self.bounds.buffered_body:
            message = await self._next(until)
            piece = message.get("body", b"")
            pieces.append(piece)
            self._counted += len(piece)
            self.memory.add(self.client, len(piece))
            if not message.get("more_body"):
                self.is_kept = True
                break
            if (
                self.memory.used > self.bounds.memory
                or self.memory.by_client[self.client] > self.bounds.client_memory
            ):
                raise TooManyBodies
        self.start = b"".join(pieces)

    def release(self) -> None:
        """Release the memory of the body."""
        self.memory.add(self.client, -self._counted)
        self._counted = 0

    def data(self) -> bytes | AsyncIterator[bytes] | None:
        """Return the body to send to a cell."""
        self.was_sent = True
        if self.is_kept:
            return self.start or None
        return self._stream()

    @property
    def can_be_sent(self) -> bool:
        """Return whether the body is there, whole, to be sent to a cell."""
        return self.is_kept or not self.was_sent

    async def _stream(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._pieces():
                yield piece
        except (BodyTooLate, BodyTooLong, ClientGone) as error:
            self.failure = error
            raise

    async def _pieces(self) -> AsyncIterator[bytes]:
        yield self.start
        sent = len(self.start)
        until = asyncio.get_running_loop().time() + self.bounds.body_seconds
        while True:
            message = await self._next(until)
            piece = message.get("body", b"")
            sent += len(piece)
            if sent > self.bounds.body:
                raise BodyTooLong
            if piece:
                yield piece
            if not message.get("more_body"):
                return

    async def _next(self, until: float) -> Message:
        now = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(min(until, now + self.bounds.idle_seconds)):
                message = await self.receive()
        except TimeoutError:
            raise BodyTooLate from None
        if message["type"] == "http.disconnect":
            raise ClientGone
        return message
