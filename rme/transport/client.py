"""Many exchanges at once, each host's within its bounds, over connections kept between calls."""

import threading
import time
from collections.abc import Sequence

import pycurl

from rme.transport.addresses import AddressPolicy, Origin
from rme.transport.host_limits import HostLimits
from rme.transport.http1.exchange import Exchange
from rme.transport.http1.results import result_of
from rme.transport.http1.reused_connections import ReusedConnections
from rme.transport.http2.pool import Http2Pool
from rme.transport.http2.stream import Stream
from rme.transport.loop import Loop
from rme.transport.messages import Failure, Reply, Request
from rme.transport.resolver import Resolver
from rme.transport.scheduler import ActiveRequest, OnResults, RequestScheduler
from rme.transport.smtp.connection import MailConnection
from rme.transport.smtp.pool import MailConnectionPool

_ISOLATED = 50
"""So many names have connections of their own."""


class Transport:
    """Perform requests, as many at once as are given.

    At most `per_host` connections to one host; over HTTP/2 up to `streams` requests share one.
    Threads that share one wait for each other; `thread_transport()` makes one for each thread.
    Never to be used on the other side of a fork.
    """

    def __init__(
        self,
        policy: AddressPolicy | None = None,
        *,
        per_host: int = 10,
        streams: int = 100,
        resolve: Sequence[str] = (),
        start_timeout: float | None = None,
        host_limits: HostLimits | None = None,
    ) -> None:
        """Make a transport without a connection yet.

        `resolve` makes names resolve in a given way (`host:port:address,address`), for tests.
        `start_timeout` and `host_limits` are for sending: see `perform` and `for_worker`.
        """
        self.policy = policy or AddressPolicy()
        self.per_host = per_host
        self.streams = streams
        self.start_timeout = start_timeout
        self.host_limits = host_limits
        self._resolve = list(resolve)
        self._idle: list[Exchange] = []
        self._kept = ReusedConnections()
        self._exchanges: dict[pycurl.Curl, Exchange] = {}
        self._loop = Loop(per_host=per_host)
        self._names = Resolver(self._loop, self.policy, self._resolve)
        self._post = MailConnectionPool(self._loop, self._names)
        self._multiplex = Http2Pool(self._loop, self._names)
        self._instead: dict[Exchange, Stream] = {}
        """What goes by HTTP/1.1 because its host speaks nothing else."""
        self._root = self
        self._isolated: dict[str, Transport] = {}
        self._workers: dict[int, Transport] = {}
        self._workers_limits = HostLimits()
        self._isolated_lock = threading.Lock()  # its own: `perform` holds the other for long
        self._lock = threading.Lock()

    def isolated(self, name: str) -> "Transport":
        """Give a transport alike, whose connections only who gives the same name shares.

        For services that bind a connection to whoever speaks first on it, and for conversations
        side by side. The last used are kept.
        """
        root, forgotten = self._root, None
        with root._isolated_lock:
            own = root._isolated.pop(name, None) or root._another()
            root._isolated[name] = own
            if len(root._isolated) > _ISOLATED:
                forgotten = root._isolated.pop(next(iter(root._isolated)))
        if forgotten:
            forgotten.close()
        return own

    def _another(self) -> "Transport":
        made = Transport(
            self.policy,
            per_host=self.per_host,
            streams=self.streams,
            resolve=self._resolve,
            start_timeout=self.start_timeout,
            host_limits=self.host_limits,
        )
        made._root = self
        return made

    def for_worker(self, number: int, *, start_timeout: float, streams: int) -> "Transport":
        """Return the transport of one of several threads that send, by the thread's number.

        It shares no connection with this one, nor by `isolated`. All siblings together have no more
        under way to a host than `streams` over HTTP/2 and twice `per_host` otherwise.
        """
        with self._isolated_lock:
            own = self._workers.get(number)
            if own is None:
                own = self._workers[number] = Transport(
                    self.policy,
                    per_host=self.per_host,
                    streams=min(self.streams, streams),
                    resolve=self._resolve,
                    host_limits=self._workers_limits,
                )
        own.start_timeout = start_timeout
        return own

    def close_isolated(self, name: str) -> None:
        """Close the connections of a name: the next request opens new ones."""
        root = self._root
        with root._isolated_lock:
            own = root._isolated.pop(name, None)
        if own:
            own.close()

    def perform(
        self, requests: Sequence[Request], report: OnResults | None = None
    ) -> list[Reply | Failure]:
        """Perform requests and give their answers in the same order.

        A request waits at most its own time-out for a connection, and takes at most as long again;
        a slow host holds up only what goes to it. Nothing the other side does raises.

        With a `start_timeout` (in seconds) a request that has not started by then ends as
        NOT_STARTED, and `report` receives the results so far, later ones as they come. It must
        not raise. If all have ended by then, `report` is not called.
        """
        with self._lock:
            return RequestScheduler(self, requests, report).run()

    def close(self) -> None:
        """Close all connections."""
        with self._isolated_lock:
            kept = [*self._isolated.values(), *self._workers.values()]
            self._isolated.clear()
            self._workers.clear()
        for own in kept:
            own.close()
        with self._lock:
            for exchange in self._idle:
                exchange.curl.close()
            self._idle.clear()
            self._post.close()
            self._multiplex.close()
            self._names.close()
            self._loop.close()

    def begin(self, request: Request, where: Origin) -> ActiveRequest:
        """Set a request on its way."""
        if request.envelope:
            return self._post.begin(request, where)
        if self._multiplex.takes(request, where):
            return self._multiplex.begin(request, where)
        return self._begin_exchange(request, where)

    def _begin_exchange(self, request: Request, where: Origin) -> Exchange:
        if self._idle:
            exchange = self._idle.pop()
        else:
            exchange = Exchange(self.policy, self._resolve, self._kept)
        exchange.begin(request, where)
        self._exchanges[exchange.curl] = exchange
        self._loop.add(exchange.curl)
        return exchange

    def step(self, until: float) -> list[tuple[ActiveRequest, Reply | Failure]]:
        """Wait until something happens, at most until a time (monotonic); give what has ended."""
        self._multiplex.push()
        deadlines = self._post.next_deadline(), self._multiplex.next_deadline()
        codes = self._loop.step(min(until, *deadlines))
        ended: list[tuple[ActiveRequest, Reply | Failure]] = [
            self._end(self._exchanges.pop(curl), code) for curl, code in codes
        ]
        now = time.monotonic()
        for own in (self._post, self._multiplex):
            own.expire(now)
            ended += own.ended
            own.ended.clear()
        for stream in self._multiplex.old:
            stream.instead = self._begin_exchange(stream.request, stream.where)
            self._instead[stream.instead] = stream
        self._multiplex.old.clear()
        return ended

    def drop(self, way: ActiveRequest) -> None:
        """Break off what is under way, when an exception (a time limit's) ends the call."""
        if isinstance(way, Stream) and way.instead is None:
            self._multiplex.drop(way)
        elif isinstance(way, MailConnection):
            self._post.drop(way)
        else:
            exchange = way.instead if isinstance(way, Stream) else way
            assert exchange is not None  # the first case had none
            exchange.leave()
            self._instead.pop(exchange, None)
            if self._exchanges.pop(exchange.curl, None):
                self._loop.remove(exchange.curl)
                exchange.curl.close()
        self._post.ended.clear()
        self._multiplex.clear()

    def _end(self, exchange: Exchange, code: int) -> tuple[ActiveRequest, Reply | Failure]:
        """Take an exchange that has ended, and say what came of it."""
        curl = exchange.curl
        descriptor = curl.getinfo(pycurl.ACTIVESOCKET)  # after a failure, too, it may be kept
        if descriptor >= 0:
            self._kept.remember(curl.getinfo(pycurl.LOCAL_PORT), descriptor)
        exchange.leave()
        self._loop.remove(curl)
        verdict = result_of(exchange, code)
        self._idle.append(exchange)
        stream = self._instead.pop(exchange, None)
        if stream is None:
            return exchange, verdict
        stream.reached = exchange.reached
        return stream, verdict
