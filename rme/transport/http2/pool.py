"""The HTTP/2 connections of one transport: one to each host, reused between calls."""

import math
import time
from collections import deque

from rme.transport.addresses import Origin
from rme.transport.http2.connection import NO_HTTP2, Http2Connection
from rme.transport.http2.stream import Stream
from rme.transport.loop import Loop
from rme.transport.messages import TIME_OUT, Failure, FailureKind, Reply, Request
from rme.transport.resolver import Addresses, Resolver

_IDLE_SECONDS = 45
"""A connection that was idle for longer is not reused: a router may have dropped it, and a request
written then would end as UNKNOWN."""
_HTTP1_SECONDS = 3600
_MAX_HOSTS = 1000
_NOT_CONNECTED = Failure(FailureKind.NOT_SENT, TIME_OUT)
BUSY = Failure(FailureKind.NOT_SENT, "no connection became free in time")


class _Http2Host:
    """A host, its connection, and the requests that wait for it."""

    def __init__(self, origin: Origin, ca_pem: str) -> None:
        self.origin = origin
        self.ca_pem = ca_pem
        self.waiting: deque[Stream] = deque()
        self.connection: Http2Connection | None = None
        self.in_flight: dict[Stream, Http2Connection] = {}


class Http2Pool:
    """Start requests; `ended` collects results, `fallbacks` the requests that need HTTP/1.1."""

    def __init__(self, loop: Loop, resolver: Resolver) -> None:
        self.ended: list[tuple[Stream, Reply | Failure]] = []
        self.fallbacks: list[Stream] = []
        self._loop = loop
        self._resolver = resolver
        self._hosts: dict[tuple[Origin, str], _Http2Host] = {}
        self._http1_hosts: dict[Origin, float] = {}
        self._first_deadline = math.inf
        """A lower bound of the deadlines of all requests in flight."""

    def accepts(self, request: Request, origin: Origin) -> bool:
        """Return whether a request goes by HTTP/2, as far as its host is known."""
        if not request.http2 or origin.scheme != "https":
            return False
        return not self._http1_hosts or self._http1_hosts.get(origin, 0.0) <= time.monotonic()

    def start(self, request: Request, origin: Origin) -> Stream:
        """Queue a request for its host; the next `send_waiting` sends it."""
        stream = Stream(request, origin)
        self._host(origin, request.ca_pem).waiting.append(stream)
        return stream

    def send_waiting(self) -> None:
        """Send the waiting requests, within the hosts' limits."""
        for host in [host for host in self._hosts.values() if host.waiting]:
            connection = self._usable(host)
            if connection is None:
                if host.waiting:  # the last one may have ended with the connection
                    self._open(host)
                continue
            while host.waiting and connection.has_room:
                stream = host.waiting.popleft()
                host.in_flight[stream] = connection
                stream.reached = True
                self._first_deadline = min(self._first_deadline, stream.deadline)
                connection.send(stream)
            if connection.ready:
                for stream in host.waiting:
                    stream.reached = True
            connection.guard(connection.flush)

    def next_deadline(self) -> float:
        """Return when `expire` has to be called at the latest (monotonic)."""
        if self.ended or self.fallbacks:
            return 0.0
        if not any(host.in_flight for host in self._hosts.values()):
            self._first_deadline = math.inf
        first = self._first_deadline
        for host in self._hosts.values():
            first = min([first, *(stream.deadline for stream in host.waiting)])
            if host.connection is not None and host.connection.may_try_another:
                first = min(first, host.connection.attempt_until)
        return first

    def expire(self, now: float) -> None:
        """End the requests that are late, and connections that are stale or unused."""
        for host in list(self._hosts.values()):
            connection = host.connection
            if connection and connection.may_try_another and connection.attempt_until <= now:
                connection.try_another()
            if self._first_deadline <= now:
                for stream in [stream for stream in host.in_flight if stream.deadline <= now]:
                    if stream in host.in_flight:  # expiring another may have ended it
                        self._expire(host, stream)
            expired = [stream for stream in host.waiting if stream.deadline <= now]
            for stream in expired:
                host.waiting.remove(stream)
                self.ended.append((stream, BUSY if stream.reached else _NOT_CONNECTED))
            if connection := host.connection:
                unused = not connection.used and (expired or not host.waiting)
                if unused or _is_stale(connection, now):
                    self._forget(host)
        if self._first_deadline <= now:
            in_flight = [stream for host in self._hosts.values() for stream in host.in_flight]
            self._first_deadline = min((stream.deadline for stream in in_flight), default=math.inf)

    def cancel(self, stream: Stream) -> None:
        """Cancel a request."""
        host = self._host(stream.origin, stream.request.ca_pem)
        connection = host.in_flight.pop(stream, None)
        if connection is not None:
            connection.closing = True  # its state may be half changed
            connection.guard(lambda: connection.cancel(stream))
        elif stream in host.waiting:
            host.waiting.remove(stream)

    def clear(self) -> None:
        """Drop the results of a cancelled call."""
        self.ended.clear()
        self.fallbacks.clear()

    def close(self) -> None:
        """Close all connections."""
        for host in self._hosts.values():
            self._forget(host)
        self._hosts.clear()

    # --- hosts and their connections ----------------------------------------------------------

    def _host(self, origin: Origin, ca_pem: str) -> _Http2Host:
        host = self._hosts.get((origin, ca_pem))
        if host is None:
            if len(self._hosts) >= _MAX_HOSTS:
                self._forget_idle()
            host = self._hosts[origin, ca_pem] = _Http2Host(origin, ca_pem)
        return host

    def _forget_idle(self) -> None:
        for key, host in list(self._hosts.items()):
            if not (host.waiting or host.in_flight):
                self._forget(host)
                del self._hosts[key]

    def _forget(self, host: _Http2Host) -> None:
        connection, host.connection = host.connection, None
        if connection is not None:
            connection.close()

    def _usable(self, host: _Http2Host) -> Http2Connection | None:
        """Return a host's connection, if it may still be used."""
        connection = host.connection
        if connection is None or not connection.ready or connection.streams:
            return None if connection and connection.closing else connection
        if _is_stale(connection, time.monotonic()):
            self._forget(host)
            return None
        connection.proceed()  # it may have received a GOAWAY meanwhile
        return None if connection.closing else connection

    def _open(self, host: _Http2Host) -> None:
        host.connection = connection = Http2Connection(
            self._loop,
            host.origin,
            host.ca_pem,
            lambda stream, result: self._on_result(host, stream, result),
            lambda ended, failure: self._on_end(host, ended, failure),
        )
        self._resolver.resolve(
            host.origin, lambda addresses: self._connect(host, connection, addresses)
        )

    def _connect(self, host: _Http2Host, connection: Http2Connection, addresses: Addresses) -> None:
        if host.connection is not connection:
            return  # all requests were late before the name was resolved
        if isinstance(addresses, Failure):
            connection.fail(addresses.kind, addresses.reason)
        else:
            connection.connect_to(addresses)

    def _on_result(self, host: _Http2Host, stream: Stream, result: Reply | Failure) -> None:
        host.in_flight.pop(stream, None)
        self.ended.append((stream, result))

    def _on_end(self, host: _Http2Host, connection: Http2Connection, failure: Failure) -> None:
        """Remove a connection that has ended; if it was never used, end requests that wait."""
        if host.connection is not connection:
            return
        host.connection = None
        if connection.used:
            return
        if failure.reason == NO_HTTP2:
            self._http1_hosts[host.origin] = time.monotonic() + _HTTP1_SECONDS
            self.fallbacks += host.waiting
            host.waiting.clear()
            return
        ending = 1 if connection.was_lost else len(host.waiting)
        for _ in range(min(ending, len(host.waiting))):
            self.ended.append((host.waiting.popleft(), failure))

    def _expire(self, host: _Http2Host, stream: Stream) -> None:
        connection = host.in_flight.pop(stream)
        if connection.received_at < stream.began:  # nothing was received since: it may be dead
            connection.closing = True
        connection.guard(lambda: connection.cancel(stream))
        connection.guard(connection.flush)
        self.ended.append((stream, stream.failure(FailureKind.UNKNOWN, TIME_OUT)))


def _is_stale(connection: Http2Connection, now: float) -> bool:
    return not connection.streams and connection.used_at + _IDLE_SECONDS < now
