"""Requests that wait for a set: what is one set, and who is refused."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from rme.core.http.sets import SET_SIZE, SetQueue, SetRequest, SetResponse

SECONDS = 30
"""Within which a thread gets somewhere on a busy machine."""
REFUSED, LATE = SetResponse(503, [], b"refused"), SetResponse(503, [], b"late")
FAILED = SetResponse(500, [], b"failed")


def request(name):
    return SetRequest({}, name.encode(), name, 0.0)


def answered(name):
    return SetResponse(202, [], name.encode())


class Handler:
    """Echoes the bodies. The first set waits until it is let go."""

    def __init__(self):
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.sets = []

    def answer(self, requests):
        self.sets.append([each.id for each in requests])
        if len(self.sets) == 1:
            self.begun.set()
            assert self.go_on.wait(SECONDS)
        if any(each.id == "poison" for each in requests):
            raise ValueError("a fault")
        return [self.each(one) for one in requests]

    def each(self, one):
        if one.id == "slow":
            return lambda: answered(f"later on {threading.current_thread().name}")
        return answered(one.id)

    def fail(self, one, error):
        assert isinstance(error, ValueError)
        return FAILED

    def refuse(self, one, *, late):
        return LATE if late else REFUSED


@contextmanager
def queue_of(handler, **options):
    with ThreadPoolExecutor(1, "alone") as alone:
        queue = SetQueue(handler, alone, **{"seconds": SECONDS, **options})
        yield queue
        queue.thread.shutdown()


def answers(queue, handler, names):
    """Send the first request, and while it is answered the others; return the answers."""

    async def run():
        first, *others = names
        tasks = [asyncio.create_task(queue.answer(request(first)))]
        assert await asyncio.to_thread(handler.begun.wait, SECONDS)
        tasks += [asyncio.create_task(queue.answer(request(name))) for name in others]
        until = time.monotonic() + SECONDS
        while len(queue.queue) + sum(task.done() for task in tasks) < len(others):
            assert time.monotonic() < until
            await asyncio.sleep(0)
        handler.go_on.set()
        return await asyncio.gather(*tasks)

    return asyncio.run(run())


def test_requests_that_arrive_while_a_set_runs_are_the_next_set():
    handler, names = Handler(), [f"r{number}" for number in range(SET_SIZE + 3)]
    with queue_of(handler) as queue:
        assert answers(queue, handler, names) == [answered(name) for name in names]
    assert handler.sets == [names[:1], names[1 : SET_SIZE + 1], names[SET_SIZE + 1 :]]


def test_requests_that_are_there_together_are_one_set():
    handler = Handler()
    handler.go_on.set()

    async def run(queue):
        return await asyncio.gather(*(queue.answer(request(name)) for name in "abc"))

    with queue_of(handler) as queue:
        assert asyncio.run(run(queue)) == [answered(name) for name in "abc"]
    assert handler.sets == [["a", "b", "c"]]


def test_more_requests_than_may_wait_are_refused():
    handler = Handler()
    with queue_of(handler, size=2) as queue:
        found = answers(queue, handler, ["a", "b", "c", "d"])
    assert found == [answered("a"), answered("b"), answered("c"), REFUSED]
    assert handler.sets == [["a"], ["b", "c"]]


def test_a_request_that_has_waited_too_long_is_refused_and_never_answered_by_a_set():
    handler = Handler()

    async def run(queue):
        first = asyncio.create_task(queue.answer(request("a")))
        assert await asyncio.to_thread(handler.begun.wait, SECONDS)
        late = await asyncio.gather(*(queue.answer(request(name)) for name in "bc"))
        handler.go_on.set()
        return [await first, *late]

    with queue_of(handler, seconds=0.05) as queue:
        assert asyncio.run(run(queue)) == [answered("a"), LATE, LATE]
    assert handler.sets == [["a"]]


def test_a_set_that_fails_stops_none_of_the_following():
    handler = Handler()
    with queue_of(handler) as queue:
        found = answers(queue, handler, ["a", *["b"] * (SET_SIZE - 1), "poison", "z"])
    assert found == [answered("a"), *[FAILED] * SET_SIZE, answered("z")]


def test_what_takes_long_is_answered_by_another_thread():
    handler = Handler()
    with queue_of(handler) as queue:
        found = answers(queue, handler, ["a", "slow", "b"])
    assert found == [answered("a"), answered("later on alone_0"), answered("b")]


def test_a_client_that_has_gone_leaves_the_others_of_its_set():
    handler = Handler()

    async def run(queue):
        tasks = {"a": asyncio.create_task(queue.answer(request("a")))}
        assert await asyncio.to_thread(handler.begun.wait, SECONDS)
        for name in "bc":
            tasks[name] = asyncio.create_task(queue.answer(request(name)))
        await asyncio.sleep(0)
        tasks["b"].cancel()
        handler.go_on.set()
        return await asyncio.gather(*tasks.values(), return_exceptions=True)

    with queue_of(handler) as queue:
        first, cancelled, last = asyncio.run(run(queue))
    assert (first, type(cancelled), last) == (
        answered("a"),
        asyncio.CancelledError,
        answered("c"),
    )
