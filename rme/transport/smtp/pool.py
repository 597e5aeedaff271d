"""All connections to mail servers of one transport: resolved, checked, kept and timed."""

import math
import time
from collections import deque

from rme.transport.addresses import Origin
from rme.transport.loop import Loop
from rme.transport.messages import Envelope, Failure, Reply, Request
from rme.transport.resolver import Found, Resolver
from rme.transport.smtp.connection import MailConnection

_IDLE_SECONDS = 45
_IDLE_CONNECTIONS = 50

Account = tuple[Origin, object, str, str, str]


class MailConnectionPool:
    """Take mails on, each on a connection of its account's; `ended` says what became of them."""

    def __init__(self, loop: Loop, names: Resolver) -> None:
        self.ended: list[tuple[MailConnection, Reply | Failure]] = []
        self._loop = loop
        self._names = names
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

    def _connect(self, connection: MailConnection, found: Found) -> None:
        if connection not in self._busy:
            return  # its time was over before the name was resolved
        if isinstance(found, Failure):
            connection.fail(found.kind, found.reason)
        else:
            connection.connect(found)

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
