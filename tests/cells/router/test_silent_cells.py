"""A cell that takes connections and answers nothing: what that costs the others."""

import asyncio
import time

from rme.cells.router.cells import SILENT_SECONDS
from rme.cells.router.environment import RouterBounds
from rme.cells.router.routing import KeyKind
from rme.core.absence import Absence
from tests.cells.router.scene import BEARER, digest, scene


def hang(cell):
    """Let a cell answer nothing from now on; return what ends that."""
    ended, answer = asyncio.Event(), cell._owner

    async def wait(request):
        await ended.wait()
        return await answer(request)

    cell.owner = wait
    return ended.set


def bearer(name):
    return {"Authorization": f"Bearer {name}"}


def test_a_silent_cell_takes_no_places_of_look_ups():
    async def play():
        async with scene(RouterBounds(look_ups=2, look_up_seconds=1.0)) as s:
            hang(s.us)
            first = await s.call(headers=bearer("unknown"))
            assert (first.status, first.headers["retry-after"]) == (503, "1")
            for number in range(4):
                s.eu.owns(KeyKind.TOKEN, digest(f"known-{number}"))
            began = time.monotonic()
            calls = [s.call(headers=bearer(f"unknown-{number}")) for number in range(2)]
            calls += [s.call(headers=bearer("known-0"))]
            answers = [(await each).status for each in calls]
            assert answers == [503, 503, 200]
            assert time.monotonic() - began < 5  # nobody waits for the silent cell
            assert len(s.us.questions) == 0
            assert s.router.cells.by_name["us"].silence.is_noted

    asyncio.run(play())


def test_a_silent_cell_is_asked_once_a_second_and_counts_again_once_it_answers():
    async def play():
        async with scene(RouterBounds(look_up_seconds=1.0, incomplete_seconds=0.0)) as s:
            s.us.owns(KeyKind.TOKEN, digest())
            go_on, state = hang(s.us), s.router.cells.by_name["us"]
            now = [1.0]
            state.silence = Absence(SILENT_SECONDS, lambda: now[0])
            assert (await s.call(headers=BEARER)).status == 503
            assert (state.silence.is_noted, state.silence.may_try()) == (True, False)
            now[0] += SILENT_SECONDS
            assert (state.silence.may_try(), state.silence.may_try()) == (True, False)
            go_on()
            now[0] += SILENT_SECONDS
            assert (await s.call(headers=BEARER)).cell == "us"
            assert not state.silence.is_noted

    asyncio.run(play())


def test_an_incomplete_look_up_is_remembered_for_a_moment():
    async def play():
        async with scene(RouterBounds(look_up_seconds=1.0, incomplete_seconds=60.0)) as s:
            hang(s.us)
            for _ in range(3):
                assert (await s.call(headers=BEARER)).status == 503
            assert len(s.eu.questions) == 1

    asyncio.run(play())


def test_known_credential_is_served_while_it_is_looked_up_again():
    async def play():
        async with scene(RouterBounds(look_up_seconds=1.0, known_seconds=60.0)) as s:
            s.eu.owns(KeyKind.TOKEN, digest())
            assert (await s.call(headers=BEARER)).cell == "eu"
            for table in (s.router.owners._homes, s.router.owners._cell_of):
                for key, (_, value) in table.items():
                    table[key] = (time.monotonic() - 0.001, value)  # a minute later
            hang(s.eu)
            hang(s.us)
            for _ in range(3):
                assert (await s.call(headers=BEARER)).cell == "eu"
            await asyncio.gather(*s.router.owners._under_way.values(), return_exceptions=True)
            assert (await s.call(headers=BEARER)).cell == "eu"  # the look-up was incomplete
            for table in (s.router.owners._homes, s.router.owners._cell_of):
                for key, (_, value) in table.items():
                    table[key] = (time.monotonic() - 60.001, value)
            assert (await s.call(headers=BEARER)).status == 503

    asyncio.run(play())


def test_requests_for_any_cell_go_to_one_that_answers_look_ups():
    async def play():
        async with scene(RouterBounds(look_up_seconds=1.0, answer_seconds=10.0)) as s:
            hang(s.us)
            assert (await s.call(headers=BEARER)).status == 503
            for _ in range(8):
                assert (await s.call(path="/rme/v1/docs")).cell == "eu"

    asyncio.run(play())
