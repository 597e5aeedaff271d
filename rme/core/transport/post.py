"""All connections to mail servers of one transport: resolved, checked, kept and timed."""

import math
import queue
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from rme.core.transport.addresses import AddressPolicy, Origin
from rme.core.transport.loop import Loop
from rme.core.transport.mail import Address, MailConnection
from rme.core.transport.messages import (
    Envelope,
    Failure,
    FailureKind,
    Reply,
    Request,
)

_IDLE_SECONDS = 45
_IDLE_CONNECTIONS = 50
_NAME_SECONDS = 60
"""A name is asked for again after this; its addresses are checked each time they are used."""

Account = tuple[Origin, object, str, str, str]
Then = Callable[[Sequence[Address]], None]


class Post:
    """Take mails on, each on a connection of its account's; `ended` says what became of them."""

    def __init__(self, loop: Loop, policy: AddressPolicy, fixed: Iterable[str]) -> None:
        self.policy = policy
        self.ended: list[tuple[MailConnection, Reply | Failure]] = []
        self._loop = loop
        self._names = Names(loop, fixed)
        self._busy: dict[MailConnection, Account] = {}
        self._idle: deque[tuple[float, Account, MailConnection]] = deque()

    def begin(self, request: Request, where: Origin) -> MailConnection:
        """Set a mail on its way; it comes back in `ended`."""
        assert request.envelope is not None  # it was sorted by that
        account = _account(request, request.envelope, where)
        connection = self._kept(account)
        if connection is not None:
            self._busy[connection] = account
            connection.begin(request)
            return connection
        connection = MailConnection(self._loop, where, self._done)
        self._busy[connection] = account
        connection.begin(request)
        self._names.resolve(where, lambda found: self._connect(connection, found))
        return connection

    def next_deadline(self) -> float:
        """Say when something is to be done, if nothing happens (monotonic)."""
        if self.ended:
            return 0.0
        return min((connection.deadline for connection in self._busy), default=math.inf)

    def expire(self, now: float) -> None:
        """End what has taken too long, and what was kept for too long."""
        for connection in [one for one in self._busy if one.deadline <= now]:
            connection.expire()
        while self._idle and self._idle[0][0] + _IDLE_SECONDS < now:
            self._idle.popleft()[2].close()

    def drop(self, connection: MailConnection) -> None:
        """Break off a mail under way."""
        self._busy.pop(connection, None)
        connection.close()

    def close(self) -> None:
        for _, _, connection in self._idle:
            connection.close()
        self._idle.clear()
        self._names.close()

    def _kept(self, account: Account) -> MailConnection | None:
        """Find a connection that the account left, the last used first."""
        for place in range(len(self._idle) - 1, -1, -1):
            since, whose, connection = self._idle[place]
            if whose != account:
                continue
            del self._idle[place]
            if since + _IDLE_SECONDS > time.monotonic() and connection.is_quiet():
                return connection
            connection.close()
            return self._kept(account)
        return None

    def _connect(self, connection: MailConnection, found: Sequence[Address]) -> None:
        if connection not in self._busy:
            return  # its time was over before the name was resolved
        where = connection.where
        opened = self.policy.opens(where.host, where.port)
        allowed = [
            address for address in found if opened or self.policy.allows(address[4][0], where.port)
        ]
        if allowed:
            connection.connect(allowed)
        elif found:
            connection.fail(FailureKind.REFUSED_ADDRESS, "the address is not public")
        else:
            connection.fail(FailureKind.NOT_SENT, "the host's name does not resolve")

    def _done(self, connection: MailConnection, result: Reply | Failure) -> None:
        account = self._busy.pop(connection)
        self.ended.append((connection, result))
        if connection.usable:
            self._idle.append((time.monotonic(), account, connection))
            if len(self._idle) > _IDLE_CONNECTIONS:
                self._idle.popleft()[2].close()


def _account(request: Request, envelope: Envelope, where: Origin) -> Account:
    """Give what a connection must have in common with a mail to be used for it."""
    return where, envelope.security, envelope.username, envelope.password, request.ca_pem


class Names:
    """Resolve names beside the loop: getaddrinfo can only block, so it does in a thread."""

    def __init__(self, loop: Loop, fixed: Iterable[str]) -> None:
        self._loop = loop
        self._known: dict[Origin, tuple[float, list[Address]]] = {}
        self._asked: dict[Origin, list[Then]] = {}
        self._answers: queue.SimpleQueue[tuple[Origin, list[Address]]] = queue.SimpleQueue()
        self._bell: tuple[socket.socket, socket.socket] | None = None
        self._fixed: dict[tuple[str, int], list[str]] = {}
        for entry in fixed:
            host, port, addresses = entry.split(":", 2)
            self._fixed[host, int(port)] = addresses.split(",")

    def resolve(self, where: Origin, then: Then) -> None:
        """Give a host's addresses, none if it has none, to `then`: at once or later."""
        known = self._known.get(where)
        if known and known[0] > time.monotonic():
            then(known[1])
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
                then(found)
