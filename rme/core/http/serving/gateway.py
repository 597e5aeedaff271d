"""The gateway from an ASGI server to the WSGI application, with time limits for bodies.

A WSGI server gives a request to a thread as soon as its head has arrived, and the thread then waits
for the body: as many half-sent bodies as there are threads stop a process. No release of granian
bounds that (emmett-framework/granian#728). Here the event loop reads bodies, in bounded time and
memory, and a request gets a thread once it is complete.
"""

import asyncio
import hashlib
import io
import sys
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

import structlog

from rme.core import errors
from rme.core.cache import TtlCache
from rme.core.http.chunked import INCOMPLETE, LIMIT, App, Environ
from rme.core.http.request_records import Route
from rme.core.http.serving.answers import Answer, Message, Receive, Send
from rme.core.http.serving.long_answers import PIECE, Room
from rme.core.http.serving.sets import SetHandler, SetQueue, SetResponse
from rme.core.process.admission import (
    AWAITED,
    NOBODY,
    Budget,
    ComputingTime,
    FairPool,
    Owners,
    Turn,
    too_many,
)
from rme.core.process.threads import Executor

log = structlog.get_logger(__name__)

Result = TypeVar("Result")

SMALL_BODY = 64 * 1024
REFUSAL = "rme.refusal"
"""The key of an error in a request's environment: the application answers with this error."""
_TRIES = 4
"""How often a call may run: it starts again in its owners' line once they are known, and when what
it has waited for is there.
"""
_CREDENTIAL_SECONDS = 3600.0
_COMPUTING_RATE, _COMPUTING_BURST = 0.2, 0.5
"""CPU seconds per second, and at most, that an organization's calls use in a process before it
gives way to others.
"""


_PROBES = {Route(method, path): 1 for path in ("/livez", "/readyz") for method in ("GET", "HEAD")}
"""Each of these has a thread of its own, so that it is answered while all others are busy."""


@dataclass(frozen=True)
class Bounds:
    """The limits of a client's use of a process."""

    idle_seconds: float = 10.0
    """Until the next bytes of a body arrive, or those of a long response are taken."""
    body_seconds: float = 60.0
    """Until a body of at most `LIMIT` bytes is complete."""
    upload_seconds: float = 600.0
    """The same for a larger body."""
    set_seconds: float = 4.0
    """Until the set of a request that is answered with others begins."""
    memory: int = 64 * 1024 * 1024
    """Bytes of all bodies together; above it only small ones are read."""
    turn_seconds: float = 10.0
    """How long a request may wait for a thread."""
    disk: int = 256 * 1024 * 1024
    """Bytes of all unsent responses in files together."""


class _Refused(Exception):
    """A request is refused before the application sees it; with the status and a sentence."""


class Gateway:
    """An ASGI application that runs a WSGI application in threads."""

    def __init__(
        self,
        app: App,
        threads: int,
        bounds: Bounds = Bounds(),
        apart: Mapping[Route, int] = MappingProxyType({}),
        sets: Mapping[Route, SetHandler] = MappingProxyType({}),
    ) -> None:
        """`apart` are the routes that have threads of their own, and how many each has; `sets` are
        those whose requests are answered together.
        """
        self.app, self.bounds = app, bounds
        computing = ComputingTime(Budget(rate=_COMPUTING_RATE, burst=_COMPUTING_BURST))
        self.pool = FairPool(threads, "web", computing=computing)
        self.refusing = Executor(1, "refusing")
        self.room = Room(bounds.disk)
        self.owners: TtlCache[bytes, Owners] = TtlCache(_CREDENTIAL_SECONDS, size=10_000)
        """The owners of recently used credentials, by digest."""
        self.pools = {
            Route(method, path): FairPool(count, path)
            for (method, path), count in {**_PROBES, **apart}.items()
        }
        self.sets = {
            route: SetQueue(
                handler, self.pools.get(route, self.pool), bounds.set_seconds, note=computing.note
            )
            for route, handler in sets.items()
        }
        self.memory = 0
        # The application's thread reads a large body itself; other requests need threads meanwhile.
        self.uploads = max(1, threads // 2)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        environ = _environ(scope)
        length = environ.get("CONTENT_LENGTH", "")
        queue = self.sets.get(Route(environ["REQUEST_METHOD"], environ["PATH_INFO"]))
        if int(length or 0) > LIMIT and queue is None:
            await self._upload(environ, receive, send)
            return
        body = bytearray()
        try:
            content = await self._content(environ, body, receive)
            if queue:
                await _respond(send, await queue.answer(queue.handler.read(environ, content)))
                return
            environ["wsgi.input"] = io.BytesIO(content)
            await self._run(environ, receive, send)
        except _Refused as refusal:
            await _refuse(send, *refusal.args)
        except ConnectionError:  # the client is gone
            return
        finally:
            # The request is freed only by the cycle collector, and would keep its body until then.
            environ["wsgi.input"].close()
            self.memory -= len(body)

    async def _content(self, environ: Environ, body: bytearray, receive: Receive) -> bytes:
        """Read a body, and return the part that the application sees; it learns the length.

        Raises what `_read` raises.
        """
        length = environ.get("CONTENT_LENGTH", "")
        if length in ("", "0") and "HTTP_TRANSFER_ENCODING" not in environ:
            return b""
        if int(length or 0) > LIMIT:
            return b""  # it is refused by its length
        is_whole = True
        try:
            await self._read(body, receive)
        except ConnectionError:
            # granian reports a malformed chunk like a client that left. The application refuses it
            # in the path's own format.
            if length:
                raise
            environ[INCOMPLETE] = True
            is_whole = False
        # A chunked body that is too long is refused by its length.
        is_too_long = is_whole and not length and len(body) >= LIMIT
        content = bytes(body) if is_whole and not is_too_long else b""
        environ["CONTENT_LENGTH"] = str(sys.maxsize if is_too_long else len(content))
        return content

    async def _read(self, body: bytearray, receive: Receive) -> None:
        """Read a body up to `LIMIT` bytes; the application refuses a longer one.

        Raises _Refused, or ConnectionError if the client went away.
        """
        until = asyncio.get_running_loop().time() + self.bounds.body_seconds
        while len(body) < LIMIT:
            message = await _next(receive, until, self.bounds.idle_seconds)
            piece = message.get("body", b"")
            body += piece
            self.memory += len(piece)
            if not message.get("more_body"):
                return
            if self.memory > self.bounds.memory and len(body) > SMALL_BODY:
                raise _Refused(503, "Too many large requests are arriving at once.")

    async def _upload(self, environ: Environ, receive: Receive, send: Send) -> None:
        """Run the application on a large body, which its thread reads as it arrives."""
        if not self.uploads:
            await _refuse(send, 503, "Too many large requests are arriving at once.")
            return
        self.uploads -= 1
        try:
            environ["wsgi.input"] = io.BufferedReader(
                _Upload(receive, asyncio.get_running_loop(), self.bounds), PIECE
            )
            await self._run(environ, receive, send)
        except ConnectionError:
            return
        finally:
            self.uploads += 1

    async def _run(self, environ: Environ, receive: Receive, send: Send) -> None:
        """Answer a request by the application, in a thread of its owners' share.

        If its credential is new, it learns its owners while it runs. If they already have their
        share of threads, it has done nothing yet, and starts again when it is their turn. It also
        starts again when what it waits for without a thread is there.
        """
        route = Route(environ["REQUEST_METHOD"], environ["PATH_INFO"])
        pool = self.pools.get(route, self.pool)
        credential = _credential(environ)
        is_buffered = isinstance(environ["wsgi.input"], io.BytesIO)
        owners = self.owners.get(credential, lambda: None) or NOBODY
        for attempt in range(_TRIES):
            response = self._answer(environ)
            try:
                may_repeat = is_buffered and attempt < _TRIES - 1
                turn = await self._turn(pool, owners, response, may_repeat)
            except errors.RateLimited as refusal:
                log.warning("request.refused", status=429, owner=owners.line)
                response = self._answer({**environ, REFUSAL: refusal})
                turn = Turn(pool, owners, response.run)
                turn.future = self.refusing.submit(response.run, turn)
            await response.send(turn, receive, send)
            owners = turn.claimed or owners
            if credential and turn.claimed:
                self.owners.put(credential, turn.claimed)
            if not turn.starts_again:
                return
            if turn.awaited:
                await asyncio.wait([asyncio.wrap_future(turn.awaited)])
                environ[AWAITED] = turn.awaited
            environ["wsgi.input"].seek(0)

    def _answer(self, environ: Environ) -> Answer:
        return Answer(self.app, {**environ}, self.room, self.bounds.idle_seconds)

    async def _turn(
        self, pool: FairPool, owners: Owners, response: Answer, may_repeat: bool
    ) -> Turn:
        """Return a turn that has started. Raises RateLimited."""
        turn = pool.enter(owners, response.run, may_repeat=may_repeat)
        with suppress(TimeoutError):
            async with asyncio.timeout(self.bounds.turn_seconds):
                await response.started.wait()
        if turn.future.cancel():
            raise too_many()
        return turn


class _Upload(io.RawIOBase):
    """A body that is read while it arrives. Raises TimeoutError when it is too slow."""

    def __init__(self, receive: Receive, loop: asyncio.AbstractEventLoop, bounds: Bounds) -> None:
        self.receive, self.loop, self.bounds = receive, loop, bounds
        self.until = loop.time() + bounds.upload_seconds
        self.rest = memoryview(b"")
        self.over = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.rest and not self.over:
            arrival = _next(self.receive, self.until, self.bounds.idle_seconds)
            try:
                message = _result(arrival, self.loop, self.bounds.idle_seconds)
            except _Refused as refusal:
                raise TimeoutError(refusal.args[1]) from None
            self.rest = memoryview(message.get("body", b""))
            self.over = not message.get("more_body")
        count = min(len(buffer), len(self.rest))
        buffer[:count] = self.rest[:count]
        self.rest = self.rest[count:]
        return count


def _result(
    arrival: Coroutine[object, object, Result], loop: asyncio.AbstractEventLoop, seconds: float
) -> Result:
    """Run a coroutine on the loop from a thread; return its result. Raises TimeoutError.

    The coroutine has a time limit of its own. The extra second is for a loop that was stopped,
    for which this thread would wait for ever.
    """
    return asyncio.run_coroutine_threadsafe(arrival, loop).result(seconds + 1.0)


async def _next(receive: Receive, until: float, idle_seconds: float) -> Message:
    """Return the next message of a body. Raises _Refused if it is late, or ConnectionError."""
    now = asyncio.get_running_loop().time()
    message: Message | None = None
    with suppress(TimeoutError):
        async with asyncio.timeout_at(min(until, now + idle_seconds)):
            message = await receive()
    if message is None:
        # Raised here and not where the time ran out: `asyncio.timeout` refers to its task, and a
        # task to its exception and what that came from. Such a circle would keep `receive`, and
        # granian ends a connection only when the body that `receive` reads is freed.
        raise _Refused(408, "The body did not arrive in time.")
    if message["type"] == "http.disconnect":
        raise ConnectionAbortedError
    return message


def _credential(environ: Mapping[str, object]) -> bytes:
    """Return a digest of a request's credentials; empty without credentials."""
    text = f"{environ.get('HTTP_AUTHORIZATION', '')}\n{environ.get('HTTP_COOKIE', '')}"
    return hashlib.blake2b(text.encode(), digest_size=16).digest() if len(text) > 1 else b""


async def _respond(send: Send, response: SetResponse) -> None:
    start = {"type": "http.response.start", "status": response.status, "headers": response.headers}
    await send(start)
    await send({"type": "http.response.body", "body": response.body})


async def _refuse(send: Send, status: int, sentence: str) -> None:
    log.warning("request.refused", status=status, reason=sentence)
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    if status == 503:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{sentence}\n".encode()})


def _environ(scope: Message) -> Environ:
    """Build WSGI's environment (PEP 3333) of an ASGI request.

    Headers with an underscore are dropped: WSGI cannot distinguish `X_Forwarded_For` from the
    `X-Forwarded-For` that a proxy has set.
    """
    peer = scope.get("client") or ("", 0)
    host, port = scope.get("server") or ("", 0)
    environ: Environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(scope["raw_path"]).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "SERVER_NAME": host,
        "SERVER_PORT": str(port),
        "REMOTE_ADDR": peer[0],
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for raw_name, raw_value in scope["headers"]:
        if b"_" in raw_name:
            continue
        name = raw_name.decode("latin-1").upper().replace("-", "_")
        value = raw_value.decode("latin-1")
        key = name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}"
        if key in environ:
            value = f"{environ[key]}{'; ' if key == 'HTTP_COOKIE' else ','}{value}"
        environ[key] = value
    return environ
