"""The SMPP clients of this process: one for each log-in, with a session while it is needed.

The next request after the end of a session opens a new one. After a failure to open it, requests
get that failure until the backoff is over. A client that listens keeps a session open.
"""

import os
import random
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from rme.transport.addresses import AddressPolicy
from rme.transport.checked_socket import ConnectionFailed, connect
from rme.transport.messages import TIME_OUT, Failure, FailureKind
from rme.transport.smpp import pdu
from rme.transport.smpp.pdu import Address, CommandId, InvalidPdu, Pdu
from rme.transport.smpp.pending import Answer
from rme.transport.smpp.session import DeliveryHandler, OnAnswers, SmppSession

CONNECT_SECONDS = 10.0
LISTEN_SECONDS = 20.0
"""How long a client listens after the last call of `listen`."""
_BACKOFF_LIMIT = 30.0
_CLOSED = Failure(FailureKind.NOT_SENT, "the connection was closed")
_REBIND_SECONDS = 3.0
"""How long a session may take to end before it is bound anew: some SMSCs allow only one."""


@dataclass(frozen=True, slots=True)
class Login:
    """An SMSC, and the credentials to bind with. Times are in seconds.

    `addresses` are those whose messages the SMSC is to deliver here (`address_range`).
    """

    host: str
    port: int
    system_id: str
    password: str = field(repr=False)
    system_type: str = ""
    addresses: Address = field(default_factory=lambda: Address(""))
    tls: bool = False
    ca_pem: str = field(default="", repr=False)
    window: int = 10
    timeout: float = 20.0
    enquire: float = 30.0


class SmppClient:
    """The client of one log-in. Thread-safe."""

    def __init__(self, login: Login) -> None:
        self.login = login
        self.used = time.monotonic()
        self._lock = threading.Lock()
        self._session: SmppSession | None = None
        self._handler: DeliveryHandler | None = None
        self._listens_until = 0.0
        self._failures = 0
        self._retry_at = 0.0
        self._last_failure = Failure(FailureKind.NOT_SENT, "no connection")
        self._opening: threading.Thread | None = None
        self._closed = threading.Event()

    def submit(
        self,
        bodies: Sequence[bytes],
        policy: AddressPolicy,
        start_timeout: float | None = None,
        on_answers: OnAnswers | None = None,
    ) -> list[Answer]:
        """Send the bodies of `submit_sm`; return their answers. See `SmppSession.submit`."""
        if not bodies:
            return []
        session = self._usable_session(policy)
        if isinstance(session, SmppSession):
            return session.submit(bodies, start_timeout, on_answers)
        return [session] * len(bodies)

    def bind(self, policy: AddressPolicy) -> Failure | None:
        """Open a session if there is none; return why there is none then."""
        session = self._usable_session(policy)
        return None if isinstance(session, SmppSession) else session

    def listen(
        self, handler: DeliveryHandler, policy: AddressPolicy, seconds: float = LISTEN_SECONDS
    ) -> None:
        """Keep a receiving session for some seconds; to be called again before they are over."""
        self._handler, self._listens_until = handler, time.monotonic() + seconds
        session, opening = self._session, self._opening
        if session and not session.ended and session.receives:
            return
        if opening is None or not opening.is_alive():
            self._opening = threading.Thread(
                target=self._usable_session, args=(policy,), daemon=True
            )
            self._opening.start()

    def stop_listening(self) -> None:
        """Close the receiving session, also one that is just being bound."""
        self._listens_until = 0.0
        if self._session and self._session.receives:
            self._session.close()

    def is_unused(self) -> bool:
        """Return whether the client is unused; close a session that no longer needs to listen."""
        session = self._session
        if session and not session.ended:
            if session.receives and not self._is_listening():
                session.close()
            return False
        return not self._is_listening() and time.monotonic() > self.used + LISTEN_SECONDS

    def close(self, wait: float = 0.0) -> None:
        """Unbind for good, even a session that is just being bound; wait some seconds for it."""
        until = time.monotonic() + wait
        self._listens_until = 0.0
        self._closed.set()
        if wait and self._opening:
            self._opening.join(wait)
        if self._session:
            self._session.close(max(until - time.monotonic(), 0.001) if wait else 0.0)

    def abandon(self) -> None:
        """Drop the parent's session in a forked child."""
        if self._session and not self._session.ended:
            self._session.abandon()
        self._session = None

    def _is_listening(self) -> bool:
        return time.monotonic() < self._listens_until

    def _usable_session(self, policy: AddressPolicy) -> SmppSession | Failure:
        """Return the session, opened if necessary, or the failure to open it."""
        with self._lock:
            session = self._session
            if session and not session.ended:
                if session.receives or not self._is_listening():
                    return session
                session.close(_REBIND_SECONDS)  # it was bound without receiving
            if self._closed.is_set():
                return _CLOSED
            if time.monotonic() < self._retry_at:
                return self._last_failure
            try:
                self._session = self._open(policy)
            except ConnectionFailed as error:
                self._record_failure(error.failure)
                return self._last_failure
            self._failures, self._retry_at = 0, 0.0
            unwanted = self._session.receives and not self._is_listening()
            if unwanted or self._closed.is_set():  # closed while it was being opened
                self._session.close()
            return self._session

    def _record_failure(self, failure: Failure) -> None:
        self._last_failure = failure
        wait = min(_BACKOFF_LIMIT, 2.0**self._failures) * random.uniform(0.5, 1.0)
        self._failures = min(self._failures + 1, 10)
        self._retry_at = time.monotonic() + wait

    def _open(self, policy: AddressPolicy) -> SmppSession:
        login = self.login
        timeout = min(CONNECT_SECONDS, login.timeout)
        connection = connect(
            policy, login.host, login.port, tls=login.tls, ca_pem=login.ca_pem, timeout=timeout
        )
        handler = self._handler if self._is_listening() else None
        try:
            first_bytes = _bind(
                connection, login, time.monotonic() + timeout, receives=handler is not None
            )
            return SmppSession(
                connection,
                handler=handler,
                first_bytes=first_bytes,
                window=login.window,
                timeout=login.timeout,
                enquire=login.enquire,
            )
        except BaseException:
            connection.close()
            raise


def _bind(connection: socket.socket, login: Login, until: float, *, receives: bool) -> bytes:
    """Bind, and return the bytes received after the response. Raises ConnectionFailed.

    A client that does not listen binds as a transmitter, so that it gets no deliveries.
    """
    command = CommandId.BIND_TRANSCEIVER if receives else CommandId.BIND_TRANSMITTER
    body = pdu.bind(login.system_id, login.password, login.system_type, login.addresses)
    try:
        connection.settimeout(max(until - time.monotonic(), 0.001))
        connection.sendall(Pdu(command, 1, body=body).encode())
        answer, following_bytes = _read_first(connection, until)
    except InvalidPdu as error:
        raise ConnectionFailed(FailureKind.NOT_SENT, str(error)) from error
    except OSError as error:
        timed_out = isinstance(error, TimeoutError)
        reason = TIME_OUT if timed_out else "the connection was lost in the bind"
        raise ConnectionFailed(FailureKind.NOT_SENT, reason) from error
    if answer.status or answer.command != command | pdu.RESPONSE:
        refused = ConnectionFailed(FailureKind.LOGIN, "the bind was refused")
        refused.failure = Failure(FailureKind.LOGIN, "the bind was refused", answer.status)
        raise refused
    return following_bytes


def _read_first(connection: socket.socket, until: float) -> tuple[Pdu, bytes]:
    """Return the first PDU, and the bytes after it."""
    buffer = bytearray()
    while (first := pdu.take(buffer)) is None:
        connection.settimeout(max(until - time.monotonic(), 0.001))
        part = connection.recv(4096)
        if not part:
            raise ConnectionResetError
        buffer += part
    return first, bytes(buffer)


# --- the clients of this process ----------------------------------------------------------------

_clients: dict[Login, SmppClient] = {}
_lock = threading.Lock()


def client_for(login: Login) -> SmppClient:
    """Return the client of a log-in; remove those that are unused."""
    with _lock:
        for unused in [each for each in _clients.values() if each.is_unused()]:
            del _clients[unused.login]
        client = _clients.get(login)
        if client is None:
            client = _clients[login] = SmppClient(login)
        client.used = time.monotonic()
        return client


def close_all(wait: float = 0.0) -> None:
    """Unbind all sessions of this process; wait some seconds for each."""
    with _lock:
        clients = list(_clients.values())
        _clients.clear()
    for client in clients:
        client.close()
    until = time.monotonic() + wait
    for client in clients:
        client.close(max(until - time.monotonic(), 0.001) if wait else 0.0)


def _in_child() -> None:
    """Drop the parent's clients: their threads do not exist in the child."""
    global _clients, _lock  # a thread of the parent may have held the lock
    former, _clients, _lock = _clients, {}, threading.Lock()
    for client in former.values():
        with suppress(OSError):
            client.abandon()


os.register_at_fork(after_in_child=_in_child)
