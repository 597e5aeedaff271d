"""The event loop: it polls libcurl's sockets (`curl_multi_socket_action`) and the package's own.

`select()`, which pycurl offers with `perform()`, ends at descriptor 1,023. epoll drops a
socket that is closed and whose descriptor is used again; poll works by descriptor and misses none.
"""

import select
import time
from collections.abc import Callable

import pycurl

_EVENTS = {
    pycurl.POLL_IN: select.POLLIN,
    pycurl.POLL_OUT: select.POLLOUT,
    pycurl.POLL_INOUT: select.POLLIN | select.POLLOUT,
}
_READABLE = select.POLLIN | select.POLLHUP | select.POLLERR
_IDLE_CONNECTIONS = 200


class Loop:
    """Wait for easy handles, which `step` returns at their end, and for sockets with a callback."""

    def __init__(self, *, per_host: int) -> None:
        self._poll = select.poll()
        self._watched: dict[int, Callable[[], None] | None] = {}
        self._wake_at: float | None = None
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAX_HOST_CONNECTIONS, per_host)
        self._multi.setopt(pycurl.M_MAXCONNECTS, _IDLE_CONNECTIONS)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)

    def add(self, curl: pycurl.Curl) -> None:
        self._multi.add_handle(curl)

    def remove(self, curl: pycurl.Curl) -> None:
        self._multi.remove_handle(curl)

    def watch(self, descriptor: int, events: int, callback: Callable[[], None] | None) -> None:
        """Call `callback` on such events (select.POLL…); without one the socket is libcurl's."""
        self._watched[descriptor] = callback
        self._poll.register(descriptor, events)

    def unwatch(self, descriptor: int) -> None:
        if descriptor in self._watched:
            del self._watched[descriptor]
            self._poll.unregister(descriptor)

    def step(self, until: float) -> list[tuple[pycurl.Curl, int]]:
        """Wait for events, at most until a time (monotonic), and process them.

        Returns the handles that have ended, with libcurl's error or 0.
        """
        wake_at = until if self._wake_at is None else min(until, self._wake_at)
        wait = max(0.0, wake_at - time.monotonic())
        for descriptor, events in self._poll.poll(wait * 1000):
            callback = self._watched.get(descriptor)
            if callback is not None:
                callback()
            elif descriptor in self._watched:  # else an earlier callback has closed it
                flags = (pycurl.CSELECT_IN if events & _READABLE else 0) | (
                    pycurl.CSELECT_OUT if events & select.POLLOUT else 0
                )
                self._multi.socket_action(descriptor, flags)
        if self._wake_at is not None and time.monotonic() >= self._wake_at:
            self._wake_at = None
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        return self._ended()

    def close(self) -> None:
        """Close libcurl's connections."""
        self._multi.close()

    def _ended(self) -> list[tuple[pycurl.Curl, int]]:
        ended: list[tuple[pycurl.Curl, int]] = []
        queued = 1
        while queued:
            queued, good, bad = self._multi.info_read()
            ended += [(curl, 0) for curl in good]
            ended += [(curl, code) for curl, code, _ in bad]
        return ended

    def _on_socket(self, event: int, descriptor: int, multi: object, data: object) -> None:
        """Watch a socket for the events that libcurl needs (CURLMOPT_SOCKETFUNCTION)."""
        if event == pycurl.POLL_REMOVE:
            self.unwatch(descriptor)
        elif event in _EVENTS:
            self.watch(descriptor, _EVENTS[event], None)

    def _set_timer(self, milliseconds: int) -> None:
        """Call libcurl after a time (CURLMOPT_TIMERFUNCTION); -1 cancels the timer."""
        self._wake_at = None if milliseconds < 0 else time.monotonic() + milliseconds / 1000
