"""A bound link: requests go out up to the window, answers are matched by their number, and what the
other side sends is heard. One thread of its own reads, writes and keeps the time.

The border between what was not sent and what may have been taken is the last byte of a PDU.
"""

import select
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from rme.transport.messages import NOT_STARTED, TIME_OUT
from rme.transport.smpp import pdu
from rme.transport.smpp.pdu import RESPONSE, CommandId, InvalidPdu, Pdu
from rme.transport.smpp.pending import Answer, Countdown, PendingRequest

DeliveryHandler = Callable[[Sequence[bytes]], bool]
"""Takes the bodies of some `deliver_sm`, and says whether they are safe. Must not raise."""

OnAnswers = Callable[[Sequence[Answer | None]], object]
"""Takes the answers as far as they are known, each at its request's place. Must not raise."""

TRY_AGAIN = 0x64
"""ESME_RX_T_APPN: the SMSC is to deliver this once more."""
UNKNOWN_COMMAND = 0x03
IDLE_SECONDS = 60.0
"""How long a link stays open that nobody listens to and nobody sends by."""
_GOODBYE_SECONDS = 2.0
_READ_BYTES = 64 * 1024
_READS = 16
_WAIT = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Lost(Exception):
    """The link has ended."""


class Session:
    """One connection that is bound. It never comes back: whoever needs one again opens another."""

    def __init__(
        self,
        connection: socket.socket,
        *,
        hear: DeliveryHandler | None = None,
        before: bytes = b"",
        window: int = 10,
        timeout: float = 20.0,
        enquire: float = 30.0,
    ) -> None:
        """Take over a connection that is bound; `before` is what came behind the bind's answer."""
        self.hears = hear is not None
        self.last_used = self._heard_at = time.monotonic()
        self.ended = False
        self._connection = connection
        self._hear = hear
        self._window, self._timeout, self._enquire = window, timeout, enquire
        self._queue: deque[PendingRequest] = deque()
        self._flying: dict[int, PendingRequest] = {}
        self._lock = threading.Lock()  # of the queue, and of whether there still is a thread
        self._number = 1  # the bind's
        self._unread, self._unsent = bytearray(before), bytearray()
        self._written = 0
        self._more = False  # there may be more to read than the poll sees
        self._asked_at: float | None = None
        self._closing: float | None = None
        self._goodbye = False
        self._bell, self._listener = socket.socketpair()
        self._bell.setblocking(False)
        connection.setblocking(False)
        self._thread = threading.Thread(target=self._run, name="smpp", daemon=True)
        self._thread.start()

    def submit(
        self,
        bodies: Sequence[bytes],
        start_timeout: float | None = None,
        report: OnAnswers | None = None,
    ) -> list[Answer]:
        """Send requests and give their answers in the same order.

        Each waits at most the time-out for its place in the window, and as long again for its
        answer. What still waits for its place when `start_timeout` seconds have passed ends as
        NOT_STARTED, and the answers that are there by then are given to `report`.
        """
        count = Countdown(len(bodies))
        by = time.monotonic() + self._timeout
        tickets = [PendingRequest(body, by, count.down) for body in bodies]
        with self._lock:
            if not self.ended and self._closing is None:
                self._queue.extend(tickets)
            else:
                count.nothing.set()
        self._ring()
        if start_timeout is not None and not count.nothing.wait(start_timeout):
            self._give_back(tickets)
            if report:
                report([ticket.answer for ticket in tickets])
        count.nothing.wait(2 * self._timeout + 5)
        self._abandon([ticket for ticket in tickets if ticket.answer is None])
        return [ticket.answer for ticket in tickets if ticket.answer is not None]

    def close(self, wait: float = 0.0) -> None:
        """Unbind once what is under way is answered; wait some seconds for it."""
        with self._lock:
            if self._closing is None:
                self._closing = time.monotonic() + self._timeout
        self._ring()
        if wait:
            self._thread.join(wait)

    def _give_back(self, tickets: Sequence[PendingRequest]) -> None:
        """End what waits for its place in the window."""
        with self._lock:
            for ticket in [one for one in tickets if one in self._queue]:
                self._queue.remove(ticket)
                ticket.settle(NOT_STARTED)

    def _abandon(self, tickets: Sequence[PendingRequest]) -> None:
        """End what the thread did not: it has ended before, or is held up by who hears."""
        with self._lock:
            for ticket in tickets:
                waits = ticket in self._queue
                if waits:
                    self._queue.remove(ticket)
                ticket.whole = not (waits or self.ended)
                ticket.lose("the link has ended" if self.ended else TIME_OUT)

    def abandon(self) -> None:
        """Let go of a parent's connection on this side of a fork, without a word on it."""
        self.ended = True
        with suppress(OSError):
            socket.close(self._connection.detach())
        for end in (self._bell, self._listener):
            end.close()

    def _ring(self) -> None:
        with suppress(OSError):  # it is full, and so has rung; or the link has ended
            self._bell.send(b".")

    # From here on: the thread.

    def _run(self) -> None:
        reason = "the link was closed"
        try:
            while True:
                self._read()
                self._fill()
                self._flush()
                self._keep_time()
                self._flush()
                self._rest()
        except (Lost, InvalidPdu) as error:
            reason = str(error)
        except OSError:
            reason = "the connection was lost"
        finally:
            self._end(reason)

    def _end(self, reason: str) -> None:
        with self._lock:
            self.ended = True
            left = [*self._flying.values(), *self._queue]
            self._queue.clear()
            self._flying.clear()
        for ticket in left:
            ticket.lose(reason)
        for end in (self._connection, self._bell, self._listener):
            end.close()

    def _rest(self) -> None:
        """Wait until there is something to do."""
        poll = select.poll()
        poll.register(self._connection, select.POLLIN | (select.POLLOUT if self._unsent else 0))
        poll.register(self._listener, select.POLLIN)
        look = 0.0 if self._more else self._next_look()
        wait = max(0.0, min(look - time.monotonic(), 60.0))
        for descriptor, _ in poll.poll(wait * 1000 + 1):
            if descriptor == self._listener.fileno():
                self._listener.recv(4096)

    def _next_look(self) -> float:
        with self._lock:
            times = [ticket.by for ticket in (*self._queue, *self._flying.values())]
        times.append((self._asked_at or self._heard_at) + self._allowed_silence())
        if self._closing is not None:
            times.append(self._closing)
        if not self.hears:
            times.append(self.last_used + IDLE_SECONDS)
        return min(times)

    def _allowed_silence(self) -> float:
        return self._enquire if self._asked_at is None else self._timeout

    def _read(self) -> None:
        """Read what has come, and act on it before anything else: it may be an answer."""
        over = self._receive()
        letters: list[Pdu] = []
        while (found := pdu.take(self._unread)) is not None:
            if found.command == CommandId.DELIVER_SM:
                letters.append(found)
            else:
                self._act(found)
        if letters:
            self._listen(letters)
        if over:
            raise Lost("the connection was lost")

    def _receive(self) -> bool:
        """Take what has come; say whether the other side has left."""
        self._more = False
        for _ in range(_READS):
            try:
                part = self._connection.recv(_READ_BYTES)
            except _WAIT:
                return False
            except OSError:
                return True
            if not part:
                return True
            self._unread += part
            self._heard_at, self._asked_at = time.monotonic(), None
        self._more = True
        return False

    def _act(self, found: Pdu) -> None:
        if found.command & RESPONSE:
            self._answered(found)
        elif found.command == CommandId.ENQUIRE_LINK:
            self._write(found.answer())
        elif found.command == CommandId.UNBIND:
            self._write(found.answer())
            self._flush()
            raise Lost("the other side has unbound")
        else:
            self._write(Pdu(CommandId.GENERIC_NACK, found.sequence, UNKNOWN_COMMAND))

    def _answered(self, found: Pdu) -> None:
        if found.command == CommandId.UNBIND | RESPONSE:
            raise Lost("the link was closed")
        ticket = self._flying.pop(found.sequence, None)
        if ticket is not None:  # else it is of what had its time-out, or of enquire_link
            ticket.settle(found)

    def _listen(self, letters: Sequence[Pdu]) -> None:
        """Answer what was delivered once it is safe."""
        safe = self._hear is not None and self._hear([letter.body for letter in letters])
        for letter in letters:
            self._write(letter.answer(0 if safe else TRY_AGAIN, b"\0"))

    def _fill(self) -> None:
        """Write as much of the queue as the window holds."""
        with self._lock:
            while self._queue and len(self._flying) < self._window and self._closing is None:
                ticket = self._queue.popleft()
                self._flying[number := self._next_number()] = ticket
                self._write(Pdu(CommandId.SUBMIT_SM, number, body=ticket.body))
                ticket.end = self._written + len(self._unsent)
                self.last_used = time.monotonic()

    def _next_number(self) -> int:
        self._number = self._number % 0x7FFFFFFF + 1
        return self._number

    def _write(self, what: Pdu) -> None:
        self._unsent += what.encode()

    def _flush(self) -> None:
        while self._unsent:
            try:
                sent = self._connection.send(self._unsent)
            except _WAIT:
                break
            del self._unsent[:sent]
            self._written += sent
        now = time.monotonic()
        for ticket in self._flying.values():
            if not ticket.whole and ticket.end <= self._written:
                ticket.whole, ticket.by = True, now + self._timeout

    def _keep_time(self) -> None:
        """End what waited for too long; ask a silent side whether it lives; leave."""
        now = time.monotonic()
        self._give_up(now)
        if now >= (self._asked_at or self._heard_at) + self._allowed_silence():
            if self._asked_at is not None:
                raise Lost("no answer to enquire_link")
            self._ask(now)
        if not self.hears and not self._flying and now >= self.last_used + IDLE_SECONDS:
            self.close()
        if self._closing is not None:
            self._leave(now, self._closing)

    def _give_up(self, now: float) -> None:
        with self._lock:
            for ticket in [ticket for ticket in self._queue if ticket.by <= now]:
                self._queue.remove(ticket)
                ticket.lose("no place in the window became free in time")
        for number, ticket in [each for each in self._flying.items() if each[1].by <= now]:
            if not ticket.whole:
                raise Lost("the other side takes nothing")
            self._flying.pop(number).lose(TIME_OUT)
            self._ask(now)  # it may be dead

    def _ask(self, now: float) -> None:
        if self._asked_at is None:
            self._asked_at = now
            self._write(Pdu(CommandId.ENQUIRE_LINK, self._next_number()))

    def _leave(self, now: float, by: float) -> None:
        """Say goodbye once nothing is under way, or its time is over."""
        with self._lock:
            while self._queue:
                self._queue.popleft().lose("the link is being closed")
        if now >= by:
            raise Lost("the link was closed")
        if not self._flying and not self._goodbye:
            self._goodbye = True
            self._closing = min(by, now + _GOODBYE_SECONDS)
            self._write(Pdu(CommandId.UNBIND, self._next_number()))
