"""The gateway from an ASGI server to the WSGI application, with time limits for bodies.

A WSGI server gives a request to a thread as soon as its head has arrived, and the thread then waits
for the body: as many half-sent bodies as there are threads stop a process. No release of granian
bounds that (emmett-framework/granian#728). Here the event loop reads bodies, in bounded time and
memory, and a request gets a thread once it is complete.
"""

import asyncio
import io
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote_to_bytes

import structlog

from rme.core.http.chunked import LIMIT, App, Environ
from rme.core.http.sets import Headers, SetHandler, SetQueue, SetResponse

log = structlog.get_logger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Result = TypeVar("Result")

SMALL_BODY = 64 * 1024
PIECE = 64 * 1024
BUFFERED_RESPONSE = 4 * 1024 * 1024
"""Responses up to this length free their thread at once, however slow the client is."""


class Route(NamedTuple):
    """A method and a path."""

    method: str
    path: str


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
        self.pool = ThreadPoolExecutor(threads, "web")
        self.pools = {
            Route(method, path): ThreadPoolExecutor(count, path)
            for (method, path), count in {**_PROBES, **apart}.items()
        }
        self.sets = {
            route: SetQueue(handler, self.pools.get(route, self.pool), bounds.set_seconds)
            for route, handler in sets.items()
        }
        self.memory = 0
        # The application's thread reads a large body itself; other requests need threads meanwhile.
        self.uploads = max(1, threads // 2)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        environ = _environ(scope)
        length = environ.get("CONTENT_LENGTH", "")
        sets = self.sets.get(Route(environ["REQUEST_METHOD"], environ["PATH_INFO"]))
        if int(length or 0) > LIMIT:
            await self._upload(environ, receive, send)
            return
        size = 0
        try:
            if length not in ("", "0") or "HTTP_TRANSFER_ENCODING" in environ:
                body = bytearray()
                try:
                    await self._read(body, receive)
                finally:
                    size = len(body)
                # A chunked body that is too long is refused by its length.
                too_long = not length and len(body) >= LIMIT
                environ["wsgi.input"] = io.BytesIO(b"" if too_long else body)
                environ["CONTENT_LENGTH"] = str(sys.maxsize if too_long else len(body))
                if sets and (request := sets.handler.read(environ, body)):
                    await _respond(send, await sets.answer(request))
                    return
            await self._run(environ, send)
        except _Refused as refusal:
            await _refuse(send, *refusal.args)
        except ConnectionError:  # the client is gone
            return
        finally:
            # The request is freed only by the cycle collector, and would keep its body until then.
            environ["wsgi.input"].close()
            self.memory -= size

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
            await self._run(environ, send)
        except ConnectionError:
            return
        finally:
            self.uploads += 1

    async def _run(self, environ: Environ, send: Send) -> None:
        loop = asyncio.get_running_loop()
        route = Route(environ["REQUEST_METHOD"], environ["PATH_INFO"])
        pool = self.pools.get(route, self.pool)
        response = _Response(self.app, environ, send, loop, self.bounds.idle_seconds)
        body = await loop.run_in_executor(pool, response.run)
        if not response.started:
            await send(response.start())
        await send({"type": "http.response.body", "body": body})


class _Response:
    """One run of the application, in a thread, and its response."""

    def __init__(
        self,
        app: App,
        environ: Environ,
        send: Send,
        loop: asyncio.AbstractEventLoop,
        idle_seconds: float,
    ) -> None:
        self.app, self.environ, self.send, self.loop = app, environ, send, loop
        self.idle_seconds = idle_seconds
        self.status = 500
        self.headers: Headers = []
        self.started = False

    def start_response(self, status: str, headers: list[tuple[str, str]], *_: object) -> None:
        self.status = int(status[:3])
        self.headers = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in headers]

    def start(self) -> Message:
        return {"type": "http.response.start", "status": self.status, "headers": self.headers}

    def run(self) -> bytes:
        """Run the application; return the body of its response, or what was not sent of it."""
        parts = self.app(self.environ, self.start_response)
        try:
            return self._collect(iter(parts))
        finally:
            if close := getattr(parts, "close", None):
                close()

    def _collect(self, parts: Iterator[bytes]) -> bytes:
        known = any(name.lower() == b"content-length" for name, _ in self.headers)
        limit = BUFFERED_RESPONSE if known else PIECE
        body = bytearray()
        for part in parts:
            body += part
            if len(body) >= limit:
                self._stream(bytes(body))
                body.clear()
                limit = PIECE
        return bytes(body)

    def _stream(self, piece: bytes) -> None:
        """Send a piece from this thread, which waits until the client takes it."""
        if not self.started:
            self.started = True
            self._await(self.send(self.start()))
        self._await(self.send({"type": "http.response.body", "body": piece, "more_body": True}))

    def _await(self, sending: Awaitable[None]) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(self.idle_seconds):
                await sending

        _result(bounded(), self.loop, self.idle_seconds)


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
