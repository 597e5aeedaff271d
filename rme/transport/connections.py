"""All connections of one transport, whatever the protocol: requests start here and end here."""

import time
from collections.abc import Sequence

import pycurl

from rme.transport.addresses import AddressPolicy, Origin
from rme.transport.http1.exchange import Exchange
from rme.transport.http1.results import result_of
from rme.transport.http1.reused_connections import ReusedConnections
from rme.transport.http2.pool import Http2Pool
from rme.transport.http2.stream import Stream
from rme.transport.loop import Loop
from rme.transport.messages import Request, Result
from rme.transport.resolver import Resolver
from rme.transport.smtp.connection import Mail, TakeFollowing
from rme.transport.smtp.pool import MailConnectionPool

ActiveRequest = Exchange | Mail | Stream
"""A request in flight, by HTTP/1.1, SMTP or HTTP/2."""


class Connections:
    """Start requests and collect their results. Not for several threads at once."""

    def __init__(self, policy: AddressPolicy, resolve: Sequence[str], *, per_host: int) -> None:
        self._policy = policy
        self._resolve = list(resolve)
        self._loop = Loop(per_host=per_host)
        resolver = self._resolver = Resolver(self._loop, policy, self._resolve)
        self._mail = MailConnectionPool(self._loop, resolver)
        self._http2 = Http2Pool(self._loop, resolver)
        self._reused = ReusedConnections()
        self._idle: list[Exchange] = []
        self._exchanges: dict[pycurl.Curl, Exchange] = {}
        self._fallbacks: dict[Exchange, Stream] = {}
        """The exchanges that replace streams, because their host speaks only HTTP/1.1."""

    def start(
        self, request: Request, origin: Origin, take_following: TakeFollowing | None = None
    ) -> ActiveRequest:
        """Start a request; `step` returns its result. A mail may take another one with it."""
        if request.envelope:
            return self._mail.start(request, origin, take_following)
        if self._http2.accepts(request, origin):
            return self._http2.start(request, origin)
        return self._start_exchange(request, origin)

    def _start_exchange(self, request: Request, origin: Origin) -> Exchange:
        if self._idle:
            exchange = self._idle.pop()
        else:
            exchange = Exchange(self._policy, self._resolve, self._reused)
        exchange.start(request, origin)
        self._exchanges[exchange.curl] = exchange
        self._loop.add(exchange.curl)
        return exchange

    def step(self, until: float) -> list[tuple[ActiveRequest, Result]]:
        """Wait for the next event, at most until a time (monotonic); return what has ended."""
        self._http2.send_waiting()
        deadlines = self._mail.next_deadline(), self._http2.next_deadline()
        codes = self._loop.step(min(until, *deadlines))
        ended: list[tuple[ActiveRequest, Result]] = [
            self._end(self._exchanges.pop(curl), code) for curl, code in codes
        ]
        now = time.monotonic()
        for pool in (self._mail, self._http2):
            pool.expire(now)
            ended += pool.ended
            pool.ended.clear()
        for stream in self._http2.fallbacks:
            self._fallbacks[self._start_exchange(stream.request, stream.origin)] = stream
        self._http2.fallbacks.clear()
        return ended

    def cancel(self, active: ActiveRequest) -> None:
        """Cancel a request in flight, when an exception (such as a time limit) ends the call."""
        replaced = (each for each, stream in self._fallbacks.items() if stream is active)
        exchange = active if isinstance(active, Exchange) else next(replaced, None)
        if exchange is not None:
            exchange.leave_connection()
            self._fallbacks.pop(exchange, None)
            if self._exchanges.pop(exchange.curl, None):
                self._loop.remove(exchange.curl)
                exchange.curl.close()
        elif isinstance(active, Mail):
            self._mail.cancel(active)
        elif isinstance(active, Stream):
            self._http2.cancel(active)
        self._mail.ended.clear()
        self._http2.clear()

    def close(self) -> None:
        """Close all connections."""
        for exchange in self._idle:
            exchange.curl.close()
        self._idle.clear()
        self._mail.close()
        self._http2.close()
        self._resolver.close()
        self._loop.close()

    def _end(self, exchange: Exchange, code: int) -> tuple[ActiveRequest, Result]:
        """Return an exchange that libcurl has ended with a code, and its result."""
        curl = exchange.curl
        descriptor = curl.getinfo(pycurl.ACTIVESOCKET)  # libcurl may reuse it, after a failure too
        if descriptor >= 0:
            self._reused.remember(curl.getinfo(pycurl.LOCAL_PORT), descriptor)
        exchange.leave_connection()
        self._loop.remove(curl)
        result = result_of(exchange, code)
        self._idle.append(exchange)
        stream = self._fallbacks.pop(exchange, None)
        if stream is None:
            return exchange, result
        stream.reached = exchange.reached
        return stream, result
