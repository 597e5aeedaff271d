"""The router as an ASGI application."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import structlog

from rme.cells import signatures
from rme.cells.router import heads, metrics, pauses, refusals, routing
from rme.cells.router.bodies import (
    BodyTooLate,
    BodyTooLong,
    ClientGone,
    Memory,
    Message,
    Receive,
    RequestBody,
    TooManyBodies,
)
from rme.cells.router.cells import AnswerLost, CellAway, CellBusy, Cells, CellState
from rme.cells.router.environment import Settings
from rme.cells.router.heads import BadRequestTarget, Head, RawHeaders
from rme.cells.router.owners import CellFinder, Incomplete, TooManyLookUps
from rme.cells.router.refusals import RouterRefusal
from rme.cells.router.routing import Area, Key, KeyKind
from rme.cells.signatures import CELL_COOKIE, CELL_COOKIE_SECONDS, CELL_HEADER

log = structlog.get_logger(__name__)

Send = Callable[[Message], Awaitable[None]]

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
BUFFERED_ANSWER = 256 * 1024
"""Answers up to this length are passed on in one piece."""
_BODY_REFUSALS: Mapping[type[Exception], RouterRefusal] = {
    BodyTooLate: refusals.SLOW,
    BodyTooLong: refusals.LONG,
    TooManyBodies: refusals.BUSY,
}


class _RequestRefused(Exception):
    def __init__(self, refusal: RouterRefusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class _Request:
    """A request, and what its cell is found by."""

    head: Head
    area: Area
    key: Key | None
    body: RequestBody


class CellRouter:
    """Finds the cell of each request, and passes request and answer on."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.bounds = settings, settings.bounds
        self.cells = Cells(settings.cells, self.bounds)
        self.owners = CellFinder(self.cells, self.bounds)
        self.memory = Memory()
        self.held = pauses.Held(self.bounds.held)
        self._round: asyncio.Task[bool] | None = None

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            head = heads.read(scope)
        except BadRequestTarget:
            await _answer(send, 400, *refusals.render(refusals.BAD_TARGET, Area.PUBLIC, []))
            return
        if head.path in _OWN_PAGES:
            await _OWN_PAGES[head.path](self, head, send)
            return
        area = routing.area_of(head)
        client = head.client(self.settings)
        body = RequestBody(head, receive, self.bounds, self.memory, client)
        try:
            await self._route(head, area, body, send)
        except _RequestRefused as refused:
            await self._refuse(send, refused.refusal, area)
        except (BodyTooLate, BodyTooLong, TooManyBodies) as error:
            await self._refuse(send, _BODY_REFUSALS[type(error)], area)
        except ClientGone:
            return
        finally:
            body.release()

    async def _route(self, head: Head, area: Area, body: RequestBody, send: Send) -> None:
        if head.path.startswith(signatures.PATH):
            raise _RequestRefused(refusals.NOT_FOUND)  # calls between cells are not for clients
        await body.begin()
        form = routing.parse_form(body.start) if routing.needs_form(head) and body.is_kept else {}
        key = routing.key_of(head, area, form)
        cell = await self._cell(head, area, key)
        started = time.monotonic()
        request = _Request(head, area, key, body)
        cell, response = await self._follow(request, cell)
        if pauses.is_paused(response) and pauses.is_held(head) and body.is_kept:
            cell, response = await self._hold(request, cell, response)
        metrics.SECONDS.labels(cell.name).observe(time.monotonic() - started)
        metrics.REQUESTS.labels(cell.name, str(response.status)).inc()
        await self._pass_on(response, send, self._cookie(head, area, cell, response))

    async def _follow(
        self, request: _Request, cell: CellState | None
    ) -> tuple[CellState, aiohttp.ClientResponse]:
        """Return the answer, and the cell; of an organization that has moved, of its new cell."""
        head, body = request.head, request.body
        if cell is None:
            cell, response = await self._call_any(head, body)
        else:
            response = await self._call(cell, head, body)
        moved_to = response.headers.get(CELL_HEADER, "")
        # A page of the console that has moved needs a log-in there: the cell's answer leads to it.
        if response.status == 421 and moved_to and request.area is not Area.CONSOLE:
            response.release()
            cell = self._moved(request.key, moved_to, body)
            response = await self._call(cell, head, body)
            if response.status == 421:
                response.release()
                raise _RequestRefused(refusals.REPEAT)
        return cell, response

    async def _hold(
        self, request: _Request, cell: CellState, response: aiohttp.ClientResponse
    ) -> tuple[CellState, aiohttp.ClientResponse]:
        """Repeat a request until the pause of its organization ends; return the last answer."""
        until = time.monotonic() + self.bounds.hold_seconds
        with self.held.place() as has_place:
            while has_place and pauses.is_paused(response) and time.monotonic() < until:
                response.release()
                await asyncio.sleep(pauses.STEP_SECONDS)
                cell, response = await self._follow(request, cell)
        return cell, response

    async def _cell(self, head: Head, area: Area, key: Key | None) -> CellState | None:
        """Return the cell that a request goes to; None: any may answer. Raise _RequestRefused."""
        if area is Area.CONSOLE and (chosen_cell := self.cells.by_name.get(head.query("cell"))):
            return chosen_cell
        if key is not None:
            try:
                if owner := await self.owners.find(key):
                    return owner
            except Incomplete:
                raise _RequestRefused(refusals.INCOMPLETE) from None
            except TooManyLookUps:
                raise _RequestRefused(refusals.BUSY) from None
        if area is Area.CONSOLE:
            last = self.cells.by_name.get(head.cookies.get(CELL_COOKIE, ""))
            if last and (last.is_up or not head.path.startswith("/static/")):
                return last
        return None

    async def _call_any(
        self, head: Head, body: RequestBody
    ) -> tuple[CellState, aiohttp.ClientResponse]:
        """Return the answer of a cell that takes it, and the cell. Raise _RequestRefused."""
        up = [cell for cell in self.cells if cell.is_up]
        refusal = refusals.AWAY
        # One that does not answer look-ups comes last.
        for cell in sorted(random.sample(up, len(up)), key=lambda cell: cell.silence.is_noted):
            try:
                return cell, await self._call(cell, head, body)
            except _RequestRefused as refused:
                refusal = refused.refusal
                # Nothing was sent to a cell that is away, or busy.
                if refusal not in (refusals.AWAY, refusals.BUSY) or not body.can_be_sent:
                    raise
        raise _RequestRefused(refusal)

    def _moved(self, key: Key | None, to: str, body: RequestBody) -> CellState:
        """Return the cell to which an organization has moved. Raise _RequestRefused."""
        cell = self.owners.moved(key, to)
        if cell is None:
            log.error("router.unknown_cell", named=to[:64])
            raise _RequestRefused(refusals.AWAY)
        if not body.can_be_sent:
            raise _RequestRefused(refusals.REPEAT)
        return cell

    async def _call(self, cell: CellState, head: Head, body: RequestBody) -> aiohttp.ClientResponse:
        """Return a cell's answer. Raise _RequestRefused.

        Nothing is sent a second time here: only the caller knows whether that is right.
        """
        headers = heads.for_cell(head, self.settings, cell.name)
        data = body.data()
        if head.has_body and head.length is not None and not body.is_kept:
            headers.append(("content-length", str(head.length)))
        try:
            with cell.slot(self.bounds.in_flight):
                return await self.cells.send(cell, head.method, head.target, headers, data)
        except CellAway:
            raise _RequestRefused(refusals.AWAY) from None
        except CellBusy:
            raise _RequestRefused(refusals.BUSY) from None
        except AnswerLost as error:
            if body.failure is not None:
                raise body.failure from None
            log.warning("router.answer_lost", cell=cell.name, error=repr(error.__cause__))
            lost = refusals.LOST_READ if head.method in SAFE else refusals.LOST
            raise _RequestRefused(lost) from None

    def _cookie(
        self, head: Head, area: Area, cell: CellState, response: aiohttp.ClientResponse
    ) -> RawHeaders:
        """Return the cookie by which a browser stays at a cell, if it has to be set."""
        if area is not Area.CONSOLE or head.path.startswith("/static/"):
            return []
        # The cell itself sets it where it hands a person over to another.
        if any(CELL_COOKIE in text for text in response.headers.getall("Set-Cookie", [])):
            return []
        if head.cookies.get(CELL_COOKIE) == cell.name:
            return []
        secure = "; Secure" if self.settings.secure else ""
        text = (
            f"{CELL_COOKIE}={cell.name}; Path=/; Max-Age={CELL_COOKIE_SECONDS}; HttpOnly; "
            f"SameSite=Lax{secure}"
        )
        return [(b"set-cookie", text.encode())]

    async def _pass_on(
        self, response: aiohttp.ClientResponse, send: Send, cookie: RawHeaders
    ) -> None:
        """Pass an answer on, as it arrives; a broken one ends the client's connection too."""
        headers = heads.for_client(response.raw_headers) + cookie
        length = response.content_length
        async with response:
            try:
                if length is not None and length <= BUFFERED_ANSWER:
                    await _answer(send, response.status, headers, await response.read())
                    return
                await _send(send, _start(response.status, headers), self.bounds.idle_seconds)
                async for piece in response.content.iter_any():
                    part = {"type": "http.response.body", "body": piece, "more_body": True}
                    await _send(send, part, self.bounds.idle_seconds)
                await _send(send, {"type": "http.response.body"}, self.bounds.idle_seconds)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                log.warning("router.answer_broken", error=repr(error))
                response.close()
                raise ClientGone from error

    async def _refuse(self, send: Send, refusal: RouterRefusal, area: Area) -> None:
        metrics.REFUSED.labels(refusal.reason).inc()
        up = [cell.name for cell in self.cells if cell.is_up]
        other_cells = up if area is Area.CONSOLE and refusal.status == 503 else []
        headers, body = refusals.render(refusal, area, other_cells)
        await _answer(send, refusal.status, headers, body)

    async def live(self, head: Head, send: Send) -> None:
        """Answer that this process is up."""
        await _plain(send, 200, b"ok\n")

    async def _ask_all(self) -> bool:
        """Return whether a cell answers; store for the metrics which do. Anybody may ask for that,
        so those who come together share one round of calls.

        A cell counts as down only for a second after a failed call, so one that gets no calls has
        to be asked.
        """
        if self._round is None or self._round.done():
            self._round = asyncio.create_task(self._call_all())
        return await asyncio.shield(self._round)

    async def _call_all(self) -> bool:
        question = {"kind": KeyKind.ORGANIZATION.value, "value": "-"}

        async def answers(cell: CellState) -> bool:
            try:
                await self.cells.ask_owner(cell, question)
            except CellAway:
                return False
            return True

        states = await asyncio.gather(*(answers(cell) for cell in self.cells))
        for cell, is_up in zip(self.cells, states, strict=True):
            metrics.UP.labels(cell.name).set(is_up)
        return any(states)

    async def ready(self, head: Head, send: Send) -> None:
        """Answer whether a cell answers: with one of several away the others are served."""
        answers = await self._ask_all()
        await _plain(send, *((200, b"ok\n") if answers else (503, b"cells\n")))

    async def show_metrics(self, head: Head, send: Send) -> None:
        """Answer with the metrics; 404 for those who may not read them."""
        if not metrics.may_read(head, self.settings):
            await _plain(send, 404, b"This page doesn't exist.\n")
            return
        await self._ask_all()
        await _plain(send, 200, metrics.text(), metrics.CONTENT_TYPE_PLAIN_0_0_4)


_OWN_PAGES: Mapping[str, Callable[[CellRouter, Head, Send], Awaitable[None]]] = {
    "/livez": CellRouter.live,
    "/readyz": CellRouter.ready,
    "/metrics": CellRouter.show_metrics,
}


def _start(status: int, headers: RawHeaders) -> Message:
    return {"type": "http.response.start", "status": status, "headers": headers}


async def _answer(send: Send, status: int, headers: RawHeaders, body: bytes) -> None:
    await send(_start(status, headers))
    await send({"type": "http.response.body", "body": body})


async def _plain(send: Send, status: int, body: bytes, kind: str = "text/plain") -> None:
    headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
    await _answer(send, status, headers, body)


async def _send(send: Send, message: Message, seconds: float) -> None:
    async with asyncio.timeout(seconds):
        await send(message)
