"""Requests that are answered together, as one set, by one thread.

A request that arrives while no set is being answered is answered at once. Those that arrive
meanwhile wait until the running set ends; then all that wait are the next set. So no request waits
for a timer, sets grow with the load, and a request costs neither a thread's turn nor a transaction.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

from rme.core.http.chunked import Environ
from rme.core.http.request_records import NO_DETAILS, Details
from rme.core.telemetry.spans import Span

SET_SIZE = 64
"""The most requests of a set: what one of them waits for stays small."""
QUEUE_SIZE = 1024
"""The most requests that wait, as many as a process has connections. More get 503."""

Headers = list[tuple[bytes, bytes]]


@dataclass(slots=True, eq=False)
class SetRequest:
    """A whole request, and what is found out about it while it is answered."""

    headers: Environ
    """By WSGI's names (PEP 3333)."""
    body: bytes
    id: str
    started: float
    """When it was complete, on this process's monotonic clock."""
    log_ids: Mapping[str, object] = field(default_factory=dict)
    """The ids of its caller, for log lines."""
    response_headers: Mapping[str, str] = field(default_factory=dict)
    """The headers of its response, whether it is an error or not."""
    span: Span | None = None
    """Its span, where tracing is on and its set has begun."""

    @property
    def traceparent(self) -> str:
        """Return the context for what follows from it; empty if it is not traced."""
        return self.span.traceparent if self.span else ""


class SetResponse(NamedTuple):
    """A whole response."""

    status: int
    headers: Headers
    body: bytes
    details: Details = NO_DETAILS


Later = Callable[[], SetResponse]
"""A function that answers one request, by itself: it may take long."""


class SetHandler(Protocol):
    """Answers requests of one route by sets. No method raises for what is wrong with a request."""

    def read(self, environ: Environ, body: bytearray) -> SetRequest | None:
        """Return a request as one of a set; None if it has to be answered the ordinary way."""

    def answer(self, requests: Sequence[SetRequest]) -> Sequence[SetResponse | Later]:
        """Answer a set, in a thread."""

    def fail(self, request: SetRequest, error: BaseException) -> SetResponse:
        """Build the response to a request whose set has failed."""

    def refuse(self, request: SetRequest, *, late: bool) -> SetResponse:
        """Build the response to a request that is one too many, or has waited too long (`late`)."""


class _Waiting(NamedTuple):
    """A request that waits for its response."""

    request: SetRequest
    response: "asyncio.Future[SetResponse]"
    until: float
    """When it is refused unless its set has begun, on the loop's clock."""


class SetQueue:
    """The requests of a route that wait, and the set that runs. Used by the event loop alone."""

    def __init__(
        self, handler: SetHandler, alone: ThreadPoolExecutor, seconds: float, size: int = QUEUE_SIZE
    ) -> None:
        """`alone` has the threads of requests that are answered by themselves; `seconds` is how
        long a request may wait.
        """
        self.handler, self.alone, self.seconds, self.size = handler, alone, seconds, size
        self.thread = ThreadPoolExecutor(1, "set")
        self.queue: deque[_Waiting] = deque()
        self.running = False
        self.timer: asyncio.TimerHandle | None = None

    async def answer(self, request: SetRequest) -> SetResponse:
        """Return the response to a request."""
        if len(self.queue) >= self.size:
            return self.handler.refuse(request, late=False)
        loop = asyncio.get_running_loop()
        waiting = _Waiting(request, loop.create_future(), loop.time() + self.seconds)
        self.queue.append(waiting)
        if not self.running:
            self.running = True
            loop.call_soon(self._begin, loop)
        elif self.timer is None:
            self.timer = loop.call_at(waiting.until, self._refuse_late, loop)
        return await waiting.response

    def _begin(self, loop: asyncio.AbstractEventLoop, before: int = 0) -> None:
        """Let the thread answer the requests that have waited longest.

        As long as each turn of the loop brings more of them, they are waited for. `before` is how
        many there were a turn ago.
        """
        count = len(self.queue)
        if before < count < SET_SIZE:
            loop.call_soon(self._begin, loop, count)
            return
        taken = [self.queue.popleft() for _ in range(min(len(self.queue), SET_SIZE))]
        self.running = bool(taken)
        if taken:
            requests = [waiting.request for waiting in taken]
            done = loop.run_in_executor(self.thread, self.handler.answer, requests)
            done.add_done_callback(partial(self._end, loop, taken))

    def _end(
        self,
        loop: asyncio.AbstractEventLoop,
        taken: Sequence[_Waiting],
        done: "asyncio.Future[Sequence[SetResponse | Later]]",
    ) -> None:
        loop.call_soon(self._begin, loop)
        error = done.exception()
        if error is not None:
            for waiting in taken:
                _resolve(waiting, self.handler.fail(waiting.request, error))
            return
        for waiting, answer in zip(taken, done.result(), strict=True):
            if isinstance(answer, SetResponse):
                _resolve(waiting, answer)
            else:
                later = loop.run_in_executor(self.alone, answer)
                later.add_done_callback(partial(self._end_later, waiting))

    def _end_later(self, waiting: _Waiting, done: "asyncio.Future[SetResponse]") -> None:
        error = done.exception()
        _resolve(waiting, self.handler.fail(waiting.request, error) if error else done.result())

    def _refuse_late(self, loop: asyncio.AbstractEventLoop) -> None:
        """Refuse the requests that have waited too long, and look again when the next one has."""
        self.timer = None
        while self.queue and self.queue[0].until <= loop.time():
            waiting = self.queue.popleft()
            _resolve(waiting, self.handler.refuse(waiting.request, late=True))
        if self.queue:
            self.timer = loop.call_at(self.queue[0].until, self._refuse_late, loop)


def _resolve(waiting: _Waiting, response: SetResponse) -> None:
    if not waiting.response.done():  # its client may have gone
        waiting.response.set_result(response)
