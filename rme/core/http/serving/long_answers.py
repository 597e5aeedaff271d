"""Long answers: a thread writes one at full speed, and the event loop sends it.

So a slow client doesn't hold a thread. The unsent part is in an unnamed file. When the files of a
process have no room left, the thread waits until its client has taken the part that is there; a
client that is too slow for that loses its answer.
"""

import asyncio
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from tempfile import TemporaryFile
from threading import Condition, Lock

from rme.core import errors

PIECE = 64 * 1024
SLOWEST = 256 * 1024
"""Bytes per second that a client must take on average while a thread waits for it."""
ROOM = "rme.room"
"""The key of the room in a request's environment."""

SendPiece = Callable[[bytes], Awaitable[None]]


class Abandoned(Exception):
    """The client of an answer has gone, or stopped reading."""


class Room:
    """The bytes that unsent answers may use in files, in total and per owner."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._used: Counter[str] = Counter()
        self._lock = Lock()

    def take(self, owner: str, count: int) -> bool:
        """Take room if there is enough: one owner gets at most half of it."""
        with self._lock:
            fits = self._used.total() + count <= self.size
            if fits and self._used[owner] + count <= self.size // 2:
                self._used[owner] += count
                return True
            return False

    def is_full(self, owner: str) -> bool:
        """Return whether an owner gets no room for another piece."""
        with self._lock:
            used = max(self._used.total(), 2 * self._used[owner])
            return used + PIECE > self.size

    def give(self, owner: str, count: int) -> None:
        """Release room."""
        with self._lock:
            self._used[owner] -= count
            if not self._used[owner]:
                del self._used[owner]


def require_room(environ: Mapping[str, object], owner: str) -> None:
    """Raise RateLimited if an owner has no room for a long answer."""
    room = environ.get(ROOM)
    if isinstance(room, Room) and room.is_full(owner):
        raise errors.RateLimited(
            "The space for unfinished downloads is used up. Wait until your organization's other "
            "downloads have ended, or cancel them.",
            headers={"Retry-After": "10"},
        )


class LongAnswer:
    """The body of one answer, on its way from a thread to a client."""

    def __init__(
        self,
        room: Room,
        owner: str,
        idle_seconds: float,
        loop: asyncio.AbstractEventLoop,
        slowest: int = SLOWEST,
    ) -> None:
        """`idle_seconds`: how long the client may take for a piece."""
        self._slowest = slowest
        self._room, self._owner, self._idle_seconds, self._loop = room, owner, idle_seconds, loop
        self._file = TemporaryFile()  # noqa: SIM115 (`send` closes it)
        self._written = self._sent = 0
        """Bytes that were written to the file, and bytes of these that were sent."""
        self._piece = b""
        """The piece after the file, if the file had no room for it."""
        self._is_complete = self._is_abandoned = False
        self._changed = Condition()
        self._arrived = asyncio.Event()

    # --- in the thread ----------------------------------------------------------------------------
    def write(self, piece: bytes) -> None:
        """Add a piece; wait while there is no room for it. Raises Abandoned."""
        with self._changed:
            if self._piece or not self._store(piece):
                self._wait_until_drained()
                self._piece = piece
            if self._is_abandoned:
                raise Abandoned
        self._loop.call_soon_threadsafe(self._arrived.set)

    def end(self) -> None:
        """Mark the answer as complete."""
        self._is_complete = True
        self._loop.call_soon_threadsafe(self._arrived.set)

    def _wait_until_drained(self) -> None:
        """Wait for as long as the client reads fast enough, however much is left."""
        seconds = self._idle_seconds + 1.0 + (self._written - self._sent) / self._slowest
        until = time.monotonic() + seconds
        while not self._is_drained():
            sent = self._sent
            self._changed.wait(self._idle_seconds + 1.0)
            has_stopped = self._sent == sent or time.monotonic() > until
            if has_stopped and not self._is_drained():  # the client, or the loop
                self._is_abandoned = True

    def _is_drained(self) -> bool:
        return self._is_abandoned or (self._sent == self._written and not self._piece)

    def _store(self, piece: bytes) -> bool:
        """Write a piece to the file, if there is room."""
        if self._is_abandoned or not self._room.take(self._owner, len(piece)):
            return False
        try:
            count = os.pwrite(self._file.fileno(), piece, self._written)
        except OSError:  # the disk is full
            count = 0
        if count < len(piece):
            self._room.give(self._owner, len(piece))
            return False
        self._written += count
        return True

    # --- in either --------------------------------------------------------------------------------
    def abandon(self) -> None:
        """End the answer before it is complete. The thread and the loop then raise Abandoned."""
        with self._changed:
            self._is_abandoned = True
            self._changed.notify_all()
        self._loop.call_soon_threadsafe(self._arrived.set)

    # --- in the event loop ------------------------------------------------------------------------
    async def send(self, send_piece: SendPiece) -> None:
        """Send the answer as it arrives. Raises Abandoned if the client stops reading."""
        try:
            while piece := await self._next():
                try:
                    async with asyncio.timeout(self._idle_seconds):
                        await send_piece(piece)
                except (TimeoutError, OSError) as error:
                    raise Abandoned from error
                self._take(len(piece))
        finally:
            self._close()

    async def _next(self) -> bytes:
        """Return the next piece; an empty one at the end."""
        while True:
            self._arrived.clear()
            is_complete = self._is_complete  # read this before the sizes
            if self._is_abandoned:
                raise Abandoned
            if self._sent < self._written:
                return os.pread(self._file.fileno(), PIECE, self._sent)
            if self._piece or is_complete:
                return self._piece
            await self._arrived.wait()

    def _take(self, count: int) -> None:
        """Note that a piece was sent."""
        with self._changed:
            if self._sent < self._written:
                self._sent += count
            else:
                self._piece = b""
            self._changed.notify_all()

    def _close(self) -> None:
        with self._changed:
            self._is_abandoned = True
            self._room.give(self._owner, self._written)
            self._written = self._sent = 0
            self._file.close()
            self._changed.notify_all()
