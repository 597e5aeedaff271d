"""A router in the loop of a test, and cells on loopback that answer as the test says."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from rme.cells import signatures
from rme.cells.environment import CellSettings
from rme.cells.router.application import CellRouter
from rme.cells.router.environment import RouterBounds, Settings

SECRET = "s" * 32
TOKEN = "a-token"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def digest(token: str = TOKEN) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


class FakeCell:
    """A cell: what it owns, what it was asked, and how it answers."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.owned: dict[tuple[str, str], tuple[str, str]] = {}
        self.questions: list[tuple[str, str]] = []
        self.requests: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.handler: Handler | None = None
        self.owner: Handler = self._owner
        self.runner: web.AppRunner | None = None
        self.port = 0

    def owns(self, kind: str, value: str, organization: str = "o1", cell: str = "") -> None:
        self.owned[kind, value] = (organization, cell or self.name)

    async def start(self) -> None:
        app = web.Application(client_max_size=64 * 1024**2)
        app.router.add_post("/cell/owner", self._asked)
        app.router.add_route("*", "/{rest:.*}", self._any)
        self.runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self.runner.addresses[0][1]

    async def stop(self) -> None:
        if self.runner:
            await self.runner.cleanup()
        self.runner = None

    async def _asked(self, request: web.Request) -> web.StreamResponse:
        return await self.owner(request)

    async def _owner(self, request: web.Request) -> web.Response:
        body = await request.read()
        header = request.headers["Authorization"]
        assert signatures.is_signed(SECRET, "POST /cell/owner", body, header)
        given = json.loads(body)
        self.questions.append((given["kind"], given["value"]))
        organization, cell = self.owned.get((given["kind"], given["value"]), ("", ""))
        return web.json_response({"organization": organization, "cell": cell})

    async def _any(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        if self.handler:
            return await self.handler(request)
        self.bodies.append(await request.read())
        return web.json_response({"cell": self.name})


@dataclass
class Answer:
    """What the router sent to a client."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def cell(self) -> str:
        return str(self.json["cell"])


@dataclass
class Scene:
    """The router between two cells."""

    router: CellRouter
    eu: FakeCell
    us: FakeCell
    sent: list[dict[str, Any]] = field(default_factory=list)

    async def call(
        self,
        method: str = "GET",
        path: str = "/rme/v1/messages",
        headers: dict[str, str] | None = None,
        body: bytes | list[bytes] = b"",
        peer: str = "198.51.100.7",
        *,
        ends: str = "",
    ) -> Answer:
        """Return the router's answer. A list is a body that arrives in pieces, without a length.

        `ends` says that its last piece does not come: the client is `gone`, or the piece `late`.
        """
        path, _, query = path.partition("?")
        given = {"Host": "rme.example.org", **(headers or {})}
        pieces = body if isinstance(body, list) else _pieces(body)
        if isinstance(body, list):
            given["Transfer-Encoding"] = "chunked"
        elif body:
            given["Content-Length"] = str(len(body))
        scope = {
            "type": "http",
            "method": method,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "scheme": "http",
            "client": (peer, 1),
            "headers": [(k.encode(), v.encode()) for k, v in given.items()],
        }
        waiting = [
            {
                "type": "http.request",
                "body": piece,
                "more_body": bool(ends) or number < len(pieces) - 1,
            }
            for number, piece in enumerate(pieces)
        ]
        if ends == "gone":
            waiting.append({"type": "http.disconnect"})
        sent: list[dict[str, Any]] = []

        async def receive() -> Any:
            if waiting:
                return waiting.pop(0)
            return await asyncio.get_running_loop().create_future()  # nothing more comes

        async def send(message: Any) -> None:
            sent.append(message)

        await self.router(scope, receive, send)
        if not sent:
            return Answer(0, {}, b"")  # nothing, as the client is gone
        start = sent[0]
        text = {name.decode().lower(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], text, b"".join(each.get("body", b"") for each in sent[1:]))


def _pieces(body: bytes) -> list[bytes]:
    return [body[at : at + 50_000] for at in range(0, len(body), 50_000)] or [b""]


@asynccontextmanager
async def scene(bounds: RouterBounds | None = None, **settings: str) -> AsyncIterator[Scene]:
    eu, us = FakeCell("eu"), FakeCell("us")
    for cell in (eu, us):
        await cell.start()
    urls = {each.name: f"http://127.0.0.1:{each.port}" for each in (eu, us)}
    given = {"base_url": "http://rme.example.org", "tls_proxy": "", "metrics_token": ""} | settings
    router = CellRouter(
        Settings(CellSettings("", urls, SECRET), bounds=bounds or RouterBounds(), **given)
    )
    try:
        yield Scene(router, eu, us)
    finally:
        await router.cells.close()
        for cell in (eu, us):
            await cell.stop()


def played(test: Callable[[Scene], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Return a test that plays a coroutine with a scene of its own."""

    def play() -> None:
        async def run() -> None:
            async with scene() as found:
                await test(found)

        asyncio.run(run())

    play.__name__, play.__module__, play.__doc__ = test.__name__, test.__module__, test.__doc__
    return play
