"""From the name of a host to the addresses that may be called."""

import queue
import select
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from rme.transport.addresses import AddressPolicy, Origin
from rme.transport.loop import Loop
from rme.transport.messages import Failure, FailureKind
from rme.transport.socket_connection import Address

_NAME_SECONDS = 60
"""A name is asked for again after this; its addresses are checked each time they are used."""

Found = Sequence[Address] | Failure
Then = Callable[[Found], None]


class Resolver:
    """Resolve names beside the loop: getaddrinfo can only block, so it does in a thread."""

    def __init__(self, loop: Loop, policy: AddressPolicy, fixed: Iterable[str]) -> None:
        self._loop = loop
        self._policy = policy
        self._known: dict[Origin, tuple[float, list[Address]]] = {}
        self._asked: dict[Origin, list[Then]] = {}
        self._answers: queue.SimpleQueue[tuple[Origin, list[Address]]] = queue.SimpleQueue()
        self._bell: tuple[socket.socket, socket.socket] | None = None
        self._fixed: dict[tuple[str, int], list[str]] = {}
        for entry in fixed:
            host, port, addresses = entry.split(":", 2)
            self._fixed[host, int(port)] = [one.strip("[]") for one in addresses.split(",")]

    def resolve(self, where: Origin, then: Then) -> None:
        """Give the addresses of a host that may be called to `then`: at once or later."""
        known = self._known.get(where)
        if known and known[0] > time.monotonic():
            then(self._allowed(where, known[1]))
            return
        hosts = self._fixed.get((where.host, where.port), [where.host])
        asked = self._asked.setdefault(where, [])
        asked.append(then)
        if len(asked) == 1:
            if self._bell is None:
                self._bell = socket.socketpair()
                self._loop.watch(self._bell[0].fileno(), select.POLLIN, self._hear)
            ask = threading.Thread(
                target=self._ask, args=(where, hosts, self._bell[1]), daemon=True
            )
            ask.start()

    def close(self) -> None:
        if self._bell is not None:
            self._loop.unwatch(self._bell[0].fileno())
            for end in self._bell:
                end.close()
            self._bell = None

    def _ask(self, where: Origin, hosts: list[str], bell: socket.socket) -> None:
        found: list[Address] = []
        with suppress(OSError, UnicodeError):  # then no addresses is the answer
            for host in hosts:
                found += socket.getaddrinfo(host, where.port, type=socket.SOCK_STREAM)
        self._answers.put((where, found))
        with suppress(OSError):  # the transport was closed
            bell.send(b".")

    def _hear(self) -> None:
        assert self._bell is not None
        self._bell[0].recv(64)
        while not self._answers.empty():
            where, found = self._answers.get()
            if found:
                self._known[where] = (time.monotonic() + _NAME_SECONDS, found)
            for then in self._asked.pop(where, []):
                then(self._allowed(where, found))

    def _allowed(self, where: Origin, found: list[Address]) -> Found:
        opened = self._policy.opens(where.host, where.port)
        allowed = [one for one in found if opened or self._policy.allows(one[4][0], where.port)]
        if found and not allowed:
            return Failure(FailureKind.REFUSED_ADDRESS, "the address is not public")
        return allowed or Failure(FailureKind.NOT_SENT, "the host's name does not resolve")
