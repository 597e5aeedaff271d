"""libcurl's multi handle on this platform's best selector (`curl_multi_socket_action`).

`select()`, which pycurl offers with `perform()`, ends at descriptor 1,023; this does not.
"""

import selectors
import time

import pycurl

_EVENTS = {
    pycurl.POLL_IN: selectors.EVENT_READ,
    pycurl.POLL_OUT: selectors.EVENT_WRITE,
    pycurl.POLL_INOUT: selectors.EVENT_READ | selectors.EVENT_WRITE,
}
_IDLE_CONNECTIONS = 200


class Loop:
    """Easy handles go in by `add` and come out of `step` when they have ended."""

    def __init__(self, *, per_host: int, streams: int) -> None:
        self._selector = selectors.DefaultSelector()
        self._wake_at: float | None = None
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_MULTIPLEX)
        self._multi.setopt(pycurl.M_MAX_HOST_CONNECTIONS, per_host)
        self._multi.setopt(pycurl.M_MAX_CONCURRENT_STREAMS, streams)
        self._multi.setopt(pycurl.M_MAXCONNECTS, _IDLE_CONNECTIONS)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)

    def add(self, curl: pycurl.Curl) -> None:
        self._multi.add_handle(curl)

    def remove(self, curl: pycurl.Curl) -> None:
        self._multi.remove_handle(curl)

    def step(self, until: float) -> list[tuple[pycurl.Curl, int]]:
        """Wait for something to happen, at most until a time (monotonic), and let libcurl go on.

        Gives the handles that have ended, with libcurl's error or 0.
        """
        now = time.monotonic()
        wake_at = until if self._wake_at is None else min(until, self._wake_at)
        for key, events in self._selector.select(max(0.0, wake_at - now)):
            flags = (pycurl.CSELECT_IN if events & selectors.EVENT_READ else 0) | (
                pycurl.CSELECT_OUT if events & selectors.EVENT_WRITE else 0
            )
            self._multi.socket_action(key.fd, flags)
        if self._wake_at is not None and time.monotonic() >= self._wake_at:
            self._wake_at = None
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        return self._ended()

    def close(self) -> None:
        """Close all connections."""
        self._multi.close()
        self._selector.close()

    def _ended(self) -> list[tuple[pycurl.Curl, int]]:
        ended: list[tuple[pycurl.Curl, int]] = []
        more = 1
        while more:
            more, good, bad = self._multi.info_read()
            ended += [(curl, 0) for curl in good]
            ended += [(curl, code) for curl, code, _ in bad]
        return ended

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
