"""libcurl's reused connections: which ones the other side has closed, and how to make it drop one.

libcurl checks a connection once a second at most, and reuses one that a callback has refused. So
the socket of a closed connection is shut for writing: libcurl's write fails, and it takes another
connection. Nothing can have been sent on the first.
"""

import select
import socket
from collections import Counter
from contextlib import suppress

_CLOSED = getattr(select, "POLLRDHUP", 0)
"""The other side has closed its end. Only Linux reports it; elsewhere only a reset shows."""
_DEAD = _CLOSED | select.POLLHUP | select.POLLERR


class ReusedConnections:
    """Connections by local port, and the number of requests in flight on each."""

    def __init__(self) -> None:
        self._sockets: dict[int, _Socket] = {}
        self._users: Counter[int] = Counter()

    def enter(self, port: int) -> None:
        """Count a request on a connection."""
        self._users[port] += 1

    def leave(self, port: int) -> None:
        """Count the end of a request."""
        self._users[port] -= 1
        if self._users[port] <= 0:
            del self._users[port]

    def remember(self, port: int, descriptor: int) -> None:
        """Store the descriptor of a connection that libcurl may reuse."""
        stored_socket = self._sockets.get(port)
        if stored_socket is None or stored_socket.descriptor != descriptor:
            self._sockets[port] = _Socket(descriptor)

    def is_closed(self, port: int) -> bool:
        """Return whether the other side has closed a connection; False for an unknown one."""
        stored_socket = self._sockets.get(port)
        return stored_socket is not None and stored_socket.is_closed()

    def shut(self, port: int) -> bool:
        """Shut a connection for writing; return whether that was done.

        It is not done while other requests wait for responses on it: these would be lost.
        """
        if self._users[port]:
            return False
        stored_socket = self._sockets.pop(port, None)
        return stored_socket is not None and stored_socket.shut(port)


class _Socket:
    """A socket by its descriptor, which another socket may have by now."""

    __slots__ = ("_poll", "descriptor")

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, _CLOSED)

    def is_closed(self) -> bool:
        return any(events & _DEAD for _, events in self._poll.poll(0))

    def shut(self, port: int) -> bool:
        with suppress(OSError):  # it is no socket, or no longer connected
            borrowed = socket.socket(fileno=self.descriptor)
            try:
                if (
                    borrowed.family in (socket.AF_INET, socket.AF_INET6)
                    and borrowed.getsockname()[1] == port
                ):
                    borrowed.shutdown(socket.SHUT_WR)
                    return True
            finally:
                borrowed.detach()  # it belongs to libcurl
        return False
