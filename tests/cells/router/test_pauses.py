"""Callbacks and preference pages wait in the router while their organization is paused."""

import asyncio
import base64

from aiohttp import web

from rme.cells.router.environment import RouterBounds
from rme.cells.router.routing import KeyKind
from tests.cells.router.scene import BEARER, digest, scene

LINK = base64.urlsafe_b64encode(b"o1:rest").decode().rstrip("=")
HOOK, UNSUBSCRIBE = "/hooks/p1", f"/p/u/{LINK}.mac"
PAUSED = {"RME-Paused": "1", "Retry-After": "1"}


def pause(cell, times, then=None):
    """Let a cell answer some requests as during a pause, and then as `then` does."""
    left = [times]

    async def answer(request):
        body = await request.read()
        if left[0] > 0:
            left[0] -= 1
            return web.Response(status=503, headers=PAUSED)
        cell.handler = then
        cell.bodies.append(body)
        return await then(request) if then else web.json_response({"cell": cell.name})

    cell.handler = answer


def owned(s):
    s.eu.owns(KeyKind.PROVIDER_ACCOUNT, "p1")
    s.eu.owns(KeyKind.ORGANIZATION, "o1")
    s.eu.owns(KeyKind.TOKEN, digest())


def test_callbacks_and_unsubscribes_see_no_pause():
    async def play():
        async with scene() as s:
            owned(s)
            for path in (HOOK, UNSUBSCRIBE):
                pause(s.eu, 2)
                answer = await s.call("POST", path, body=b"STOP")
                assert (answer.status, answer.cell, s.eu.bodies[-1]) == (200, "eu", b"STOP")
            assert s.router.held.count == 0

    asyncio.run(play())


def test_organization_moved_during_the_pause_is_followed():
    async def moved(request):
        return web.Response(status=421, headers={"RME-Cell": "us"})

    async def play():
        async with scene() as s:
            owned(s)
            pause(s.eu, 1, moved)
            pause(s.us, 1)
            answer = await s.call("POST", HOOK, body=b"STOP")
            assert (answer.status, answer.cell, s.us.bodies) == (200, "us", [b"STOP"])

    asyncio.run(play())


def test_long_pause_is_answered_by_503_without_the_cells_header():
    async def play():
        async with scene(RouterBounds(hold_seconds=1.5)) as s:
            owned(s)
            pause(s.eu, 100)
            answer = await s.call("POST", HOOK, body=b"x")
            assert (answer.status, answer.headers["retry-after"]) == (503, "1")
            assert "rme-paused" not in answer.headers
            assert len(s.eu.requests) > 1

    asyncio.run(play())


def test_requests_that_cannot_be_held_are_answered_at_once():
    async def play():
        async with scene(RouterBounds(held=0)) as s:
            owned(s)
            pause(s.eu, 100)
            assert (await s.call("POST", HOOK, body=b"x")).status == 503
            s.router.held.limit = 1
            assert (await s.call("POST", HOOK, body=b"x" * 200_000)).status == 503
            # API clients repeat calls by themselves, with their own idempotency keys
            assert (await s.call("POST", headers=BEARER, body=b"x")).status == 503
            assert len(s.eu.requests) == 3

    asyncio.run(play())
