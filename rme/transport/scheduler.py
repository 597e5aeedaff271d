"""The requests of one call: which wait for their host, which are in flight, and their results."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from rme.transport.addresses import AddressPolicy, Origin, origin_of
from rme.transport.connections import ActiveRequest, Connections
from rme.transport.host_limits import HostLimits
from rme.transport.http2.pool import BUSY
from rme.transport.messages import (
    NOT_STARTED,
    TIME_OUT,
    Envelope,
    Failure,
    FailureKind,
    MailSecurity,
    OnResults,
    Request,
    Result,
)
from rme.transport.smtp.connection import Mail

_TOLERANCE_SECONDS = 0.01
"""Requests whose time ends this soon are ended together with one whose time is over."""
_NO_CONNECTIONS = Failure(FailureKind.NOT_SENT, "the host takes no connections")
_RETRY_SECONDS = 0.02
"""How often a host's shared limit is tried again while other threads use it up."""


@dataclass(frozen=True, slots=True)
class TransportLimits:
    """What one call may do. Times are in seconds; see `Transport`."""

    policy: AddressPolicy
    per_host: int
    streams: int
    start_timeout: float | None
    host_limits: HostLimits | None


class _HostQueue:
    """The requests to one host: how many are in flight, and which wait."""

    __slots__ = ("in_flight", "origin", "reached", "waiting")

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.in_flight = 0
        self.reached = False
        """Whether the host accepted a connection."""
        self.waiting: deque[int] = deque()


class RequestScheduler:
    """Run the requests of one call; each ends with a reply or a failure."""

    def __init__(
        self,
        connections: Connections,
        limits: TransportLimits,
        requests: Sequence[Request],
        on_results: OnResults | None = None,
    ) -> None:
        self.connections = connections
        self.limits = limits
        self.requests = requests
        self.on_results = on_results
        self.reported: set[int] | None = None
        """The places whose results were reported; None before the start time-out."""
        self.results: list[Result | None] = [None] * len(requests)
        self.hosts: dict[Origin, _HostQueue] = {}
        self.latest: tuple[str, _HostQueue] | None = None
        """The beginning of the last HTTP request's URL, and its host: most go to the same."""
        self.mail_servers: dict[tuple[str, MailSecurity, str], _HostQueue] = {}
        """The hosts of mails, by what decides whether they may be called: URL, security, user."""
        self.in_flight: dict[ActiveRequest, tuple[int, _HostQueue]] = {}
        self.began = time.monotonic()
        timeout = limits.start_timeout
        self.start_until = None if timeout is None else self.began + timeout

    def run(self) -> list[Result]:
        for index, request in enumerate(self.requests):
            self._queue(index, request)
        try:
            self._run_all()
        finally:
            following = {each.following for each in self.in_flight}
            for active, (_, host) in self.in_flight.items():
                self.connections.cancel(active)
                if active not in following:
                    self._release(host)
        return [result for result in self.results if result is not None]

    def _run_all(self) -> None:
        for host in self.hosts.values():
            self._start_waiting(host)
        next_check = self._next_check()
        while self.in_flight or any(host.waiting for host in self.hosts.values()):
            # All results first, then new requests: they use the connections that became free.
            ended = self.connections.step(next_check)
            for host in dict.fromkeys([self._finish(active, result) for active, result in ended]):
                self._start_waiting(host)
            if time.monotonic() >= next_check:
                self._end_late()
                self._end_start_time()
                for host in self.hosts.values():
                    self._start_waiting(host)
                next_check = self._next_check()
            if ended and self.reported is not None:
                self._report()

    def _end_start_time(self) -> None:
        """End what has not started when the start time-out is over, and report what has ended."""
        if self.start_until is None or time.monotonic() < self.start_until:
            return
        self.start_until, self.reported = None, set()
        for host in self.hosts.values():
            for index in host.waiting:
                self.results[index] = NOT_STARTED
            host.waiting.clear()
        for active in list(self.in_flight):
            if active.following is not None:  # it has waited for a mail that was not answered
                index, _ = self.in_flight.pop(active.following)
                self.results[index] = NOT_STARTED
                active.following = None
        self._report()

    def _report(self) -> None:
        """Report the results that have come since the last report."""
        assert self.reported is not None
        new_results = [
            (index, result)
            for index, result in enumerate(self.results)
            if result is not None and index not in self.reported
        ]
        self.reported.update(index for index, _ in new_results)
        if self.on_results and new_results:
            self.on_results(new_results)

    def _queue(self, index: int, request: Request) -> None:
        """Add a request to its host's queue, or refuse it."""
        mail = request.envelope
        host = self._known_host(request.url, mail)
        if host is None:
            origin = origin_of(request.url)
            refusal = self._refusal(request, origin)
            if origin is None or refusal:
                self.results[index] = Failure(FailureKind.REFUSED_ADDRESS, refusal)
                return
            host = self.hosts.setdefault(origin, _HostQueue(origin))
            if mail:
                self.mail_servers[request.url, mail.security, mail.username] = host
            else:
                start = request.url.split("/", 3)[:3]
                self.latest = "/".join(start) + "/", host
        host.waiting.append(index)

    def _known_host(self, url: str, mail: Envelope | None) -> _HostQueue | None:
        """Return the host of a request like one before it; None if there was none."""
        if mail:
            return self.mail_servers.get((url, mail.security, mail.username))
        return self.latest[1] if self.latest and url.startswith(self.latest[0]) else None

    def _refusal(self, request: Request, origin: Origin | None) -> str:
        """Return why a request may not be sent, or an empty text."""
        mail = request.envelope
        if origin is None or origin.scheme.startswith("smtp") is not (mail is not None):
            return "not an address to call"
        in_clear = mail is not None and bool(mail.username) and mail.security == "NONE"
        return self.limits.policy.refuses(origin, logs_in_clear=in_clear)

    def _start_waiting(self, host: _HostQueue) -> None:
        """Start as many requests to a host as it may have in flight."""
        while host.waiting:
            request = self.requests[host.waiting[0]]
            limit = self.limits.streams if request.http2 else self.limits.per_host
            if host.in_flight >= limit or not self._acquire(request, host):
                return
            index = host.waiting.popleft()
            try:
                following = partial(self.take_following, host)
                active = self.connections.start(request, host.origin, following)
            except BaseException:
                self._release(host)
                raise
            host.in_flight += 1
            self.in_flight[active] = (index, host)

    def take_following(self, host: _HostQueue, fits: Callable[[Request], bool]) -> Mail | None:
        """Take the mail that waits next, if it fits, to leave with one that is in flight.

        It takes that one's place in the limits when that one ends.
        """
        if not host.waiting or not fits(self.requests[host.waiting[0]]):
            return None
        index = host.waiting.popleft()
        mail = Mail(self.requests[index], partial(self.take_following, host))
        self.in_flight[mail] = (index, host)
        return mail

    def _acquire(self, request: Request, host: _HostQueue) -> bool:
        """Count a request in the limit that several transports share, if there is one."""
        shared = self.limits.host_limits
        limit = self.limits.streams if request.http2 else 2 * self.limits.per_host
        return shared is None or shared.acquire(host.origin, limit)

    def _release(self, host: _HostQueue) -> None:
        if self.limits.host_limits is not None:
            self.limits.host_limits.release(host.origin)

    def _finish(self, active: ActiveRequest, result: Result) -> _HostQueue:
        """Store the result of a request; return its host, which has room again."""
        index, host = self.in_flight.pop(active)
        if active.following is None:
            host.in_flight -= 1
            self._release(host)
        self.results[index] = result
        timed_out = isinstance(result, Failure) and result.reason == TIME_OUT
        if active.reached:
            host.reached = True
        elif timed_out and not host.reached:
            self._end_all(host)
        if timed_out:
            self._end_late()
        return host

    def _end_all(self, host: _HostQueue) -> None:
        """End all that wait for a host whose connections time out: each would time out in turn."""
        while host.waiting:
            self.results[host.waiting.popleft()] = _NO_CONNECTIONS

    def _next_check(self) -> float:
        """Return when the next waiting request will be late (monotonic)."""
        timeouts = [
            self.requests[index].timeout for host in self.hosts.values() for index in host.waiting
        ]
        check = self.began + min(timeouts, default=3600.0)
        if self.start_until is not None:
            check = min(check, self.start_until)
        if any(host.waiting and not host.in_flight for host in self.hosts.values()):
            check = min(check, time.monotonic() + _RETRY_SECONDS)
        return check

    def _end_late(self) -> None:
        """End the requests that have waited for their whole time-out."""
        elapsed = time.monotonic() - self.began + _TOLERANCE_SECONDS
        for host in self.hosts.values():
            expired = [index for index in host.waiting if self.requests[index].timeout <= elapsed]
            for index in expired:
                host.waiting.remove(index)
                self.results[index] = BUSY
