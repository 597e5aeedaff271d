"""The connections to mail servers of one transport, reused between mails."""

import math
import time
from collections import deque

from rme.transport.addresses import Origin
from rme.transport.loop import Loop
from rme.transport.messages import Envelope, Failure, Reply, Request
from rme.transport.resolver import Addresses, Resolver
from rme.transport.smtp.connection import Mail, MailConnection, TakeFollowing

_IDLE_SECONDS = 45
_IDLE_CONNECTIONS = 50

ConnectionKey = tuple[Origin, object, str, str, str]
"""What a mail and a connection must have in common: host, security, user, password, CA."""


class MailConnectionPool:
    """Start mails, each on a connection of its server and user; `ended` collects their results."""

    def __init__(self, loop: Loop, resolver: Resolver) -> None:
        self.ended: list[tuple[Mail, Reply | Failure]] = []
        self._loop = loop
        self._resolver = resolver
        self._busy: dict[MailConnection, ConnectionKey] = {}
        self._idle: deque[tuple[float, ConnectionKey, MailConnection]] = deque()

    def start(
        self, request: Request, origin: Origin, take_following: TakeFollowing | None = None
    ) -> Mail:
        """Start a mail; its result goes to `ended`."""
        mail = Mail(request, take_following)
        self._start(mail, origin)
        return mail

    def _start(self, mail: Mail, origin: Origin) -> None:
        key = _key_of(mail.request, mail.envelope, origin)
        connection = self._idle_connection(key)
        if connection is not None:
            self._busy[connection] = key
            connection.start(mail)
            return
        connection = MailConnection(self._loop, origin, self._on_result, self._restart)
        self._busy[connection] = key
        connection.start(mail)
        self._resolver.resolve(origin, lambda addresses: self._connect(connection, addresses))

    def next_deadline(self) -> float:
        """Return when `expire` has to be called at the latest (monotonic)."""
        if self.ended:
            return 0.0
        return min((connection.deadline for connection in self._busy), default=math.inf)

    def expire(self, now: float) -> None:
        """End the mails that are late, and close connections that were idle for too long."""
        for connection in [connection for connection in self._busy if connection.deadline <= now]:
            connection.expire()
        while self._idle and self._idle[0][0] + _IDLE_SECONDS < now:
            self._idle.popleft()[2].close()

    def cancel(self, mail: Mail) -> None:
        """Cancel a mail, and with it the other one on its connection."""
        if mail.connection is not None:
            self._busy.pop(mail.connection, None)
            mail.connection.close()

    def close(self) -> None:
        for _, _, connection in self._idle:
            connection.close()
        self._idle.clear()

    def _idle_connection(self, key: ConnectionKey) -> MailConnection | None:
        """Return an idle connection with a key, the last used first."""
        for position in range(len(self._idle) - 1, -1, -1):
            since, used_by, connection = self._idle[position]
            if used_by != key:
                continue
            del self._idle[position]
            if since + _IDLE_SECONDS > time.monotonic() and connection.is_quiet():
                return connection
            connection.close()
            return self._idle_connection(key)
        return None

    def _connect(self, connection: MailConnection, addresses: Addresses) -> None:
        if connection not in self._busy:
            return  # the mail was late before the name was resolved
        if isinstance(addresses, Failure):
            connection.fail(addresses.kind, addresses.reason)
        else:
            connection.connect(addresses)

    def _on_result(self, connection: MailConnection, mail: Mail, result: Reply | Failure) -> None:
        self.ended.append((mail, result))
        if mail.following is not None and connection.usable:
            return  # it is on its way
        key = self._busy.pop(connection)
        if connection.usable:
            self._idle.append((time.monotonic(), key, connection))
            if len(self._idle) > _IDLE_CONNECTIONS:
                self._idle.popleft()[2].close()

    def _restart(self, connection: MailConnection, mail: Mail) -> None:
        """Start a mail on another connection; nothing follows it."""
        self._busy.pop(connection, None)
        mail.take_following = None
        self._start(mail, connection.origin)


def _key_of(request: Request, envelope: Envelope, origin: Origin) -> ConnectionKey:
    """Return what a mail and a connection must have in common."""
    return origin, envelope.security, envelope.username, envelope.password, request.ca_pem
