"""A bound session: it sends requests within the window, matches responses by their sequence number,
and passes deliveries to a handler. A thread of its own reads, writes and checks time-outs.

A request whose last byte was written may have been processed; before that it was not sent.
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
"""Stores the bodies of some `deliver_sm`; returns whether they are stored. Must not raise."""

OnAnswers = Callable[[Sequence[Answer | None]], object]
"""Receives the known answers, each at its request's position. Must not raise."""

TRY_AGAIN = 0x64
"""ESME_RX_T_APPN: the SMSC is to deliver this again."""
UNKNOWN_COMMAND = 0x03
IDLE_SECONDS = 60.0
"""How long an unused transmitter session stays open."""
_UNBIND_SECONDS = 2.0
_READ_BYTES = 64 * 1024
_READS = 16
_WAIT = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class SessionLost(Exception):
    """The session has ended."""


class SmppSession:
    """One bound connection. It never reconnects: `SmppClient` opens another session."""

    def __init__(
        self,
        connection: socket.socket,
        *,
        handler: DeliveryHandler | None = None,
        first_bytes: bytes = b"",
        window: int = 10,
        timeout: float = 20.0,
        enquire: float = 30.0,
    ) -> None:
        """Take over a bound connection, with the bytes received after the bind's response."""
        self.receives = handler is not None
        self.last_used = self._received_at = time.monotonic()
        self.ended = False
        self._connection = connection
        self._handler = handler
        self._window, self._timeout, self._enquire = window, timeout, enquire
        self._queue: deque[PendingRequest] = deque()
        self._in_flight: dict[int, PendingRequest] = {}
        self._lock = threading.Lock()  # guards the queue and `ended`
        self._number = 1  # the bind used 1
        self._unread, self._unsent = bytearray(first_bytes), bytearray()
        self._written = 0
        self._may_read_more = False  # TLS may hold bytes that poll does not report
        self._enquired_at: float | None = None
        self._closing: float | None = None
        self._unbind_sent = False
        self._wakeup_sender, self._wakeup_receiver = socket.socketpair()
        self._wakeup_sender.setblocking(False)
        connection.setblocking(False)
        self._thread = threading.Thread(target=self._run, name="smpp", daemon=True)
        self._thread.start()

    def submit(
        self,
        bodies: Sequence[bytes],
        start_timeout: float | None = None,
        on_answers: OnAnswers | None = None,
    ) -> list[Answer]:
        """Send requests and return their answers in the same order.

        Each waits at most the time-out for room in the window, and as long again for its answer.
        What still waits for room when `start_timeout` seconds have passed ends as
        NOT_STARTED, and `on_answers` receives the answers so far.
        """
        count = Countdown(len(bodies))
        by = time.monotonic() + self._timeout
        pending = [PendingRequest(body, by, count.down) for body in bodies]
        with self._lock:
            if not self.ended and self._closing is None:
                self._queue.extend(pending)
            else:
                count.finished.set()
        self._wake()
        if start_timeout is not None and not count.finished.wait(start_timeout):
            self._end_unstarted(pending)
            if on_answers:
                on_answers([request.answer for request in pending])
        count.finished.wait(2 * self._timeout + 5)
        self._abandon([request for request in pending if request.answer is None])
        return [request.answer for request in pending if request.answer is not None]

    def close(self, wait: float = 0.0) -> None:
        """Unbind after the requests in flight are answered; wait some seconds for it."""
        with self._lock:
            if self._closing is None:
                self._closing = time.monotonic() + self._timeout
        self._wake()
        if wait:
            self._thread.join(wait)

    def _end_unstarted(self, pending: Sequence[PendingRequest]) -> None:
        """End requests that wait for room in the window."""
        with self._lock:
            for request in [queued for queued in pending if queued in self._queue]:
                self._queue.remove(request)
                request.settle(NOT_STARTED)

    def _abandon(self, pending: Sequence[PendingRequest]) -> None:
        """End requests that the thread did not end: it has ended, or the handler blocks it."""
        with self._lock:
            for request in pending:
                is_queued = request in self._queue
                if is_queued:
                    self._queue.remove(request)
                request.is_written = not (is_queued or self.ended)
                request.lose("the link has ended" if self.ended else TIME_OUT)

    def abandon(self) -> None:
        """Drop the parent's connection in a forked child, without writing on it."""
        self.ended = True
        with suppress(OSError):
            socket.close(self._connection.detach())
        for end in (self._wakeup_sender, self._wakeup_receiver):
            end.close()

    def _wake(self) -> None:
        with suppress(OSError):  # full: the thread wakes up anyway; closed: it has ended
            self._wakeup_sender.send(b".")

    # --- the session's thread -----------------------------------------------------------------

    def _run(self) -> None:
        reason = "the link was closed"
        try:
            while True:
                self._read()
                self._send_queued()
                self._flush()
                self._check_times()
                self._flush()
                self._wait()
        except (SessionLost, InvalidPdu) as error:
            reason = str(error)
        except OSError:
            reason = "the connection was lost"
        finally:
            self._end(reason)

    def _end(self, reason: str) -> None:
        with self._lock:
            self.ended = True
            unanswered = [*self._in_flight.values(), *self._queue]
            self._queue.clear()
            self._in_flight.clear()
        for request in unanswered:
            request.lose(reason)
        for end in (self._connection, self._wakeup_sender, self._wakeup_receiver):
            end.close()

    def _wait(self) -> None:
        """Wait for the next event or deadline."""
        poll = select.poll()
        poll.register(self._connection, select.POLLIN | (select.POLLOUT if self._unsent else 0))
        poll.register(self._wakeup_receiver, select.POLLIN)
        check = 0.0 if self._may_read_more else self._next_check()
        wait = max(0.0, min(check - time.monotonic(), 60.0))
        for descriptor, _ in poll.poll(wait * 1000 + 1):
            if descriptor == self._wakeup_receiver.fileno():
                self._wakeup_receiver.recv(4096)

    def _next_check(self) -> float:
        with self._lock:
            times = [request.by for request in (*self._queue, *self._in_flight.values())]
        times.append((self._enquired_at or self._received_at) + self._allowed_silence())
        if self._closing is not None:
            times.append(self._closing)
        if not self.receives:
            times.append(self.last_used + IDLE_SECONDS)
        return min(times)

    def _allowed_silence(self) -> float:
        return self._enquire if self._enquired_at is None else self._timeout

    def _read(self) -> None:
        """Read and process what has arrived, before time-outs are checked."""
        closed = self._receive()
        deliveries: list[Pdu] = []
        while (received := pdu.take(self._unread)) is not None:
            if received.command == CommandId.DELIVER_SM:
                deliveries.append(received)
            else:
                self._process(received)
        if deliveries:
            self._deliver(deliveries)
        if closed:
            raise SessionLost("the connection was lost")

    def _receive(self) -> bool:
        """Receive bytes; return whether the other side has closed."""
        self._may_read_more = False
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
            self._received_at, self._enquired_at = time.monotonic(), None
        self._may_read_more = True
        return False

    def _process(self, received: Pdu) -> None:
        if received.command & RESPONSE:
            self._on_response(received)
        elif received.command == CommandId.ENQUIRE_LINK:
            self._write(received.answer())
        elif received.command == CommandId.UNBIND:
            self._write(received.answer())
            self._flush()
            raise SessionLost("the other side has unbound")
        else:
            self._write(Pdu(CommandId.GENERIC_NACK, received.sequence, UNKNOWN_COMMAND))

    def _on_response(self, received: Pdu) -> None:
        if received.command == CommandId.UNBIND | RESPONSE:
            raise SessionLost("the link was closed")
        request = self._in_flight.pop(received.sequence, None)
        if request is not None:  # else its request had timed out, or was enquire_link
            request.settle(received)

    def _deliver(self, deliveries: Sequence[Pdu]) -> None:
        """Pass deliveries to the handler, and answer them once they are stored."""
        are_stored = self._handler is not None and self._handler(
            [delivery.body for delivery in deliveries]
        )
        for delivery in deliveries:
            self._write(delivery.answer(0 if are_stored else TRY_AGAIN, b"\0"))

    def _send_queued(self) -> None:
        """Write queued requests while the window has room."""
        with self._lock:
            while self._queue and len(self._in_flight) < self._window and self._closing is None:
                request = self._queue.popleft()
                self._in_flight[number := self._next_number()] = request
                self._write(Pdu(CommandId.SUBMIT_SM, number, body=request.body))
                request.end = self._written + len(self._unsent)
                self.last_used = time.monotonic()

    def _next_number(self) -> int:
        self._number = self._number % 0x7FFFFFFF + 1
        return self._number

    def _write(self, unit: Pdu) -> None:
        self._unsent += unit.encode()

    def _flush(self) -> None:
        while self._unsent:
            try:
                sent = self._connection.send(self._unsent)
            except _WAIT:
                break
            del self._unsent[:sent]
            self._written += sent
        now = time.monotonic()
        for request in self._in_flight.values():
            if not request.is_written and request.end <= self._written:
                request.is_written, request.by = True, now + self._timeout

    def _check_times(self) -> None:
        """End late requests, send enquire_link after silence, and close an unused session."""
        now = time.monotonic()
        self._end_late(now)
        if now >= (self._enquired_at or self._received_at) + self._allowed_silence():
            if self._enquired_at is not None:
                raise SessionLost("no answer to enquire_link")
            self._send_enquiry(now)
        if not self.receives and not self._in_flight and now >= self.last_used + IDLE_SECONDS:
            self.close()
        if self._closing is not None:
            self._unbind(now, self._closing)

    def _end_late(self, now: float) -> None:
        with self._lock:
            for request in [request for request in self._queue if request.by <= now]:
                self._queue.remove(request)
                request.lose("no place in the window became free in time")
        for number, request in [each for each in self._in_flight.items() if each[1].by <= now]:
            if not request.is_written:
                raise SessionLost("the other side takes nothing")
            self._in_flight.pop(number).lose(TIME_OUT)
            self._send_enquiry(now)  # the SMSC may be dead

    def _send_enquiry(self, now: float) -> None:
        if self._enquired_at is None:
            self._enquired_at = now
            self._write(Pdu(CommandId.ENQUIRE_LINK, self._next_number()))

    def _unbind(self, now: float, by: float) -> None:
        """Unbind when nothing is in flight any more, or at the deadline."""
        with self._lock:
            while self._queue:
                self._queue.popleft().lose("the link is being closed")
        if now >= by:
            raise SessionLost("the link was closed")
        if not self._in_flight and not self._unbind_sent:
            self._unbind_sent = True
            self._closing = min(by, now + _UNBIND_SECONDS)
            self._write(Pdu(CommandId.UNBIND, self._next_number()))
