"""Answers: the application runs in a thread, and the event loop sends its response.

A short response stays in memory, and its thread is free at once. A long one goes to a file piece by
piece (`long_answers`), so a slow client doesn't hold a thread. Since nothing else slows that thread
down, it sleeps for as long as it computes.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any

import structlog

from rme.core.http.chunked import App, Environ
from rme.core.http.serving.long_answers import PIECE, ROOM, Abandoned, LongAnswer, Room
from rme.core.http.serving.sets import Headers
from rme.core.process.admission import TURN, Turn

log = structlog.get_logger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

BUFFERED = 4 * 1024 * 1024
"""The longest response, of known length, that stays in memory until it is sent."""


class Answer:
    """One run of the application, in a thread, and its response."""

    def __init__(self, app: App, environ: Environ, room: Room, idle_seconds: float) -> None:
        """`idle_seconds`: how long the client may take for a piece of a long response."""
        self.app, self.environ = app, environ
        self.room, self.idle_seconds = room, idle_seconds
        self.loop = asyncio.get_running_loop()
        self.started = asyncio.Event()
        """Whether it has a thread."""
        self.status = 500
        self.headers: Headers = []
        self.long: asyncio.Future[LongAnswer] = self.loop.create_future()
        """The body, if it is long."""

    def start_response(self, status: str, headers: list[tuple[str, str]], *_: object) -> None:
        self.status = int(status[:3])
        self.headers = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in headers]

    # --- in the thread ----------------------------------------------------------------------------
    def run(self, turn: Turn) -> bytes:
        """Run the application; return the body of its response, or nothing if it is long."""
        self.loop.call_soon_threadsafe(self.started.set)
        self.environ[TURN] = turn
        self.environ[ROOM] = self.room
        parts = None
        try:
            parts = self.app(self.environ, self.start_response)
            return self._collect(iter(parts), turn)
        finally:
            del self.environ[TURN]  # a circle would keep both, and the connection, in memory
            if close := getattr(parts, "close", None):
                close()

    def _collect(self, parts: Iterator[bytes], turn: Turn) -> bytes:
        has_length = any(name.lower() == b"content-length" for name, _ in self.headers)
        limit = BUFFERED if has_length else PIECE
        body = bytearray()
        for part in parts:
            body += part
            if len(body) >= limit:
                return self._collect_long(bytes(body), parts, turn.owners.line)
        return bytes(body)

    def _collect_long(self, first: bytes, parts: Iterator[bytes], owner: str) -> bytes:
        answer = LongAnswer(self.room, owner, self.idle_seconds, self.loop)
        self.loop.call_soon_threadsafe(self.long.set_result, answer)
        try:
            answer.write(first)
            body = bytearray()
            started = time.thread_time()
            for part in parts:
                body += part
                if len(body) >= PIECE:
                    answer.write(bytes(body))
                    body.clear()
                    time.sleep(time.thread_time() - started)  # leave half of the time to others
                    started = time.thread_time()
            if body:
                answer.write(bytes(body))
        except Abandoned:
            return b""  # `send` logs it
        except Exception:
            log.exception("response.broken", status=self.status, request_id=self._request_id)
            answer.abandon()
        finally:
            answer.end()
        return b""

    # --- in the event loop ------------------------------------------------------------------------
    async def send(self, turn: Turn, receive: Receive, send: Send) -> None:
        """Send the response, unless the request must start again.

        `receive` is only called once the request's body was read, and tells when the client leaves.
        Raises ConnectionAbortedError if the client doesn't take all of it: without a proper end,
        nobody takes a part for the whole.
        """
        body: asyncio.Future[bytes] = asyncio.wrap_future(turn.future)
        either: set[asyncio.Future[Any]] = {body, self.long}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        is_taken = True
        if self.long.done():
            await send(self._start)
            is_taken = await self._send_long(receive, send)
        content = await body
        if not is_taken:
            raise ConnectionAbortedError
        if turn.starts_again:
            return
        if not self.long.done():
            await send(self._start)
        await send({"type": "http.response.body", "body": content})

    async def _send_long(self, receive: Receive, send: Send) -> bool:
        """Send the pieces of a long response; return whether the client took them all."""
        answer = self.long.result()

        async def send_piece(piece: bytes) -> None:
            await send({"type": "http.response.body", "body": piece, "more_body": True})

        async def abandon_without_client() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            answer.abandon()

        # granian's `send` doesn't fail once the client has left.
        leaving = asyncio.create_task(abandon_without_client())
        try:
            await answer.send(send_piece)
        except Abandoned:
            log.info("response.abandoned", status=self.status)
            return False
        finally:
            leaving.cancel()
        return True

    @property
    def _request_id(self) -> str:
        values = (text for name, text in self.headers if name.lower() == b"x-request-id")
        return next(values, b"").decode("latin-1")

    @property
    def _start(self) -> Message:
        return {"type": "http.response.start", "status": self.status, "headers": self.headers}
