"""A connection to a mail server: an SMTP session on a socket, and the mails on it."""

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
from rme.transport.socket_connection import LOST, Address, SocketConnection

QUICK_SECONDS = 0.25
"""A server that answers a mail in this time gets the commands of the next one with it."""
_SERVICE_CLOSING = 421


class Mail:
    """A mail in flight."""

    __slots__ = ("connection", "envelope", "following", "request", "take_following")

    def __init__(self, request: Request, take_following: "TakeFollowing | None" = None) -> None:
        assert request.envelope is not None  # only mails reach this pool
        self.request, self.envelope = request, request.envelope
        self.take_following = take_following
        self.connection: MailConnection | None = None
        self.following: Mail | None = None
        """The mail that was announced with this one, and takes its place in the host's limit."""

    @property
    def reached(self) -> bool:
        """Return whether the server accepted the connection and the log-in."""
        return self.connection is not None and self.connection.reached


TakeFollowing = Callable[[Callable[[Request], bool]], Mail | None]
"""Returns the mail that waits next, if there is one for which the condition holds."""

OnResult = Callable[["MailConnection", Mail, Reply | Failure], None]
Restart = Callable[["MailConnection", Mail], None]


class MailConnection(SocketConnection):
    """One connection, for one mail after the other; `on_result` receives the result of each.

    While mails wait and the server is quick, the commands of the next leave with the message before
    it (`Mail.following`). If the connection ends before the server has answered these, nothing of
    that mail was sent: `restart` sends it on another connection.
    """

    def __init__(self, loop: Loop, origin: Origin, on_result: OnResult, restart: Restart) -> None:
        super().__init__(loop, origin)
        self.on_result, self.restart = on_result, restart
        self.usable = True
        self.busy = False
        self._offers: session.Offers | None = None  # known once the connection is open
        self._reset_first = self._is_quick = False
        self._replies = session.ReplyReader()

    def start(self, mail: Mail) -> None:
        """Start a mail. A new connection waits for `connect`; a reused one starts at once."""
        self._set_mail(mail)
        if self._offers is not None:
            self.watch(select.POLLIN)
            self.guard(self._begin_transaction)

    def _set_mail(self, mail: Mail, *, announced: bool = False) -> None:
        mail.connection, self._announced = self, announced
        self.mail, self.request, self.envelope = mail, mail.request, mail.envelope
        self.busy = True
        self.stage = Stage.CONNECT
        self.began = time.monotonic()
        self._reply = SmtpReply(0, ())
        self._ends_message = False
        self._after_message = 0  # bytes of `unsent` that follow the message

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

    @property
    def _message_written(self) -> bool:
        """Return whether the message has left up to its last byte: the server may have taken it."""
        return self._ends_message and len(self.unsent) <= self._after_message

    def fail(self, kind: FailureKind, reason: str) -> None:
        """End the mail in flight, and the connection with it."""
        self._finish(Failure(kind, reason, self._reply.status, self._reply.lines, self.stage))

    def lose(self, reason: str) -> None:
        """End the mail in flight: unknown, if the whole mail was written."""
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
        mail, following = self.mail, self.mail.following
        mail.take_following = None  # a connection keeps its last mail, and this all mails of a call
        self.busy = False
        if self._announced and self._was_not_begun(result):
            self.close()
            self.restart(self, mail)
            return
        # an early reply, or bytes after it: replies no longer match commands
        extra = self._after_message or self.unsent or self._replies
        in_step = self._message_written if following else not extra
        self.usable = usable and in_step
        self._is_quick = time.monotonic() < self.began + QUICK_SECONDS
        if following and self.usable:
            self.on_result(self, mail, result)
            self._set_mail(following, announced=True)
            self._begin_transaction()
            return
        if self.usable:
            self.loop.unwatch(self.descriptor())
        else:
            self.close()
        self.on_result(self, mail, result)
        if following:
            self.restart(self, following)

    def _was_not_begun(self, result: Reply | Failure) -> bool:
        """Return whether the server closes, and has not taken up the mail that was announced."""
        if isinstance(result, Reply):
            return result.status == _SERVICE_CLOSING and result.stage is Stage.MAIL
        return not self._reply.status and result.reason == LOST

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
        """Do nothing: `_message_written` looks at what is unsent."""

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
                self.envelope,
                self.request.body,
                self._offers or {},
                reset=self._reset_first,
                announced=self._announced,
            )
        self._run_step(next(self._session))
        self.flush()

    def _run_step(self, step: SendBytes | StartTls) -> None:
        if isinstance(step, StartTls):
            self._secure()
            return
        self.stage = step.stage
        if not step.data:
            return
        if self.unsent:  # a reply to what was not written
            raise InvalidReply
        following = self._announce_following() if step.ends_message else b""
        self._ends_message, self._after_message = step.ends_message, len(following)
        self.unsent = memoryview(step.data + following)

    def _announce_following(self) -> bytes:
        """Take the mail that waits next, and return its commands; none if it has to wait."""
        offers, take = self._offers or {}, self.mail.take_following
        if take is None or not self._is_quick or "PIPELINING" not in offers:
            return b""
        following = self.mail.following = take(self._fits)
        if following is None:
            return b""
        return session.announcement(following.envelope, following.request.body, offers)

    def _fits(self, request: Request) -> bool:
        """Return whether a mail may leave on this connection."""
        mine, theirs = self.envelope, request.envelope
        return (
            theirs is not None
            and not theirs.checks_login
            and request.url == self.request.url
            and request.ca_pem == self.request.ca_pem
            and (theirs.security, theirs.username, theirs.password)
            == (mine.security, mine.username, mine.password)
        )


@lru_cache(maxsize=1)
def _own_name() -> str:
    return socket.gethostname() or "localhost"
