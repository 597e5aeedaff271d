"""The connections that libcurl keeps, seen from outside: whether one has ended, and how to end it.

libcurl looks itself once a second at most, and keeps one that it was told not to use. So what would
be written on a connection that the other side has closed goes nowhere: the socket is shut for
writing, libcurl finds that, and takes another. Nothing can have left by the first.
"""

import select
import socket
from collections import Counter
from contextlib import suppress

_CLOSED = getattr(select, "POLLRDHUP", 0)
"""The other side will write no more. Linux tells; elsewhere only a reset shows."""
_DEAD = _CLOSED | select.POLLHUP | select.POLLERR


class ReusedConnections:
    """Connections by their local ports, and how many requests are under way on each."""

    def __init__(self) -> None:
        self._sockets: dict[int, _Socket] = {}
        self._users: Counter[int] = Counter()

    def enter(self, port: int) -> None:
        """Note that a request goes by a connection."""
        self._users[port] += 1

    def leave(self, port: int) -> None:
        """Note that a request has ended."""
        self._users[port] -= 1
        if self._users[port] <= 0:
            del self._users[port]

    def remember(self, port: int, descriptor: int) -> None:
        """Note by which descriptor libcurl keeps a connection."""
        known = self._sockets.get(port)
        if known is None or known.descriptor != descriptor:
            self._sockets[port] = _Socket(descriptor)

    def is_closed(self, port: int) -> bool:
        """Say whether the other side has ended a connection; an unknown one counts as alive."""
        known = self._sockets.get(port)
        return known is not None and known.is_closed()

    def shut(self, port: int) -> bool:
        """Let nothing be written on a connection any more; say whether that is so.

        Not while answers are to come on it, which would be lost.
        """
        if self._users[port]:
            return False
        known = self._sockets.pop(port, None)
        return known is not None and known.shut(port)


class _Socket:
    """A socket by its descriptor, which may be out of date: another has the number then."""

    __slots__ = ("_poll", "descriptor")

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, _CLOSED)

    def is_closed(self) -> bool:
        return any(events & _DEAD for _, events in self._poll.poll(0))

    def shut(self, port: int) -> bool:
        with suppress(OSError):  # it is no socket, or not connected any more
            own = socket.socket(fileno=self.descriptor)
            try:
                if own.family in (socket.AF_INET, socket.AF_INET6) and own.getsockname()[1] == port:
                    own.shutdown(socket.SHUT_WR)
                    return True
            finally:
                own.detach()  # it is libcurl's
        return False
