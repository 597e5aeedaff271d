"""Requests that are answered together, as one set, by one thread.

A request that arrives while no set is being answered is answered at once. Those that arrive
meanwhile wait until the running set ends; then all that wait are the next set. So no request waits
for a timer, sets grow with the load, and a request costs neither a thread's turn nor a transaction.

If more requests wait than fit into a set, organizations take turns.
"""

import asyncio
import hashlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice, zip_longest
from typing import NamedTuple, Protocol

from rme.core import errors
from rme.core.cache import TtlCache
from rme.core.http.chunked import Environ
from rme.core.http.request_records import NO_DETAILS, Details
from rme.core.process.admission import NOBODY, FairPool, Owners
from rme.core.process.threads import Executor
from rme.core.telemetry.spans import Span

SET_SIZE = 64
"""The most requests of a set: what one of them waits for stays small."""
SET_BYTES = 96 * 1024
"""The most bytes of a set's bodies, after the first: reading large ones takes long."""
QUEUE_SIZE = 1024
"""The most requests that wait, as many as a process has connections. More get 503."""

_CREDENTIAL_SECONDS = 3600.0

Headers = list[tuple[bytes, bytes]]


@dataclass(slots=True, eq=False)
class SetRequest:
    """A whole request, and the facts about it that its endpoint adds."""

    headers: Environ
    """Its headers and query, by WSGI's names (PEP 3333)."""
    body: bytes
    id: str
    started: float
    """When it was complete, on this process's monotonic clock."""
    log_ids: Mapping[str, object] = field(default_factory=dict)
    """The ids of its caller, for log lines."""
    owners: Owners = NOBODY
    """The organization and person that it comes from, once known."""
    frame_headers: Mapping[str, str] = field(default_factory=dict)
    """The headers of every response of its route."""
    is_refused_at_edge: bool = False
    """Whether it was refused before its path was looked at; logs and counts name no path then."""
    response_headers: Mapping[str, str] = field(default_factory=dict)
    """The headers that its endpoint adds to its response, whether it is an error or not."""
    span: Span | None = None
    """Its span, where tracing is on and its set has begun."""
    traceparent: str = ""
    """The trace context for its next steps; empty if it is not traced."""


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

    def read(self, environ: Environ, body: bytes) -> SetRequest:
        """Build a request of a set. A body that is too long or incomplete is empty here."""

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
        self,
        handler: SetHandler,
        pool: FairPool,
        seconds: float,
        size: int = QUEUE_SIZE,
        note: Callable[[str], None] = lambda organization: None,
    ) -> None:
        """`pool` has the threads of requests that are answered by themselves; `seconds` is how
        long a request may wait; `note` gets the organization of each request.
        """
        self.note = note
        self.handler, self.pool, self.seconds, self.size = handler, pool, seconds, size
        self.thread = Executor(1, "set")
        self.queue: deque[_Waiting] = deque()
        self.running = False
        self.organizations: TtlCache[bytes, str] = TtlCache(_CREDENTIAL_SECONDS, size=10_000)
        """The organizations of recently used credentials, by digest."""
        self.timer: asyncio.TimerHandle | None = None

    async def answer(self, request: SetRequest) -> SetResponse:
        """Return the response to a request."""
        if len(self.queue) >= self.size:
            return self.handler.refuse(request, late=False)
        loop = asyncio.get_running_loop()
        entry = _Waiting(request, loop.create_future(), loop.time() + self.seconds)
        self.queue.append(entry)
        if not self.running:
            self.running = True
            loop.call_soon(self._begin, loop)
        elif self.timer is None:
            self.timer = loop.call_at(entry.until, self._refuse_late, loop)
        return await entry.response

    def _begin(self, loop: asyncio.AbstractEventLoop, previous_count: int = 0) -> None:
        """Let the thread answer the requests that have waited longest.

        As long as each turn of the loop brings more of them, they are waited for. `previous_count`
        is how many there were a turn ago.
        """
        count = len(self.queue)
        if previous_count < count < SET_SIZE:
            loop.call_soon(self._begin, loop, count)
            return
        entries = self._take()
        self.running = bool(entries)
        if entries:
            requests = [entry.request for entry in entries]
            future = loop.run_in_executor(self.thread, self.handler.answer, requests)
            future.add_done_callback(partial(self._end, loop, entries))

    def _take(self) -> list[_Waiting]:
        """Take the requests of the next set, one of each organization in turn."""
        size = sum(len(entry.request.body) for entry in islice(self.queue, SET_SIZE))
        if len(self.queue) <= SET_SIZE and size <= SET_BYTES:
            entries = list(self.queue)
            self.queue.clear()
            return entries
        lines: dict[str, list[_Waiting]] = {}
        for entry in self.queue:
            lines.setdefault(self._line_of(entry.request), []).append(entry)
        entries, size = [], 0
        for entry in chain.from_iterable(zip_longest(*lines.values())):
            if entry is None:  # its line was shorter
                continue
            size += len(entry.request.body)
            if entries and (len(entries) == SET_SIZE or size > SET_BYTES):
                break
            entries.append(entry)
        entry_ids = set(map(id, entries))
        self.queue = deque(each for each in self.queue if id(each) not in entry_ids)
        return entries

    def _line_of(self, request: SetRequest) -> str:
        """Return the organization of a request, or its credential where that is new here."""
        credential = _credential(request)
        return self.organizations.get(credential, lambda: None) or credential.hex()

    def _learn(self, request: SetRequest) -> None:
        """Remember the organization of a credential, and that it calls."""
        organization = request.owners.organization
        if organization:
            self.organizations.put(_credential(request), organization)
            self.note(organization)

    def _end(
        self,
        loop: asyncio.AbstractEventLoop,
        entries: Sequence[_Waiting],
        future: "asyncio.Future[Sequence[SetResponse | Later]]",
    ) -> None:
        loop.call_soon(self._begin, loop)
        error = future.exception()
        if error is not None:
            for entry in entries:
                _resolve(entry, self.handler.fail(entry.request, error))
            return
        for entry, answer in zip(entries, future.result(), strict=True):
            self._learn(entry.request)
            if isinstance(answer, SetResponse):
                _resolve(entry, answer)
            else:
                self._answer_later(loop, entry, answer)

    def _answer_later(
        self, loop: asyncio.AbstractEventLoop, entry: _Waiting, answer: Later
    ) -> None:
        """Answer a request by itself, when it is its owners' turn."""
        try:
            future = self.pool.submit(entry.request.owners, answer)
        except errors.RateLimited as error:
            _resolve(entry, self.handler.fail(entry.request, error))
        else:
            later = asyncio.wrap_future(future, loop=loop)
            later.add_done_callback(partial(self._end_later, entry))

    def _end_later(self, entry: _Waiting, future: "asyncio.Future[SetResponse]") -> None:
        error = future.exception()
        _resolve(entry, self.handler.fail(entry.request, error) if error else future.result())

    def _refuse_late(self, loop: asyncio.AbstractEventLoop) -> None:
        """Refuse the requests that have waited too long, and look again when the next one has."""
        self.timer = None
        while self.queue and self.queue[0].until <= loop.time():
            entry = self.queue.popleft()
            _resolve(entry, self.handler.refuse(entry.request, late=True))
        if self.queue:
            self.timer = loop.call_at(self.queue[0].until, self._refuse_late, loop)


def _credential(request: SetRequest) -> bytes:
    text = str(request.headers.get("HTTP_AUTHORIZATION", ""))
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _resolve(entry: _Waiting, response: SetResponse) -> None:
    if not entry.response.done():  # its client may have gone
        entry.response.set_result(response)
