"""Many exchanges at once on one libcurl multi handle, with connections kept between calls."""

import os
import selectors
import threading
import time
from collections.abc import Sequence

import pycurl
from django.conf import settings

from rme.core.transport.addresses import AddressPolicy
from rme.core.transport.exchange import Exchange, check
from rme.core.transport.messages import Failure, FailureKind, Reply, Request

_EVENTS = {
    pycurl.POLL_IN: selectors.EVENT_READ,
    pycurl.POLL_OUT: selectors.EVENT_WRITE,
    pycurl.POLL_INOUT: selectors.EVENT_READ | selectors.EVENT_WRITE,
}


class Transport:
    """Perform requests, as many at once as are given. Not thread-safe: one for each thread.

    At most `per_host` connections to one host; over HTTP/2 many requests share one.
    """

    def __init__(
        self,
        policy: AddressPolicy | None = None,
        *,
        per_host: int = 10,
        resolve: Sequence[str] = (),
    ) -> None:
        self.policy = policy or AddressPolicy()
        self.resolve = list(resolve)
        """Names to resolve in a given way (`host:port:address`), for tests of the policy."""
        self._idle: list[pycurl.Curl] = []
        self._selector = selectors.DefaultSelector()
        self._wake_at: float | None = None
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_MULTIPLEX)
        self._multi.setopt(pycurl.M_MAX_HOST_CONNECTIONS, per_host)
        self._multi.setopt(pycurl.M_MAXCONNECTS, 200)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)

    def perform(self, requests: Sequence[Request]) -> list[Reply | Failure]:
        """Perform requests and give their answers in the same order.

        Takes as long as the slowest, which its time-out bounds. Raises InvalidRequest before
        anything has left.
        """
        for request in requests:
            check(request, self.policy)
        results: list[Reply | Failure | None] = [None] * len(requests)
        open_exchanges: dict[pycurl.Curl, tuple[int, Exchange]] = {}
        for index, request in enumerate(requests):
            exchange = Exchange(self._handle(), request, self.policy)
            if not exchange.may_leave:
                results[index] = Failure(FailureKind.REFUSED_ADDRESS, "the address is not https")
                self._give_back(exchange.curl)
                continue
            open_exchanges[exchange.curl] = (index, exchange)
            self._multi.add_handle(exchange.curl)
        while open_exchanges:
            self._step()
            for curl, code in self._finished():
                index, exchange = open_exchanges.pop(curl)
                results[index] = exchange.failure(code) if code else exchange.reply()
                self._multi.remove_handle(curl)
                self._give_back(curl)
        return [result for result in results if result is not None]

    def close(self) -> None:
        """Close all connections."""
        for curl in self._idle:
            curl.close()
        self._multi.close()
        self._selector.close()

    def _handle(self) -> pycurl.Curl:
        curl = self._idle.pop() if self._idle else pycurl.Curl()
        if self.resolve:
            curl.setopt(pycurl.RESOLVE, self.resolve)
        return curl

    def _give_back(self, curl: pycurl.Curl) -> None:
        curl.reset()
        self._idle.append(curl)

    def _watch(self, what: int, descriptor: int, multi: object, data: object) -> None:
        """Watch a socket as libcurl wishes (CURLMOPT_SOCKETFUNCTION)."""
        known = descriptor in self._selector.get_map()
        if what == pycurl.POLL_REMOVE:
            if known:
                self._selector.unregister(descriptor)
        elif what in _EVENTS:
            (self._selector.modify if known else self._selector.register)(descriptor, _EVENTS[what])

    def _set_timer(self, milliseconds: int) -> None:
        """Wake libcurl after a time (CURLMOPT_TIMERFUNCTION); -1 takes the timer back."""
        self._wake_at = None if milliseconds < 0 else time.monotonic() + milliseconds / 1000

    def _step(self) -> None:
        """Wait for something to happen and let libcurl go on."""
        wait = 1.0 if self._wake_at is None else max(0.0, self._wake_at - time.monotonic())
        ready = self._selector.select(wait) if wait > 0 else self._selector.select(0)
        for key, events in ready:
            flags = (pycurl.CSELECT_IN if events & selectors.EVENT_READ else 0) | (
                pycurl.CSELECT_OUT if events & selectors.EVENT_WRITE else 0
            )
            self._multi.socket_action(key.fd, flags)
        if self._wake_at is not None and time.monotonic() >= self._wake_at:
            self._wake_at = None
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)

    def _finished(self) -> list[tuple[pycurl.Curl, int]]:
        """Give the handles that have ended, with libcurl's error or 0."""
        ended: list[tuple[pycurl.Curl, int]] = []
        more = 1
        while more:
            more, good, bad = self._multi.info_read()
            ended += [(curl, 0) for curl in good]
            ended += [(curl, code) for curl, code, _ in bad]
        return ended


_local = threading.local()


def shared() -> Transport:
    """Give this thread's transport; a forked process makes its own.

    Connections must not be shared with the parent, so a changed process id starts anew.
    """
    if getattr(_local, "pid", None) != os.getpid():
        _local.transport = Transport(AddressPolicy(settings.OUTBOUND_OPEN_HOSTS))
        _local.pid = os.getpid()
    transport: Transport = _local.transport
    return transport
