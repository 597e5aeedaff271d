"""A connection to a mail server: the dialogue on a wire. It never blocks."""

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

Done = Callable[["MailConnection", Reply | Failure], None]


class MailConnection(SocketConnection):
    """One connection, for one mail at a time; `done` is called with what became of each."""

    def __init__(self, loop: Loop, where: Origin, done: Done) -> None:
        super().__init__(loop, where)
        self.done = done
        self.usable = True
        self.busy = False
        self._offers: session.Offers | None = None  # known once the connection is open
        self._reset_first = False
        self._heard = session.ReplyReader()

    def begin(self, request: Request) -> None:
        """Take a mail on. A new connection waits for `connect`, a kept one goes on at once."""
        assert request.envelope is not None  # it was sorted by that
        self.request, self.envelope = request, request.envelope
        self.busy = True
        self.stage = Stage.CONNECT
        self.began = time.monotonic()
        self._said = SmtpReply(0, ())
        self._ends_message = self._whole = False
        if self._offers is not None:
            self.watch(select.POLLIN)
            self.guard(self._begin_transaction)

    @property
    def alive(self) -> bool:
        return self.busy

    @property
    def deadline(self) -> float:
        """When the mail under way will have taken too long (monotonic)."""
        limit = self.request.timeout
        if self._offers is None:
            limit = min(limit, self.request.connect_timeout)
        if self.may_try_another:
            return min(self.began + limit, self.attempt_until)
        return self.began + limit

    def expire(self) -> None:
        """Say that the deadline has passed: there may be another address to try."""
        waited = time.monotonic() - self.began
        if self.may_try_another and waited < min(
            self.request.timeout, self.request.connect_timeout
        ):
            self.try_another()
        else:
            self.lose(TIME_OUT)

    @property
    def reached(self) -> bool:
        """Say whether the server was there and let us in."""
        return self._offers is not None

    def connect(self, addresses: Sequence[Address]) -> None:
        """Connect to the first of some (checked) addresses that takes it."""
        path = self.request.url.split("/", 3)[3:]
        name = path[0] if path and path[0] else _own_name()
        self._talk: Any = session.open_session(self.envelope, name)
        self.connect_to(addresses)

    def fail(self, kind: FailureKind, reason: str) -> None:
        """End the mail under way, and the connection with it."""
        self._finish(Failure(kind, reason, self._said.status, self._said.lines, self.stage))

    def lose(self, reason: str) -> None:
        """End the mail under way: unknown, if all of it was written."""
        self.fail(FailureKind.UNKNOWN if self._whole else FailureKind.NOT_SENT, reason)

    def is_quiet(self) -> bool:
        """Say whether a kept connection may be used: it has neither ended nor anything to say."""
        poll = select.poll()
        poll.register(self.descriptor(), select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        """Close the connection, politely if it is at rest."""
        if self._socket is not None and self.usable and not self.busy:
            with suppress(OSError):
                self._socket.send(b"QUIT\r\n")
        self.usable = False
        self.hang_up()

    # From here on: what happens.

    def guard(self, step: Callable[[], object]) -> None:
        try:
            super().guard(step)
        except SessionEnded as ended:
            self._finish(ended.result)
        except InvalidReply:
            self.lose(session.INVALID_REPLY)

    def _finish(self, result: Reply | Failure, *, usable: bool = False) -> None:
        self.busy = False
        # a reply before its time, or words after it: the two sides are no longer in step
        self.usable = usable and not self.unsent and not self._heard
        if self.usable:
            self.loop.unwatch(self.descriptor())
        else:
            self.close()
        self.done(self, result)

    def opened(self) -> None:
        self._do(next(self._talk))
        if self.envelope.security is MailSecurity.TLS:
            self._secure()

    def _secure(self) -> None:
        if self._heard:  # said in clear before TLS, to be believed inside it (CVE-2011-0411)
            raise InvalidReply
        self.begin_tls(self.request.ca_pem)

    def secured(self) -> None:
        if self.envelope.security is MailSecurity.STARTTLS:
            self._do(self._talk.send(None))

    def heard(self, part: bytes) -> None:
        self._heard.add(part)
        while self.busy and not self.shaking_hands:
            said = self._heard.take()
            if said is None:
                return
            self._said = said
            self._answer(said)

    def flushed(self) -> None:
        self._whole = self._whole or self._ends_message

    def _answer(self, said: SmtpReply) -> None:
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
        self._talk = session.mail_transaction(
            self.envelope, self.request.body, self._offers or {}, reset=self._reset_first
        )
        self._do(next(self._talk))
        self.flush()

    def _do(self, step: SendBytes | StartTls) -> None:
        if isinstance(step, StartTls):
            self._secure()
            return
        self.stage = step.stage
        if step.data:
            self.unsent = memoryview(step.data)
            self._ends_message = step.whole


@lru_cache(maxsize=1)
def _own_name() -> str:
    return socket.gethostname() or "localhost"
