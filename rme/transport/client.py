"""Many exchanges at once, each host's within its bounds, over connections kept between calls."""

import threading
import time
from collections.abc import Sequence

import pycurl

from rme.transport.addresses import AddressPolicy, Origin
from rme.transport.host_limits import Slots
from rme.transport.http1.exchange import Exchange
from rme.transport.http1.results import judge
from rme.transport.http1.reused_connections import Kept
from rme.transport.http2.pool import Multiplex
from rme.transport.http2.stream import Stream
from rme.transport.loop import Loop
from rme.transport.messages import Failure, Reply, Request
from rme.transport.resolver import Names
from rme.transport.scheduler import Batch, Report, Way
from rme.transport.smtp.connection import MailConnection
from rme.transport.smtp.pool import Post

_APART = 50
"""So many names have connections of their own."""


class Transport:
    """Perform requests, as many at once as are given.

    At most `per_host` connections to one host; over HTTP/2 up to `streams` requests share one.
    May be shared by threads, and then one waits for the other: `shared()` gives each its own.
    Never to be used on the other side of a fork.
    """

    def __init__(
        self,
        policy: AddressPolicy | None = None,
        *,
        per_host: int = 10,
        streams: int = 100,
        resolve: Sequence[str] = (),
        patience: float | None = None,
        slots: Slots | None = None,
    ) -> None:
        """Make a transport without a connection yet.

        `resolve` makes names resolve in a given way (`host:port:address,address`), for tests.
        `patience` and `slots` are of transports for sending: see `perform` and `sibling`.
        """
        self.policy = policy or AddressPolicy()
        self.per_host = per_host
        self.streams = streams
        self.patience = patience
        self.slots = slots
        self._resolve = list(resolve)
        self._idle: list[Exchange] = []
        self._kept = Kept()
        self._exchanges: dict[pycurl.Curl, Exchange] = {}
        self._loop = Loop(per_host=per_host)
        self._names = Names(self._loop, self.policy, self._resolve)
        self._post = Post(self._loop, self._names)
        self._multiplex = Multiplex(self._loop, self._names)
        self._instead: dict[Exchange, Stream] = {}
        """What goes by HTTP/1.1 because its host speaks nothing else."""
        self._root = self
        self._apart: dict[str, Transport] = {}
        self._siblings: dict[int, Transport] = {}
        self._siblings_slots = Slots()
        self._apart_lock = threading.Lock()  # beside the other: who performs must not be waited for
        self._lock = threading.Lock()

    def apart(self, name: str) -> "Transport":
        """Give a transport alike, whose connections only who gives the same name shares.

        For services that bind a connection to whoever speaks first on it, and for conversations
        side by side. The last used are kept.
        """
        root, forgotten = self._root, None
        with root._apart_lock:
            own = root._apart.pop(name, None) or root._another()
            root._apart[name] = own
            if len(root._apart) > _APART:
                forgotten = root._apart.pop(next(iter(root._apart)))
        if forgotten:
            forgotten.close()
        return own

    def _another(self) -> "Transport":
        made = Transport(
            self.policy,
            per_host=self.per_host,
            streams=self.streams,
            resolve=self._resolve,
            patience=self.patience,
            slots=self.slots,
        )
        made._root = self
        return made

    def sibling(self, number: int, *, patience: float, streams: int) -> "Transport":
        """Return the transport of one of several threads that send, by the thread's number.

        It shares no connection with this one, nor by `apart`. All siblings together have no more
        under way to a host than `streams` over HTTP/2 and twice `per_host` otherwise.
        """
        with self._apart_lock:
            own = self._siblings.get(number)
            if own is None:
                own = self._siblings[number] = Transport(
                    self.policy,
                    per_host=self.per_host,
                    streams=min(self.streams, streams),
                    resolve=self._resolve,
                    slots=self._siblings_slots,
                )
        own.patience = patience
        return own

    def leave(self, name: str) -> None:
        """Close the connections of a name: the next request opens new ones."""
        root = self._root
        with root._apart_lock:
            own = root._apart.pop(name, None)
        if own:
            own.close()

    def perform(
        self, requests: Sequence[Request], report: Report | None = None
    ) -> list[Reply | Failure]:
        """Perform requests and give their answers in the same order.

        A request waits at most its own time-out for a connection, and takes at most as long again;
        a slow host holds up only what goes to it. Nothing the other side does raises.

        Where the transport has a patience (in seconds), what was not begun by then ends as
        NOT_BEGUN, and what has ended is given to `report`: then all so far, later each as it comes.
        It must not raise. What has ended by then all together is returned without a report.
        """
        with self._lock:
            return Batch(self, requests, report).run()

    def close(self) -> None:
        """Close all connections."""
        with self._apart_lock:
            kept = [*self._apart.values(), *self._siblings.values()]
            self._apart.clear()
            self._siblings.clear()
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

    def begin(self, request: Request, where: Origin) -> Way:
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

    def step(self, until: float) -> list[tuple[Way, Reply | Failure]]:
        """Wait until something happens, at most until a time (monotonic); give what has ended."""
        self._multiplex.push()
        deadlines = self._post.next_deadline(), self._multiplex.next_deadline()
        codes = self._loop.step(min(until, *deadlines))
        ended: list[tuple[Way, Reply | Failure]] = [
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

    def drop(self, way: Way) -> None:
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

    def _end(self, exchange: Exchange, code: int) -> tuple[Way, Reply | Failure]:
        """Take an exchange that has ended, and say what came of it."""
        curl = exchange.curl
        descriptor = curl.getinfo(pycurl.ACTIVESOCKET)  # after a failure, too, it may be kept
        if descriptor >= 0:
            self._kept.remember(curl.getinfo(pycurl.LOCAL_PORT), descriptor)
        exchange.leave()
        self._loop.remove(curl)
        verdict = judge(exchange, code)
        self._idle.append(exchange)
        stream = self._instead.pop(exchange, None)
        if stream is None:
            return exchange, verdict
        stream.reached = exchange.reached
        return stream, verdict
