"""The lines of this process: one for each log-in, with a link when there is one.

A link that ended is opened again by whoever needs it next, who after failures is told of the last
one until its time is over. A line that is listened to needs one always.
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
from rme.transport.smpp.session import DeliveryHandler, OnAnswers, Session

CONNECT_SECONDS = 10.0
LISTENED_SECONDS = 20.0
"""How long a line stays listened to after the last `listen`."""
_BACKOFF_LIMIT = 30.0
_CLOSED = Failure(FailureKind.NOT_SENT, "the line was closed")
_CHANGE_SECONDS = 3.0
"""How long a link that is to be opened in another way may take to end: some SMSCs allow but one."""


@dataclass(frozen=True, slots=True)
class Login:
    """Where an SMSC is and as whom to bind. Times are in seconds.

    `addresses` are those that are to be delivered to us (`address_range`).
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
    """One log-in's way to its SMSC. May be used by several threads."""

    def __init__(self, login: Login) -> None:
        self.login = login
        self.used = time.monotonic()
        self._lock = threading.Lock()
        self._link: Session | None = None
        self._hear: DeliveryHandler | None = None
        self._heard_until = 0.0
        self._failures = 0
        self._next_try = 0.0
        self._last = Failure(FailureKind.NOT_SENT, "no connection")
        self._opening: threading.Thread | None = None
        self._over = threading.Event()

    def submit(
        self,
        bodies: Sequence[bytes],
        policy: AddressPolicy,
        start_timeout: float | None = None,
        report: OnAnswers | None = None,
    ) -> list[Answer]:
        """Send the bodies of `submit_sm`, and give what came of each; see `Link.submit`."""
        if not bodies:
            return []
        link = self._ready(policy)
        if isinstance(link, Session):
            return link.submit(bodies, start_timeout, report)
        return [link] * len(bodies)

    def listen(
        self, hear: DeliveryHandler, policy: AddressPolicy, seconds: float = LISTENED_SECONDS
    ) -> None:
        """Keep a link for some seconds, beside; to be called again before they are over."""
        self._hear, self._heard_until = hear, time.monotonic() + seconds
        link, opening = self._link, self._opening
        if link and not link.ended and link.hears:
            return
        if opening is None or not opening.is_alive():
            self._opening = threading.Thread(target=self._ready, args=(policy,), daemon=True)
            self._opening.start()

    def is_over(self) -> bool:
        """Say whether nobody needs the line; close a link that was listened to and is no longer."""
        link = self._link
        if link and not link.ended:
            if link.hears and not self._is_heard():
                link.close()
            return False
        return not self._is_heard() and time.monotonic() > self.used + LISTENED_SECONDS

    def close(self, wait: float = 0.0) -> None:
        """Unbind for good; wait some seconds for it. A link that is just being bound is unbound."""
        until = time.monotonic() + wait
        self._heard_until = 0.0
        self._over.set()
        if wait and self._opening:
            self._opening.join(wait)
        if self._link:
            self._link.close(max(until - time.monotonic(), 0.001) if wait else 0.0)

    def abandon(self) -> None:
        """Forget a link that is the parent's."""
        if self._link and not self._link.ended:
            self._link.abandon()
        self._link = None

    def _is_heard(self) -> bool:
        return time.monotonic() < self._heard_until

    def _ready(self, policy: AddressPolicy) -> Session | Failure:
        """Give the link, opened if need be; or why there is none."""
        with self._lock:
            link = self._link
            if link and not link.ended:
                if link.hears or not self._is_heard():
                    return link
                link.close(_CHANGE_SECONDS)  # it was opened before anybody listened
            if self._over.is_set():
                return _CLOSED
            if time.monotonic() < self._next_try:
                return self._last
            try:
                self._link = self._open(policy)
            except ConnectionFailed as error:
                self._note(error.failure)
                return self._last
            self._failures, self._next_try = 0, 0.0
            if self._over.is_set():  # since it was begun
                self._link.close()
            return self._link

    def _note(self, failure: Failure) -> None:
        self._last = failure
        wait = min(_BACKOFF_LIMIT, 2.0**self._failures) * random.uniform(0.5, 1.0)
        self._failures = min(self._failures + 1, 10)
        self._next_try = time.monotonic() + wait

    def _open(self, policy: AddressPolicy) -> Session:
        login = self.login
        timeout = min(CONNECT_SECONDS, login.timeout)
        connection = connect(
            policy,
            login.host,
            login.port,
            tls=login.tls,
            ca_pem=login.ca_pem,
            timeout=timeout,
        )
        hear = self._hear if self._is_heard() else None
        try:
            rest = _bind(connection, login, time.monotonic() + timeout, receives=hear is not None)
            return Session(
                connection,
                hear=hear,
                before=rest,
                window=login.window,
                timeout=login.timeout,
                enquire=login.enquire,
            )
        except BaseException:
            connection.close()
            raise


def _bind(connection: socket.socket, login: Login, until: float, *, receives: bool) -> bytes:
    """Bind, and give what came behind the answer. Raises NoConnection.

    Who does not listen binds as a transmitter: it must not be given what others wait for.
    """
    command = CommandId.BIND_TRANSCEIVER if receives else CommandId.BIND_TRANSMITTER
    body = pdu.bind(login.system_id, login.password, login.system_type, login.addresses)
    try:
        connection.settimeout(max(until - time.monotonic(), 0.001))
        connection.sendall(Pdu(command, 1, body=body).encode())
        answer, rest = _first(connection, until)
    except InvalidPdu as error:
        raise ConnectionFailed(FailureKind.NOT_SENT, str(error)) from error
    except OSError as error:
        late = isinstance(error, TimeoutError)
        reason = TIME_OUT if late else "the connection was lost in the bind"
        raise ConnectionFailed(FailureKind.NOT_SENT, reason) from error
    if answer.status or answer.command != command | pdu.RESPONSE:
        refused = ConnectionFailed(FailureKind.LOGIN, "the bind was refused")
        refused.failure = Failure(FailureKind.LOGIN, "the bind was refused", answer.status)
        raise refused
    return rest


def _first(connection: socket.socket, until: float) -> tuple[Pdu, bytes]:
    """Read the first PDU, and what came with it."""
    buffer = bytearray()
    while (found := pdu.take(buffer)) is None:
        connection.settimeout(max(until - time.monotonic(), 0.001))
        part = connection.recv(4096)
        if not part:
            raise ConnectionResetError
        buffer += part
    return found, bytes(buffer)


# --- the lines of this process ------------------------------------------------------------------

_lines: dict[Login, SmppClient] = {}
_lock = threading.Lock()


def client_for(login: Login) -> SmppClient:
    """Give the line of a log-in, and let go of those that nobody listens to any more."""
    with _lock:
        for other in [each for each in _lines.values() if each.is_over()]:
            del _lines[other.login]
        found = _lines.get(login)
        if found is None:
            found = _lines[login] = SmppClient(login)
        found.used = time.monotonic()
        return found


def close_all(wait: float = 0.0) -> None:
    """Unbind all links of this process; wait some seconds for each."""
    with _lock:
        known = list(_lines.values())
        _lines.clear()
    for each in known:
        each.close()
    until = time.monotonic() + wait
    for each in known:
        each.close(max(until - time.monotonic(), 0.001) if wait else 0.0)


def _in_child() -> None:
    """Forget what is the parent's: the threads are not here, and the sockets are not ours."""
    global _lines, _lock  # the lock may have been held by a thread of the parent
    former, _lines, _lock = _lines, {}, threading.Lock()
    for each in former.values():
        with suppress(OSError):
            each.abandon()


os.register_at_fork(after_in_child=_in_child)
