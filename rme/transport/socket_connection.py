"""A socket of our own on the loop: to the first of some addresses, with TLS or without."""

import errno
import select
import socket
import ssl
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import certifi

from rme.transport.addresses import Origin
from rme.transport.loop import Loop
from rme.transport.messages import FailureKind

Address = tuple[int, int, int, str, tuple[Any, ...]]
"""As of `socket.getaddrinfo`."""

LOST = "the connection was lost"
_WAIT = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_READ_BYTES = 64 * 1024
_READS = 64
"""So many records of TLS are taken before any is looked at: the answers to a window come together.
Who talks without end is broken off here, so that time-outs are looked at; poll sees the rest, as
OpenSSL takes no more of a socket than the record that it gives.
"""
ATTEMPT_SECONDS = 1.0
"""An address that does not answer is left for the next after this (RFC 8305 §5)."""


class SocketConnection(ABC):
    """One connection. It never blocks: each phase does what can be done now, and says whether
    there may be more to do. What is spoken on it is for who inherits.
    """

    def __init__(self, loop: Loop, where: Origin) -> None:
        self.loop = loop
        self.where = where
        self.unsent = memoryview(b"")
        self._socket: socket.socket | None = None
        self._addresses: list[Address] = []
        self._tried_at = 0.0
        self._phase: Callable[[], bool] = self.converse

    # --- for who inherits -----------------------------------------------------------------------

    @abstractmethod
    def opened(self) -> None:
        """Go on once the socket is connected, in clear yet."""

    @abstractmethod
    def secured(self) -> None:
        """Go on once TLS stands."""

    @abstractmethod
    def heard(self, part: bytes) -> None:
        """Take what has come."""

    @abstractmethod
    def flushed(self) -> None:
        """Take note that all is written."""

    @abstractmethod
    def fail(self, kind: FailureKind, reason: str) -> None:
        """End for good."""

    @abstractmethod
    def lose(self, reason: str) -> None:
        """End because the other side, or the way there, has."""

    @property
    def alive(self) -> bool:
        """Say whether there is anything to do on it now."""
        return self._socket is not None

    # --- connecting -----------------------------------------------------------------------------

    def connect_to(self, addresses: Sequence[Address]) -> None:
        """Connect to the first of some (checked) addresses that takes it."""
        self._addresses = list(addresses)
        self.guard(self._try_next_address)

    @property
    def may_try_another(self) -> bool:
        """Say whether it is still connecting, and there is another address to try."""
        return self._phase == self._connected and bool(self._addresses)

    @property
    def attempt_until(self) -> float:
        """When the address that is being tried has had its time (monotonic)."""
        return self._tried_at + ATTEMPT_SECONDS

    def try_another(self) -> None:
        """Leave the address that is being tried for the next."""
        self.guard(self._try_next_address)

    def begin_tls(self, ca_pem: str, *protocols: str) -> None:
        """Begin TLS; `protocols` are offered by ALPN (RFC 7301)."""
        assert self._socket is not None
        try:
            context = tls_context(ca_pem, *protocols)
        except (ssl.SSLError, ValueError):
            self.fail(FailureKind.TLS, "the certificates to trust cannot be read")
            return
        self._phase = self._shake_hands
        self.loop.unwatch(self.descriptor())
        self._socket = context.wrap_socket(
            self._socket, server_hostname=self.where.host, do_handshake_on_connect=False
        )
        self.watch(select.POLLIN | select.POLLOUT)

    @property
    def protocol(self) -> str | None:
        """Give what was agreed on by ALPN."""
        secure = isinstance(self._socket, ssl.SSLSocket)
        return self._socket.selected_alpn_protocol() if secure else None  # type: ignore[union-attr]

    @property
    def shaking_hands(self) -> bool:
        return self._phase == self._shake_hands

    def hang_up(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self.loop.unwatch(self._socket.fileno())
            self._socket.close()
            self._socket = None

    # --- from here on: what happens -------------------------------------------------------------

    def guard(self, step: Callable[[], object]) -> None:
        """Take a step; one that fails ends the connection."""
        try:
            step()
        except ssl.SSLCertVerificationError:
            self.fail(FailureKind.TLS, "the certificate is not to be trusted")
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError):
            self.lose(LOST)
        except ssl.SSLError:
            if self.shaking_hands:
                self.fail(FailureKind.TLS, "the TLS handshake failed")
            else:
                self.lose(LOST)
        except OSError:
            self.lose(LOST)

    def proceed(self) -> None:
        """Do what can be done now."""
        self.guard(self._proceed)

    def _proceed(self) -> None:
        while self.alive and self._phase():
            pass

    def descriptor(self) -> int:
        assert self._socket is not None
        return self._socket.fileno()

    def watch(self, events: int) -> None:
        self.loop.watch(self.descriptor(), events, self.proceed)

    def _try_next_address(self) -> bool:
        self._phase = self._connected
        self._tried_at = time.monotonic()
        while self._addresses:
            self.hang_up()
            if self._connect(self._addresses.pop(0)):
                self.watch(select.POLLOUT)
                return False
        self.lose("no connection")
        return False

    def _connect(self, address: Address) -> bool:
        """Say whether a connection is on its way: an address that no route leads to is none."""
        family, kind, protocol, _, where = address
        self._socket = socket.socket(family, kind, protocol)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket.connect_ex(where) in (0, errno.EINPROGRESS)

    def _connected(self) -> bool:
        assert self._socket is not None
        if self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            return self._try_next_address()
        self._phase = self.converse
        self.watch(select.POLLIN)
        self.opened()
        return True

    def _shake_hands(self) -> bool:
        assert isinstance(self._socket, ssl.SSLSocket)
        try:
            self._socket.do_handshake()
        except ssl.SSLWantReadError:
            self.watch(select.POLLIN)
            return False
        except ssl.SSLWantWriteError:
            self.watch(select.POLLOUT)
            return False
        self._phase = self.converse
        self.watch(select.POLLIN)
        self.secured()
        return True

    def converse(self) -> bool:
        """Write what is to be written, and read what has come."""
        self.flush()
        part, ended = self._read()
        if part:
            self.heard(part)
        if not self.alive or self._phase != self.converse:
            return True
        if ended:
            raise ConnectionResetError
        self.flush()
        return False

    def _read(self) -> tuple[bytes, bool]:
        """Give what has come, and whether the other side has ended."""
        assert self._socket is not None
        parts: list[bytes] = []
        for _ in range(_READS if isinstance(self._socket, ssl.SSLSocket) else 1):
            try:
                part = self._socket.recv(_READ_BYTES)
            except _WAIT:
                break
            except OSError:
                if not parts:
                    raise
                part = b""
            if not part:
                return b"".join(parts), True
            parts.append(part)
        return b"".join(parts), False

    def flush(self) -> None:
        """Write as much as the socket takes."""
        if not self.unsent:
            return
        assert self._socket is not None
        while self.unsent:
            try:
                sent = self._socket.send(self.unsent)
            except _WAIT:
                self.watch(select.POLLIN | select.POLLOUT)
                return
            self.unsent = self.unsent[sent:]
        self.watch(select.POLLIN)
        self.flushed()


@lru_cache(maxsize=64)
def tls_context(ca_pem: str, *protocols: str) -> ssl.SSLContext:
    """Make a context of TLS; reading the usual certificates takes 20 ms.

    Raises ssl.SSLError or ValueError for certificates that cannot be read.
    """
    context = ssl.create_default_context(
        cadata=ca_pem or None, cafile=None if ca_pem else certifi.where()
    )
    if protocols:
        context.set_alpn_protocols(protocols)
    return context
