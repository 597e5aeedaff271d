"""Resolution of host names, to the addresses that may be called."""

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

_CACHE_SECONDS = 60
"""How long a name's addresses are cached; they are checked each time they are used."""

Addresses = Sequence[Address] | Failure
OnResolved = Callable[[Addresses], None]


class Resolver:
    """Resolve names in threads, because getaddrinfo blocks; results reach the loop by a socket."""

    def __init__(self, loop: Loop, policy: AddressPolicy, fixed: Iterable[str]) -> None:
        self._loop = loop
        self._policy = policy
        self._cache: dict[Origin, tuple[float, list[Address]]] = {}
        self._pending: dict[Origin, list[OnResolved]] = {}
        self._answers: queue.SimpleQueue[tuple[Origin, list[Address]]] = queue.SimpleQueue()
        self._wakeup: tuple[socket.socket, socket.socket] | None = None
        self._fixed: dict[tuple[str, int], list[str]] = {}
        for entry in fixed:
            host, port, addresses = entry.split(":", 2)
            self._fixed[host, int(port)] = [address.strip("[]") for address in addresses.split(",")]

    def resolve(self, origin: Origin, on_resolved: OnResolved) -> None:
        """Call `on_resolved`, at once or later, with the addresses that may be called."""
        cached = self._cache.get(origin)
        if cached and cached[0] > time.monotonic():
            on_resolved(self._allowed(origin, cached[1]))
            return
        hosts = self._fixed.get((origin.host, origin.port), [origin.host])
        pending = self._pending.setdefault(origin, [])
        pending.append(on_resolved)
        if len(pending) == 1:
            if self._wakeup is None:
                self._wakeup = socket.socketpair()
                self._loop.watch(self._wakeup[0].fileno(), select.POLLIN, self._on_wakeup)
            thread = threading.Thread(
                target=self._look_up, args=(origin, hosts, self._wakeup[1]), daemon=True
            )
            thread.start()

    def close(self) -> None:
        if self._wakeup is not None:
            self._loop.unwatch(self._wakeup[0].fileno())
            for end in self._wakeup:
                end.close()
            self._wakeup = None

    def _look_up(self, origin: Origin, hosts: list[str], wakeup: socket.socket) -> None:
        addresses: list[Address] = []
        with suppress(OSError, UnicodeError):  # no addresses are found
            for host in hosts:
                addresses += socket.getaddrinfo(host, origin.port, type=socket.SOCK_STREAM)
        self._answers.put((origin, addresses))
        with suppress(OSError):  # the transport was closed
            wakeup.send(b".")

    def _on_wakeup(self) -> None:
        assert self._wakeup is not None
        self._wakeup[0].recv(64)
        while not self._answers.empty():
            origin, addresses = self._answers.get()
            if addresses:
                self._cache[origin] = (time.monotonic() + _CACHE_SECONDS, addresses)
            for on_resolved in self._pending.pop(origin, []):
                on_resolved(self._allowed(origin, addresses))

    def _allowed(self, origin: Origin, addresses: list[Address]) -> Addresses:
        opened = self._policy.opens(origin.host, origin.port)
        allowed = [
            address
            for address in addresses
            if opened or self._policy.allows(address[4][0], origin.port)
        ]
        if addresses and not allowed:
            return Failure(FailureKind.REFUSED_ADDRESS, "the address is not public")
        return allowed or Failure(FailureKind.NOT_SENT, "the host's name does not resolve")
