"""The connections over HTTP/2 of one transport: one to each host, kept between calls."""

import math
import time
from collections import deque

from rme.transport.addresses import Origin
from rme.transport.http2.connection import NO_HTTP2, Http2Connection
from rme.transport.http2.stream import Stream
from rme.transport.loop import Loop
from rme.transport.messages import TIME_OUT, Failure, FailureKind, Reply, Request
from rme.transport.resolver import Found, Resolver

_IDLE_SECONDS = 45
"""A connection idle for longer is not used again: what stands between may have forgotten it, and a
request written then would end as UNKNOWN."""
_OLD_SECONDS = 3600
_LINES = 1000
_LATE = Failure(FailureKind.NOT_SENT, TIME_OUT)
BUSY = Failure(FailureKind.NOT_SENT, "no connection became free in time")


class _Line:
    """A host, what waits for a connection to it, and that."""

    def __init__(self, where: Origin, ca_pem: str) -> None:
        self.where = where
        self.ca_pem = ca_pem
        self.waiting: deque[Stream] = deque()
        self.connection: Http2Connection | None = None
        self.under_way: set[Stream] = set()


class Http2Pool:
    """Take requests on; `ended` says what became of them, `old` which go by HTTP/1.1 instead."""

    def __init__(self, loop: Loop, names: Resolver) -> None:
        self.ended: list[tuple[Stream, Reply | Failure]] = []
        self.old: list[Stream] = []
        self._loop = loop
        self._names = names
        self._lines: dict[tuple[Origin, str], _Line] = {}
        self._old_hosts: dict[Origin, float] = {}
        self._due = math.inf
        """Before this nothing under way is late; what would be then may have ended since."""

    def takes(self, request: Request, where: Origin) -> bool:
        """Say whether a request goes by HTTP/2, as far as we know its host."""
        if not request.http2 or where.scheme != "https":
            return False
        return not self._old_hosts or self._old_hosts.get(where, 0.0) <= time.monotonic()

    def begin(self, request: Request, where: Origin) -> Stream:
        """Put a request into its host's line; it leaves with the next `push`."""
        stream = Stream(request, where)
        self._line(where, request.ca_pem).waiting.append(stream)
        return stream

    def push(self) -> None:
        """Send what waits, as far as the hosts' limits allow."""
        for line in [line for line in self._lines.values() if line.waiting]:
            connection = self._usable(line)
            if connection is None:
                self._open(line)
                continue
            while line.waiting and connection.has_room:
                stream = line.waiting.popleft()
                line.under_way.add(stream)
                stream.reached, stream.connection = True, connection
                self._due = min(self._due, stream.deadline)
                connection.send(stream)
            if connection.ready:
                for stream in line.waiting:
                    stream.reached = True
            connection.guard(connection.flush)

    def next_deadline(self) -> float:
        """Say when something is to be done, if nothing happens (monotonic)."""
        if self.ended or self.old:
            return 0.0
        if not any(line.under_way for line in self._lines.values()):
            self._due = math.inf
        first = self._due
        for line in self._lines.values():
            first = min([first, *(stream.deadline for stream in line.waiting)])
            if line.connection is not None and line.connection.may_try_another:
                first = min(first, line.connection.attempt_until)
        return first

    def expire(self, now: float) -> None:
        """End what has taken too long."""
        for line in list(self._lines.values()):
            connection = line.connection
            if connection and connection.may_try_another and connection.attempt_until <= now:
                connection.try_another()
            if self._due <= now:
                for stream in [one for one in line.under_way if one.deadline <= now]:
                    if stream in line.under_way:  # else it ended with another's connection
                        self._expire(line, stream)
            late = [one for one in line.waiting if one.deadline <= now]
            for stream in late:
                line.waiting.remove(stream)
                self.ended.append((stream, BUSY if stream.reached else _LATE))
            if connection := line.connection:
                vain = not connection.used and (late or not line.waiting)
                if vain or _is_old(connection, now):
                    self._forget(line)
        if self._due <= now:
            under_way = [one for line in self._lines.values() for one in line.under_way]
            self._due = min((stream.deadline for stream in under_way), default=math.inf)

    def drop(self, stream: Stream) -> None:
        """Break off a request."""
        line = self._line(stream.where, stream.request.ca_pem)
        if stream in line.under_way:
            line.under_way.discard(stream)
            if connection := stream.connection:
                connection.leaving = True  # what was broken off may have been half a step of its
                connection.guard(lambda: connection.cancel(stream))
        elif stream in line.waiting:
            line.waiting.remove(stream)

    def clear(self) -> None:
        """Forget what has ended: nobody will ask."""
        self.ended.clear()
        self.old.clear()

    def close(self) -> None:
        """Close all connections."""
        for line in self._lines.values():
            self._forget(line)
        self._lines.clear()

    # --- lines and their connections ------------------------------------------------------------

    def _line(self, where: Origin, ca_pem: str) -> _Line:
        line = self._lines.get((where, ca_pem))
        if line is None:
            if len(self._lines) >= _LINES:
                self._tidy()
            line = self._lines[where, ca_pem] = _Line(where, ca_pem)
        return line

    def _tidy(self) -> None:
        for key, line in list(self._lines.items()):
            if not (line.waiting or line.under_way):
                self._forget(line)
                del self._lines[key]

    def _forget(self, line: _Line) -> None:
        connection, line.connection = line.connection, None
        if connection is not None:
            connection.close()

    def _usable(self, line: _Line) -> Http2Connection | None:
        """Give a line's connection, if it may still be used."""
        connection = line.connection
        if connection is None or not connection.ready or connection.streams:
            return None if connection and connection.leaving else connection
        if _is_old(connection, time.monotonic()):
            self._forget(line)
            return None
        connection.proceed()  # it may have said goodbye meanwhile
        return None if connection.leaving else connection

    def _open(self, line: _Line) -> None:
        line.connection = connection = Http2Connection(
            self._loop,
            line.where,
            line.ca_pem,
            lambda stream, result: self._ended(line, stream, result),
            lambda whose, why: self._gone(line, whose, why),
        )
        self._names.resolve(line.where, lambda found: self._connect(line, connection, found))

    def _connect(self, line: _Line, connection: Http2Connection, found: Found) -> None:
        if line.connection is not connection:
            return  # nobody waited for it so long
        if isinstance(found, Failure):
            connection.fail(found.kind, found.reason)
        else:
            connection.connect_to(found)

    def _ended(self, line: _Line, stream: Stream, result: Reply | Failure) -> None:
        line.under_way.discard(stream)
        self.ended.append((stream, result))

    def _gone(self, line: _Line, connection: Http2Connection, why: Failure) -> None:
        """A connection has ended: what it had not taken on waits for another, or ends with it."""
        if line.connection is not connection:
            return
        line.connection = None
        if connection.used:
            return
        if why.reason == NO_HTTP2:
            self._old_hosts[line.where] = time.monotonic() + _OLD_SECONDS
            self.old += line.waiting
            line.waiting.clear()
            return
        ending = 1 if connection.was_lost else len(line.waiting)
        for _ in range(min(ending, len(line.waiting))):
            self.ended.append((line.waiting.popleft(), why))

    def _expire(self, line: _Line, stream: Stream) -> None:
        connection = stream.connection
        assert connection is not None  # it is under way
        line.under_way.discard(stream)
        if connection.heard_at < stream.began:  # it is deaf, too, it seems
            connection.leaving = True
        connection.guard(lambda: connection.cancel(stream))
        connection.guard(connection.flush)
        self.ended.append((stream, stream.failure(FailureKind.UNKNOWN, TIME_OUT)))


def _is_old(connection: Http2Connection, now: float) -> bool:
    return not connection.streams and connection.used_at + _IDLE_SECONDS < now
