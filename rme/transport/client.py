"""The transport: many requests at once, within limits per host, over reused connections."""

import threading
from collections.abc import Sequence

from rme.transport.addresses import AddressPolicy
from rme.transport.connections import Connections
from rme.transport.host_limits import HostLimits
from rme.transport.messages import OnResults, Request, Result
from rme.transport.scheduler import RequestScheduler, TransportLimits

_ISOLATED = 50
"""The number of names whose isolated transports are kept."""


class Transport:
    """Perform requests, as many at once as are passed.

    At most `per_host` connections to one host; over HTTP/2 up to `streams` requests share one.
    Threads that share a transport wait for each other; `thread_transport()` makes one for each
    thread. A transport must not be used in a child process after a fork.
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
        """Build a transport without a connection yet.

        `resolve` fixes the addresses of names (`host:port:address,address`), for tests.
        `start_timeout` and `host_limits` are for sending: see `perform` and `for_worker`.
        """
        self.policy = policy or AddressPolicy()
        self.per_host = per_host
        self.streams = streams
        self.start_timeout = start_timeout
        self.host_limits = host_limits
        self.connections = Connections(self.policy, resolve, per_host=per_host)
        self._resolve = resolve
        self._root = self
        self._isolated: dict[str, Transport] = {}
        self._workers: dict[int, Transport] = {}
        self._worker_limits = HostLimits()
        self._children_lock = threading.Lock()  # `_lock` is held as long as `perform` runs
        self._lock = threading.Lock()

    def isolated(self, name: str) -> "Transport":
        """Return a transport with connections that only callers with the same name share.

        For services that bind a connection to the first credential on it, and for concurrent jobs.
        The last used are kept.
        """
        root, removed = self._root, None
        with root._children_lock:
            transport = root._isolated.pop(name, None) or root._copy()
            root._isolated[name] = transport
            if len(root._isolated) > _ISOLATED:
                removed = root._isolated.pop(next(iter(root._isolated)))
        if removed:
            removed.close()
        return transport

    def close_isolated(self, name: str) -> None:
        """Close the connections of a name: its next request opens new ones."""
        root = self._root
        with root._children_lock:
            transport = root._isolated.pop(name, None)
        if transport:
            transport.close()

    def _copy(self) -> "Transport":
        transport = type(self)(
            self.policy,
            per_host=self.per_host,
            streams=self.streams,
            resolve=self._resolve,
            start_timeout=self.start_timeout,
            host_limits=self.host_limits,
        )
        transport._root = self
        return transport

    def for_worker(self, number: int, *, start_timeout: float, streams: int) -> "Transport":
        """Return the transport of one of several threads that send, by the thread's number.

        It shares no connection with this one or with isolated ones. All workers' transports
        together have at most `streams` requests in flight to a host over HTTP/2, and twice
        `per_host` otherwise.
        """
        with self._children_lock:
            transport = self._workers.get(number)
            if transport is None:
                transport = self._workers[number] = type(self)(
                    self.policy,
                    per_host=self.per_host,
                    streams=min(self.streams, streams),
                    resolve=self._resolve,
                    host_limits=self._worker_limits,
                )
        transport.start_timeout = start_timeout
        return transport

    def perform(
        self, requests: Sequence[Request], on_results: OnResults | None = None
    ) -> list[Result]:
        """Perform requests and return their results in the same order.

        A request waits at most its own time-out for a connection, and takes at most as long again.
        A slow host delays only the requests to it. Nothing that the other side does raises.

        With a `start_timeout` (in seconds) a request that has not started by then ends as
        NOT_STARTED, and `on_results` receives the results so far, later ones as they come. It must
        not raise. If all have ended by then, it is not called.
        """
        with self._lock:
            limits = TransportLimits(
                self.policy, self.per_host, self.streams, self.start_timeout, self.host_limits
            )
            return RequestScheduler(self.connections, limits, requests, on_results).run()

    def close(self) -> None:
        """Close all connections, those of isolated and workers' transports too."""
        with self._children_lock:
            children = [*self._isolated.values(), *self._workers.values()]
            self._isolated.clear()
            self._workers.clear()
        for transport in children:
            transport.close()
        with self._lock:
            self.connections.close()
