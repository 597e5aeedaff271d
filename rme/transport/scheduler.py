"""The requests of one call: which wait for their host, which are under way, what came of them."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rme.transport.addresses import Origin, origin_of
from rme.transport.http1.exchange import Exchange
from rme.transport.http2.pool import BUSY
from rme.transport.http2.stream import Stream
from rme.transport.messages import NOT_STARTED, TIME_OUT, Failure, FailureKind, Reply, Request
from rme.transport.smtp.connection import MailConnection

if TYPE_CHECKING:
    from rme.transport.client import Transport

ActiveRequest = Exchange | MailConnection | Stream
"""What a request is on its way by."""
Result = Reply | Failure
OnResults = Callable[[Sequence[tuple[int, Result]]], object]
"""Takes what has ended while the rest is under way: each request's place, and its result."""

_CLOSE_ENOUGH = 0.01
"""Seconds by which who waits gives up early: together with those of whom it hears the same."""
_DEAF = Failure(FailureKind.NOT_SENT, "the host takes no connections")
_SLOT_SECONDS = 0.02
"""How often is looked for a place that another thread has returned."""


class _Host:
    """What goes to one host: how much is under way, and what waits for its turn."""

    __slots__ = ("busy", "reached", "waiting", "where")

    def __init__(self, where: Origin) -> None:
        self.where = where
        self.busy = 0
        self.reached = False
        """It was there, and took a connection."""
        self.waiting: deque[int] = deque()


class RequestScheduler:
    """What one call asked for: each request ends with its answer, or with why there is none."""

    def __init__(
        self, transport: "Transport", requests: Sequence[Request], report: OnResults | None = None
    ) -> None:
        self.transport = transport
        self.requests = requests
        self.report = report
        self.reported: set[int] | None = None
        """The places whose results were reported; None while nothing is."""
        self.results: list[Result | None] = [None] * len(requests)
        self.hosts: dict[Origin, _Host] = {}
        self.latest: tuple[str, _Host] | None = None
        """Where the last HTTP request goes, and how its URL begins: most go where that did."""
        self.under_way: dict[ActiveRequest, tuple[int, _Host]] = {}
        self.began = time.monotonic()
        start_timeout = transport.start_timeout
        self.start_until = None if start_timeout is None else self.began + start_timeout

    def run(self) -> list[Result]:
        for index, request in enumerate(self.requests):
            self._sort(index, request)
        try:
            self._converse()
        finally:
            for way, (_, host) in self.under_way.items():
                self.transport.drop(way)
                self._free(host)
        return [result for result in self.results if result is not None]

    def _converse(self) -> None:
        for host in self.hosts.values():
            self._fill(host)
        look = self._next_look()
        while self.under_way or any(host.waiting for host in self.hosts.values()):
            # all first, then what follows: what has ended is used again for what waited
            ended = self.transport.step(look)
            for host in dict.fromkeys([self._take(way, result) for way, result in ended]):
                self._fill(host)
            if time.monotonic() >= look:
                self._give_up_waiting()
                self._end_start_time()
                for host in self.hosts.values():
                    self._fill(host)
                look = self._next_look()
            if ended and self.reported is not None:
                self._report()

    def _end_start_time(self) -> None:
        """Give back what was not begun when the patience ends, and report what has ended."""
        if self.start_until is None or time.monotonic() < self.start_until:
            return
        self.start_until, self.reported = None, set()
        for host in self.hosts.values():
            for index in host.waiting:
                self.results[index] = NOT_STARTED
            host.waiting.clear()
        self._report()

    def _report(self) -> None:
        """Report the results that have come since the last report."""
        assert self.reported is not None
        fresh = [
            (index, result)
            for index, result in enumerate(self.results)
            if result is not None and index not in self.reported
        ]
        self.reported.update(index for index, _ in fresh)
        if self.report and fresh:
            self.report(fresh)

    def _sort(self, index: int, request: Request) -> None:
        """Put a request into its host's line, or refuse it."""
        if self.latest and not request.envelope and request.url.startswith(self.latest[0]):
            self.latest[1].waiting.append(index)
            return
        where = origin_of(request.url)
        refusal = self._refusal(request, where)
        if where is None or refusal:
            self.results[index] = Failure(FailureKind.REFUSED_ADDRESS, refusal)
            return
        host = self.hosts.setdefault(where, _Host(where))
        host.waiting.append(index)
        if not request.envelope:
            start = request.url.split("/", 3)[:3]
            self.latest = "/".join(start) + "/", host

    def _refusal(self, request: Request, where: Origin | None) -> str:
        """Say why a request may not leave; or nothing."""
        mail = request.envelope
        if where is None or where.scheme.startswith("smtp") is not (mail is not None):
            return "not an address to call"
        in_clear = mail is not None and bool(mail.username) and mail.security == "NONE"
        return self.transport.policy.refuses(where, logs_in_clear=in_clear)

    def _fill(self, host: _Host) -> None:
        """Set as many on their way to a host as it may have at once."""
        while host.waiting:
            request = self.requests[host.waiting[0]]
            bound = self.transport.streams if request.http2 else self.transport.per_host
            if host.busy >= bound or not self._may_begin(request, host):
                return
            index = host.waiting.popleft()
            try:
                way = self.transport.begin(request, host.where)
            except BaseException:
                self._free(host)
                raise
            host.busy += 1
            self.under_way[way] = (index, host)

    def _may_begin(self, request: Request, host: _Host) -> bool:
        """Take a place among all that is under way to a host, where that is bounded."""
        limits = self.transport.host_limits
        most = self.transport.streams if request.http2 else 2 * self.transport.per_host
        return limits is None or limits.take(host.where, most)

    def _free(self, host: _Host) -> None:
        if self.transport.host_limits is not None:
            self.transport.host_limits.free(host.where)

    def _take(self, way: ActiveRequest, result: Result) -> _Host:
        """Note what came of a request; give the host that has room again."""
        index, host = self.under_way.pop(way)
        host.busy -= 1
        self._free(host)
        self.results[index] = result
        late = isinstance(result, Failure) and result.reason == TIME_OUT
        if way.reached:
            host.reached = True
        elif late and not host.reached:
            self._give_up(host)
        if late:
            self._give_up_waiting()
        return host

    def _give_up(self, host: _Host) -> None:
        """Answer all that wait for a host which lets connections time out: each would, in turn."""
        while host.waiting:
            self.results[host.waiting.popleft()] = _DEAF

    def _next_look(self) -> float:
        """Say when the next request in a line will have waited for too long."""
        waits = [
            self.requests[index].timeout for host in self.hosts.values() for index in host.waiting
        ]
        look = self.began + min(waits, default=3600.0)
        if self.start_until is not None:
            look = min(look, self.start_until)
        if any(host.waiting and not host.busy for host in self.hosts.values()):
            look = min(look, time.monotonic() + _SLOT_SECONDS)
        return look

    def _give_up_waiting(self) -> None:
        passed = time.monotonic() - self.began + _CLOSE_ENOUGH
        for host in self.hosts.values():
            late = [index for index in host.waiting if self.requests[index].timeout <= passed]
            for index in late:
                host.waiting.remove(index)
                self.results[index] = BUSY
