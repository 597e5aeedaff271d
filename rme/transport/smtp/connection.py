"""A connection to a mail server: an SMTP session on a socket. It never blocks."""

import select
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from rme.transport.addresses import Origin
from rme.transport.loop import Loop
from rme.transport.messages import (
    TIME_OUT,
    Failure,
    FailureKind,
    MailSecurity,
    Reply,
    Request,
    Stage,
)
from rme.transport.smtp import session
from rme.transport.smtp.session import InvalidReply, SendBytes, SessionEnded, SmtpReply, StartTls
from rme.transport.socket_connection import Address, SocketConnection

OnResult = Callable[["MailConnection", Reply | Failure], None]


class MailConnection(SocketConnection):
    """One connection, for one mail at a time; `on_result` receives the result of each."""

    def __init__(self, loop: Loop, origin: Origin, on_result: OnResult) -> None:
        super().__init__(loop, origin)
        self.on_result = on_result
        self.usable = True
        self.busy = False
        self._offers: session.Offers | None = None  # known once the connection is open
        self._reset_first = False
        self._replies = session.ReplyReader()

    def start(self, request: Request) -> None:
        """Start a mail. A new connection waits for `connect`; a reused one starts at once."""
        assert request.envelope is not None  # only mails reach this pool
        self.request, self.envelope = request, request.envelope
        self.busy = True
        self.stage = Stage.CONNECT
        self.began = time.monotonic()
        self._reply = SmtpReply(0, ())
        self._ends_message = self._message_written = False
        if self._offers is not None:
            self.watch(select.POLLIN)
            self.guard(self._begin_transaction)

    @property
    def alive(self) -> bool:
        return self.busy

    @property
    def deadline(self) -> float:
        """When the mail in flight will be late (monotonic)."""
        limit = self.request.timeout
        if self._offers is None:
            limit = min(limit, self.request.connect_timeout)
        if self.may_try_another:
            return min(self.began + limit, self.attempt_until)
        return self.began + limit

    def expire(self) -> None:
        """Try another address after the deadline, or end the mail."""
        waited = time.monotonic() - self.began
        if self.may_try_another and waited < min(
            self.request.timeout, self.request.connect_timeout
        ):
            self.try_another()
        else:
            self.lose(TIME_OUT)

    @property
    def reached(self) -> bool:
        """Return whether the server accepted the connection and the log-in."""
        return self._offers is not None

    def connect(self, addresses: Sequence[Address]) -> None:
        """Connect to the first of some (checked) addresses that accepts."""
        path = self.request.url.split("/", 3)[3:]
        name = path[0] if path and path[0] else _own_name()
        self._session: Any = session.open_session(self.envelope, name)
        self.connect_to(addresses)

    def fail(self, kind: FailureKind, reason: str) -> None:
        """End the mail in flight, and the connection with it."""
        self._finish(Failure(kind, reason, self._reply.status, self._reply.lines, self.stage))

    def lose(self, reason: str) -> None:
        """End the mail in flight: unknown, if all of it was written."""
        self.fail(FailureKind.UNKNOWN if self._message_written else FailureKind.NOT_SENT, reason)

    def is_quiet(self) -> bool:
        """Return whether a reused connection is open and has received nothing unexpected."""
        poll = select.poll()
        poll.register(self.descriptor(), select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        """Close the connection, with QUIT if it is idle."""
        if self._socket is not None and self.usable and not self.busy:
            with suppress(OSError):
                self._socket.send(b"QUIT\r\n")
        self.usable = False
        self.close_socket()

    # --- events -------------------------------------------------------------------------------

    def guard(self, step: Callable[[], object]) -> None:
        try:
            super().guard(step)
        except SessionEnded as ended:
            self._finish(ended.result)
        except InvalidReply:
            self.lose(session.INVALID_REPLY)

    def _finish(self, result: Reply | Failure, *, usable: bool = False) -> None:
        self.busy = False
        # an early reply, or bytes after it: replies no longer match commands
        self.usable = usable and not self.unsent and not self._replies
        if self.usable:
            self.loop.unwatch(self.descriptor())
        else:
            self.close()
        self.on_result(self, result)

    def on_connected(self) -> None:
        self._run_step(next(self._session))
        if self.envelope.security is MailSecurity.TLS:
            self._secure()

    def _secure(self) -> None:
        if self._replies:  # sent in clear before TLS, but read inside it (CVE-2011-0411)
            raise InvalidReply
        self.begin_tls(self.request.ca_pem)

    def on_tls(self) -> None:
        if self.envelope.security is MailSecurity.STARTTLS:
            self._run_step(self._session.send(None))

    def on_received(self, part: bytes) -> None:
        self._replies.add(part)
        while self.busy and not self.in_handshake:
            reply = self._replies.take()
            if reply is None:
                return
            self._reply = reply
            self._continue(reply)

    def on_flushed(self) -> None:
        self._message_written = self._message_written or self._ends_message

    def _continue(self, reply: SmtpReply) -> None:
        """Continue the session after a reply."""
        try:
            self._run_step(self._session.send(reply))
        except StopIteration as stop:
            if self._offers is None:
                self._offers = stop.value
                self._begin_transaction()
            else:
                decisive: Reply = stop.value
                self._reset_first = decisive.stage is not Stage.END
                self._finish(decisive, usable=True)

    def _begin_transaction(self) -> None:
        if self.envelope.checks_login:
            self._session = session.noop()
        else:
            self._session = session.mail_transaction(
                self.envelope, self.request.body, self._offers or {}, reset=self._reset_first
            )
        self._run_step(next(self._session))
        self.flush()

    def _run_step(self, step: SendBytes | StartTls) -> None:
        if isinstance(step, StartTls):
            self._secure()
            return
        self.stage = step.stage
        if step.data:
            self.unsent = memoryview(step.data)
            self._ends_message = step.ends_message


@lru_cache(maxsize=1)
def _own_name() -> str:
    return socket.gethostname() or "localhost"
