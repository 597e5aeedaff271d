"""A connection to a mail server: a socket, TLS, and the dialogue on it. It never blocks."""

import errno
import select
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import certifi

from rme.core.transport import dialogue
from rme.core.transport.addresses import Origin
from rme.core.transport.dialogue import Ended, Said, Senseless, StartTls, Write
from rme.core.transport.loop import Loop
from rme.core.transport.messages import (
    TIME_OUT,
    Failure,
    FailureKind,
    MailSecurity,
    Reply,
    Request,
    Stage,
)

Address = tuple[int, int, int, str, tuple[Any, ...]]
"""As of `socket.getaddrinfo`."""
Done = Callable[["MailConnection", Reply | Failure], None]

_LOST = "the connection was lost"
_WAIT = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_READ_BYTES = 64 * 1024
_ATTEMPT_SECONDS = 1.0
"""An address that does not answer is left for the next after this (RFC 8305 §5)."""


class MailConnection:
    """One connection, for one mail at a time; `done` is called with what became of each."""

    def __init__(self, loop: Loop, where: Origin, done: Done) -> None:
        self.loop = loop
        self.where = where
        self.done = done
        self.usable = True
        self.busy = False
        self._offers: dialogue.Offers | None = None  # known once the connection is open
        self._reset_first = False
        self._socket: socket.socket | None = None
        self._addresses: list[Address] = []
        self._phase: Callable[[], bool] = self._converse
        self._unsent = memoryview(b"")
        self._heard = bytearray()

    def begin(self, request: Request) -> None:
        """Take a mail on. A new connection waits for `connect`, a kept one goes on at once."""
        assert request.envelope is not None  # it was sorted by that
        self.request, self.envelope = request, request.envelope
        self.busy = True
        self.stage = Stage.CONNECT
        self.began = time.monotonic()
        self._said = Said(0, ())
        self._ends_message = self._whole = False
        if self._offers is not None:
            self._watch(select.POLLIN)
            self._guard(self._begin_transaction)

    @property
    def deadline(self) -> float:
        """When the mail under way will have taken too long (monotonic)."""
        limit = self.request.timeout
        if self._offers is None:
            limit = min(limit, self.request.connect_timeout)
        if self._phase == self._connected and self._addresses:
            return min(self.began + limit, self._tried_at + _ATTEMPT_SECONDS)
        return self.began + limit

    def expire(self) -> None:
        """Say that the deadline has passed: there may be another address to try."""
        waited = time.monotonic() - self.began
        limit = min(self.request.timeout, self.request.connect_timeout)
        if self._phase == self._connected and self._addresses and waited < limit:
            self._guard(self._try_next_address)
        else:
            self.lose(TIME_OUT)

    @property
    def reached(self) -> bool:
        """Say whether the server was there and let us in."""
        return self._offers is not None

    def connect(self, addresses: Sequence[Address]) -> None:
        """Connect to the first of some (checked) addresses that takes it."""
        self._addresses = list(addresses)
        path = self.request.url.split("/", 3)[3:]
        name = path[0] if path and path[0] else _own_name()
        self._talk: Any = dialogue.opening(self.envelope, name)
        self._guard(self._try_next_address)

    def fail(self, kind: FailureKind, reason: str) -> None:
        """End the mail under way, and the connection with it."""
        self._finish(Failure(kind, reason, self._said.status, self._said.lines, self.stage))

    def lose(self, reason: str) -> None:
        """End the mail under way: unknown, if all of it was written."""
        self.fail(FailureKind.UNKNOWN if self._whole else FailureKind.NOT_SENT, reason)

    def is_quiet(self) -> bool:
        """Say whether a kept connection may be used: it has neither ended nor anything to say."""
        poll = select.poll()
        poll.register(self._descriptor(), select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        """Close the connection, politely if it is at rest."""
        if self._socket is None:
            return
        self.loop.unwatch(self._socket.fileno())
        if self.usable and not self.busy:
            with suppress(OSError):
                self._socket.send(b"QUIT\r\n")
        self.usable = False
        self._socket.close()
        self._socket = None

    # From here on: what happens.

    def _guard(self, step: Callable[[], object]) -> None:
        """Take a step; one that fails ends the mail."""
        try:
            step()
        except Ended as ended:
            self._finish(ended.result)
        except Senseless:
            self.lose(dialogue.SENSELESS)
        except ssl.SSLCertVerificationError:
            self.fail(FailureKind.TLS, "the certificate is not to be trusted")
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError):
            self.lose(_LOST)
        except ssl.SSLError:
            if self._phase == self._shake_hands:
                self.fail(FailureKind.TLS, "the TLS handshake failed")
            else:
                self.lose(_LOST)
        except OSError:
            self.lose(_LOST)

    def _on_event(self) -> None:
        self._guard(self._proceed)

    def _proceed(self) -> None:
        while self.busy and self._phase():
            pass

    def _finish(self, result: Reply | Failure, *, usable: bool = False) -> None:
        self.busy = False
        # a reply before its time, or words after it: the two sides are no longer in step
        self.usable = usable and not self._unsent and not self._heard
        if self.usable:
            self.loop.unwatch(self._descriptor())
        else:
            self.close()
        self.done(self, result)

    def _descriptor(self) -> int:
        assert self._socket is not None
        return self._socket.fileno()

    def _watch(self, events: int) -> None:
        self.loop.watch(self._descriptor(), events, self._on_event)

    # Each phase does what can be done now, and says whether there may be more to do.

    def _try_next_address(self) -> bool:
        self.close()
        self.usable = True
        if not self._addresses:
            self.fail(FailureKind.NOT_SENT, "no connection")
            return False
        family, kind, protocol, _, address = self._addresses.pop(0)
        self._socket = socket.socket(family, kind, protocol)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._phase = self._connected
        self._tried_at = time.monotonic()
        if self._socket.connect_ex(address) not in (0, errno.EINPROGRESS):
            return self._try_next_address()
        self._watch(select.POLLOUT)
        return False

    def _connected(self) -> bool:
        assert self._socket is not None
        if self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            return self._try_next_address()
        self._phase = self._converse
        self._watch(select.POLLIN)
        self._do(next(self._talk))
        if self.envelope.security is MailSecurity.TLS:
            self._begin_tls()
        return True

    def _begin_tls(self) -> None:
        assert self._socket is not None
        if self._heard:  # said in clear before TLS, to be believed inside it (CVE-2011-0411)
            raise Senseless
        self._phase = self._shake_hands
        context = _context(self.request.ca_pem)
        self.loop.unwatch(self._descriptor())
        self._socket = context.wrap_socket(
            self._socket, server_hostname=self.where.host, do_handshake_on_connect=False
        )

    def _shake_hands(self) -> bool:
        assert isinstance(self._socket, ssl.SSLSocket)
        try:
            self._socket.do_handshake()
        except ssl.SSLWantReadError:
            self._watch(select.POLLIN)
            return False
        except ssl.SSLWantWriteError:
            self._watch(select.POLLOUT)
            return False
        self._phase = self._converse
        self._watch(select.POLLIN)
        if self.envelope.security is MailSecurity.STARTTLS:
            self._do(self._talk.send(None))
        return True

    def _converse(self) -> bool:
        """Write what is to be written, read what has come, and answer."""
        assert self._socket is not None
        self._flush()
        try:
            part = self._socket.recv(_READ_BYTES)
        except _WAIT:
            return False
        if not part:
            raise ConnectionResetError
        self._heard += part
        while self.busy and self._phase == self._converse:
            said = dialogue.take_reply(self._heard)
            if said is None:
                self._flush()
                return isinstance(self._socket, ssl.SSLSocket)  # it may hold more than poll sees
            self._said = said
            self._answer(said)
        return True

    def _flush(self) -> None:
        if not self._unsent:
            return
        assert self._socket is not None
        while self._unsent:
            try:
                sent = self._socket.send(self._unsent)
            except _WAIT:
                self._watch(select.POLLIN | select.POLLOUT)
                return
            self._unsent = self._unsent[sent:]
        self._whole = self._whole or self._ends_message
        self._watch(select.POLLIN)

    def _answer(self, said: Said) -> None:
        """Go on with the dialogue after a reply."""
        try:
            self._do(self._talk.send(said))
        except StopIteration as stop:
            if self._offers is None:
                self._offers = stop.value
                self._begin_transaction()
            else:
                reply: Reply = stop.value
                self._reset_first = reply.stage is not Stage.END
                self._finish(reply, usable=True)

    def _begin_transaction(self) -> None:
        self._talk = dialogue.transaction(
            self.envelope, self.request.body, self._offers or {}, reset=self._reset_first
        )
        self._do(next(self._talk))
        self._flush()

    def _do(self, step: Write | StartTls) -> None:
        if isinstance(step, StartTls):
            self._begin_tls()
            return
        self.stage = step.stage
        if step.data:
            self._unsent = memoryview(step.data)
            self._ends_message = step.whole


@lru_cache(maxsize=64)
def _context(ca_pem: str) -> ssl.SSLContext:
    """Make a context of TLS; reading the usual certificates takes 20 ms. Raises Ended."""
    try:
        if ca_pem:
            return ssl.create_default_context(cadata=ca_pem)
        return ssl.create_default_context(cafile=certifi.where())
    except (ssl.SSLError, ValueError) as error:
        reason = "the certificates to trust cannot be read"
        raise Ended(Failure(FailureKind.TLS, reason, stage=Stage.CONNECT)) from error


@lru_cache(maxsize=1)
def _own_name() -> str:
    return socket.gethostname() or "localhost"
