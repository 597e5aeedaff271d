"""Requests that wait for a set: what is one set, and who is refused."""

import asyncio
import threading
import time
from contextlib import contextmanager

from rme.core.http.serving.sets import SET_BYTES, SET_SIZE, SetQueue, SetRequest, SetResponse
from rme.core.process.admission import FairPool, Owners

SECONDS = 30
"""Within which a thread gets somewhere on a busy machine."""
REFUSED, LATE = SetResponse(503, [], b"refused"), SetResponse(503, [], b"late")
FAILED = SetResponse(500, [], b"failed")


def request(name):
    return SetRequest({}, name.encode(), name, 0.0)


def owned(organization, name, size=0):
    """Return a request of an organization, with a body of a size."""
    headers = {"HTTP_AUTHORIZATION": organization}
    return SetRequest(headers, name.encode().ljust(size), name, 0.0, owners=Owners(organization))


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
    alone = FairPool(1, "alone")
    queue = SetQueue(handler, alone, **{"seconds": SECONDS, **options})
    yield queue
    queue.thread.shutdown()
    alone.shutdown()


def answers(queue, handler, names):
    """Send the first request, and while it is answered the others; return the answers."""

    async def run():
        first, *others = [each if isinstance(each, SetRequest) else request(each) for each in names]
        tasks = [asyncio.create_task(queue.answer(first))]
        assert await asyncio.to_thread(handler.begun.wait, SECONDS)
        tasks += [asyncio.create_task(queue.answer(each)) for each in others]
        until = time.monotonic() + SECONDS
        while len(queue.queue) + sum(task.done() for task in tasks) < len(others):
            assert time.monotonic() < until
            await asyncio.sleep(0)
        handler.go_on.set()
        return await asyncio.gather(*tasks)

    return asyncio.run(run())


def test_requests_arriving_while_a_set_runs_form_the_next_set():
    handler, names = Handler(), [f"r{number}" for number in range(SET_SIZE + 3)]
    with queue_of(handler) as queue:
        assert answers(queue, handler, names) == [answered(name) for name in names]
    assert handler.sets == [names[:1], names[1 : SET_SIZE + 1], names[SET_SIZE + 1 :]]


def test_organizations_take_turns_if_more_waits_than_fits_into_a_set():
    handler = Handler()
    many = [owned("acme", f"acme{number}") for number in range(SET_SIZE + 6)]
    few = [owned("other", f"other{number}") for number in range(3)]
    with queue_of(handler) as queue:
        answers(queue, handler, ["first", *many, *few])
    names = [each.id for each in many]
    turns = ["acme0", "other0", "acme1", "other1", "acme2", "other2"]
    assert handler.sets == [["first"], turns + names[3 : SET_SIZE - 3], names[SET_SIZE - 3 :]]


def test_set_has_few_large_bodies_and_nobody_waits_for_those_of_others():
    handler = Handler()
    large = [owned("acme", f"acme{number}", SET_BYTES // 2) for number in range(4)]
    with queue_of(handler) as queue:
        answers(queue, handler, ["first", *large, owned("other", "other", 100)])
    assert handler.sets == [["first"], ["acme0", "other"], ["acme1", "acme2"], ["acme3"]]


def test_simultaneous_requests_form_one_set():
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


def test_request_that_waited_too_long_is_rejected_and_joins_no_set():
    handler = Handler()

    async def run(queue):
        first = asyncio.create_task(queue.answer(request("a")))
        assert await asyncio.to_thread(handler.begun.wait, SECONDS)
        queue.seconds = 0.05
        late = await asyncio.gather(*(queue.answer(request(name)) for name in "bc"))
        handler.go_on.set()
        return [await first, *late]

    with queue_of(handler) as queue:
        assert asyncio.run(run(queue)) == [answered("a"), LATE, LATE]
    assert handler.sets == [["a"]]


def test_failed_set_does_not_stop_later_sets():
    handler = Handler()
    with queue_of(handler) as queue:
        found = answers(queue, handler, ["a", *["b"] * (SET_SIZE - 1), "poison", "z"])
    assert found == [answered("a"), *[FAILED] * SET_SIZE, answered("z")]


def test_slow_request_is_answered_by_another_thread():
    handler = Handler()
    with queue_of(handler) as queue:
        found = answers(queue, handler, ["a", "slow", "b"])
    assert found == [answered("a"), answered("later on alone_0"), answered("b")]


def test_cancelled_request_leaves_the_rest_of_its_set():
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
