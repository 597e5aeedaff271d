"""A non-blocking connection on the loop: to the first of some addresses, with TLS or without."""

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
"""An entry of `socket.getaddrinfo`."""

LOST = "the connection was lost"
_WAIT = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_READ_BYTES = 64 * 1024
_READS = 64
"""The number of TLS records that are read before any is processed: the responses to a window arrive
together. It is limited, so that a peer that never stops sending does not keep time-outs from being
checked; poll reports the rest, because OpenSSL reads no further than the record it returns.
"""
ATTEMPT_SECONDS = 1.0
"""After this the next address is tried (RFC 8305 §5)."""


class SocketConnection(ABC):
    """One connection, which never blocks; subclasses add the protocol.

    Each phase does what can be done now, and returns whether there may be more to do.
    """

    def __init__(self, loop: Loop, origin: Origin) -> None:
        self.loop = loop
        self.origin = origin
        self.unsent = memoryview(b"")
        self._socket: socket.socket | None = None
        self._addresses: list[Address] = []
        self._tried_at = 0.0
        self._phase: Callable[[], bool] = self.exchange_data

    # --- what a protocol implements ---------------------------------------------------------------

    @abstractmethod
    def on_connected(self) -> None:
        """Continue after the socket has connected, still without TLS."""

    @abstractmethod
    def on_tls(self) -> None:
        """Continue after the TLS handshake."""

    @abstractmethod
    def on_received(self, part: bytes) -> None:
        """Process bytes that were received."""

    @abstractmethod
    def on_flushed(self) -> None:
        """Note that all of `unsent` is written."""

    @abstractmethod
    def fail(self, kind: FailureKind, reason: str) -> None:
        """End the connection, with a failure of some kind."""

    @abstractmethod
    def lose(self, reason: str) -> None:
        """End the connection because the other side or the network did."""

    @property
    def alive(self) -> bool:
        """Return whether there is anything to do on the connection now."""
        return self._socket is not None

    # --- connecting -----------------------------------------------------------------------------

    def connect_to(self, addresses: Sequence[Address]) -> None:
        """Connect to the first of some (checked) addresses that accepts."""
        self._addresses = list(addresses)
        self.guard(self._try_next_address)

    @property
    def may_try_another(self) -> bool:
        """Return whether it is still connecting, and there is another address to try."""
        return self._phase == self._connected and bool(self._addresses)

    @property
    def attempt_until(self) -> float:
        """When the next address is to be tried (monotonic)."""
        return self._tried_at + ATTEMPT_SECONDS

    def try_another(self) -> None:
        """Try the next address."""
        self.guard(self._try_next_address)

    def begin_tls(self, ca_pem: str, *protocols: str) -> None:
        """Start TLS; `protocols` are offered by ALPN (RFC 7301)."""
        assert self._socket is not None
        try:
            context = tls_context(ca_pem, *protocols)
        except (ssl.SSLError, ValueError):
            self.fail(FailureKind.TLS, "the certificates to trust cannot be read")
            return
        self._phase = self._handshake
        self.loop.unwatch(self.descriptor())
        self._socket = context.wrap_socket(
            self._socket, server_hostname=self.origin.host, do_handshake_on_connect=False
        )
        self.watch(select.POLLIN | select.POLLOUT)

    @property
    def protocol(self) -> str | None:
        """The protocol agreed on by ALPN."""
        if isinstance(self._socket, ssl.SSLSocket):
            return self._socket.selected_alpn_protocol()
        return None

    @property
    def in_handshake(self) -> bool:
        return self._phase == self._handshake

    def close_socket(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self.loop.unwatch(self._socket.fileno())
            self._socket.close()
            self._socket = None

    # --- events -----------------------------------------------------------------------------------

    def guard(self, step: Callable[[], object]) -> None:
        """Run a step; an error in it ends the connection."""
        try:
            step()
        except ssl.SSLCertVerificationError:
            self.fail(FailureKind.TLS, "the certificate is not to be trusted")
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError):
            self.lose(LOST)
        except ssl.SSLError:
            if self.in_handshake:
                self.fail(FailureKind.TLS, "the TLS handshake failed")
            else:
                self.lose(LOST)
        except OSError:
            self.lose(LOST)

    def proceed(self) -> None:
        """Run phases until there is nothing to do now."""
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
            self.close_socket()
            if self._connect(self._addresses.pop(0)):
                self.watch(select.POLLOUT)
                return False
        self.lose("no connection")
        return False

    def _connect(self, address: Address) -> bool:
        """Start to connect; return False for an address without a route."""
        family, kind, protocol, _, target = address
        self._socket = socket.socket(family, kind, protocol)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket.connect_ex(target) in (0, errno.EINPROGRESS)

    def _connected(self) -> bool:
        assert self._socket is not None
        if self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            return self._try_next_address()
        self._phase = self.exchange_data
        self.watch(select.POLLIN)
        self.on_connected()
        return True

    def _handshake(self) -> bool:
        assert isinstance(self._socket, ssl.SSLSocket)
        try:
            self._socket.do_handshake()
        except ssl.SSLWantReadError:
            self.watch(select.POLLIN)
            return False
        except ssl.SSLWantWriteError:
            self.watch(select.POLLOUT)
            return False
        self._phase = self.exchange_data
        self.watch(select.POLLIN)
        self.on_tls()
        return True

    def exchange_data(self) -> bool:
        """Write what is unsent, and process what has arrived."""
        self.flush()
        part, ended = self._read()
        if part:
            self.on_received(part)
        if not self.alive or self._phase != self.exchange_data:
            return True
        if ended:
            raise ConnectionResetError
        self.flush()
        return False

    def _read(self) -> tuple[bytes, bool]:
        """Return what has arrived, and whether the other side has closed."""
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
        self.on_flushed()


@lru_cache(maxsize=64)
def tls_context(ca_pem: str, *protocols: str) -> ssl.SSLContext:
    """Build a TLS context; cached, because reading certifi's certificates takes 20 ms.

    Raises ssl.SSLError or ValueError for certificates that cannot be read.
    """
    context = ssl.create_default_context(
        cadata=ca_pem or None, cafile=None if ca_pem else certifi.where()
    )
    if protocols:
        context.set_alpn_protocols(protocols)
    return context
