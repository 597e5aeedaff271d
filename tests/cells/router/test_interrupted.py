"""Requests that end on their way: lost connections, and bodies that stop."""

import asyncio

import pytest
from aiohttp import web

from rme.cells.router.environment import RouterBounds
from rme.cells.router.routing import KeyKind
from tests.cells.router.scene import BEARER, digest, played, scene

LARGE = [b"x" * 50_000] * 3


async def lose(request):
    await request.read()
    request.transport.abort()
    return web.Response()


@played
async def test_request_of_any_method_is_sent_once(s):
    s.eu.owns(KeyKind.TOKEN, digest())
    s.eu.handler = lose
    cases = [("GET", b""), ("DELETE", b""), ("PUT", b"short"), ("PUT", LARGE), ("POST", LARGE)]
    for method, body in cases:
        before = len(s.eu.requests)
        answer = await s.call(method, headers=BEARER, body=body)
        assert (method, answer.status) == (method, 503 if method == "GET" else 502)
        assert len(s.eu.requests) == before + 1


@played
async def test_request_on_a_reused_connection_is_never_repeated(s):
    s.eu.owns(KeyKind.TOKEN, digest())
    for method in ("DELETE", "PUT"):
        s.eu.handler = None
        assert (await s.call(method, headers=BEARER)).status == 200
        s.eu.handler = lose
        before = len(s.eu.requests)
        assert (await s.call(method, headers=BEARER)).status == 502
        assert len(s.eu.requests) == before + 1


@pytest.mark.parametrize(
    ("ends", "status", "body"),
    [
        ("late", 408, LARGE),
        ("gone", 0, LARGE),
        ("", 413, [b"x" * 50_000] * 30),
    ],
)
def test_late_too_long_or_broken_streamed_body_gets_its_status(ends, status, body):
    async def play():
        async with scene(RouterBounds(body=1_000_000, idle_seconds=0.5)) as s:
            s.eu.owns(KeyKind.TOKEN, digest())
            for method in ("POST", "PUT"):
                answer = await s.call(method, headers=BEARER, body=body, ends=ends)
                assert answer.status == status
            assert s.router.memory.used == 0

    asyncio.run(play())
