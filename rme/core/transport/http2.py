"""A connection over HTTP/2 (RFC 9113): many requests at once on one wire.

Unlike libcurl it says of each request just what HTTP/2 says: refused (REFUSED_STREAM, or above the
last id of a GOAWAY) was certainly not taken, all else without an answer may have been. Nothing is
ever sent a second time by itself, and nothing before the server's limits are known. A window of
requests leaves in one write.
"""

import select
import time
from collections.abc import Callable

from rme.core.transport import fields, frames
from rme.core.transport.addresses import Origin
from rme.core.transport.frames import Broken, Frame
from rme.core.transport.loop import Loop
from rme.core.transport.messages import Failure, FailureKind, Reply
from rme.core.transport.stream import Stream, head
from rme.core.transport.wire import LOST, Wire

NO_HTTP2 = "the host does not speak HTTP/2"
_LONGEST_HEADERS = 64 * 1024
_MOST_OWED = 10_000
"""Who asks so often, and reads none of our answers, wants our memory (CVE-2019-9512, -9515)."""
_REFUSED = Failure(FailureKind.NOT_SENT, "the stream was refused")
_RESET = "the stream was reset"
_PROTOCOL_ERROR = 0x1


Ended = Callable[[Stream, Reply | Failure], None]


class Http2Connection(Wire):
    """One connection; `ended` is told what became of each stream, `gone` that it is of no use."""

    def __init__(
        self,
        loop: Loop,
        where: Origin,
        ca_pem: str,
        ended: Ended,
        gone: "Callable[[Http2Connection, Failure], None]",
    ) -> None:
        super().__init__(loop, where)
        self.streams: dict[int, Stream] = {}
        self.ready = False
        """The server's limits are known."""
        self.leaving = False
        """It takes no more requests."""
        self.was_lost = False
        self.used_at = self.heard_at = time.monotonic()
        self._ca_pem = ca_pem
        self._ended = ended
        self._gone = gone
        self._next_id = 1
        self._limit = frames.GREATEST
        self._frame_size = frames.SIZE
        self._window = self._first_window = frames.WINDOW
        self._consumed = 0
        self._owed = 0
        """What we were asked for and have not written yet: acknowledgements."""
        self._out = bytearray()
        self._in = bytearray()
        self._only: int | None = frames.SETTINGS
        """The kind of frame that has to come next (§3.4, §6.10)."""
        self._begun: tuple[Frame, bytearray] | None = None
        """A block of header fields whose end is to come."""

    # --- for who has requests -------------------------------------------------------------------

    @property
    def used(self) -> bool:
        """Say whether a request was ever written on it."""
        return self._next_id > 1

    @property
    def has_room(self) -> bool:
        return self.ready and not self.leaving and len(self.streams) < self._limit

    def send(self, stream: Stream) -> None:
        """Write a request. It leaves with the next `flush`."""
        request = stream.request
        stream.id = self._next_id
        self._next_id += 2
        stream.connection, stream.window = self, self._first_window
        self.streams[stream.id] = stream
        self.used_at = time.monotonic()
        self._write_head(stream, head(request))
        self._write_body(stream)
        if stream.id > frames.GREATEST // 2:
            self.leaving = True  # the numbers come to an end

    def cancel(self, stream: Stream) -> None:
        """Let go of a request. Its answer, if one comes, is dropped."""
        if self.streams.pop(stream.id, None):
            self._out += frames.number(frames.RST_STREAM, stream.id, frames.CANCEL)
            self._leave_if_done()

    def flush(self) -> None:
        while self.alive and (self._out or self.unsent):
            if not self.unsent:
                self.unsent = memoryview(bytes(self._out))
                self._out.clear()
            try:
                super().flush()
            except OSError:
                if not self.streams:
                    raise
                self._fall_silent()
            if self.unsent:
                return

    def _fall_silent(self) -> None:
        """Write no more: the other side has left. What it said before may still be read."""
        self.leaving = True
        self.unsent = memoryview(b"")
        self._out.clear()
        self.watch(select.POLLIN)

    def flushed(self) -> None:
        self._owed = 0

    def close(self) -> None:
        self.leaving = True
        self.hang_up()

    # --- the wire -------------------------------------------------------------------------------

    def opened(self) -> None:
        self.begin_tls(self._ca_pem, "h2", "http/1.1")

    def secured(self) -> None:
        if self.protocol != "h2":
            self.fail(FailureKind.NOT_SENT, NO_HTTP2)
            return
        own = ((frames.HEADER_TABLE_SIZE, 0), (frames.ENABLE_PUSH, 0))
        self._out += frames.PREFACE + frames.settings(*own)

    def heard(self, part: bytes) -> None:
        self.heard_at = time.monotonic()
        self._in += part
        try:
            for one in frames.take(self._in):
                self._hear(one)
        except (Broken, fields.Unreadable):
            self._out += frames.frame(frames.GOAWAY, 0, 0, bytes(7) + bytes([_PROTOCOL_ERROR]))
            self.flush()
            self.lose("broken HTTP/2")

    def fail(self, kind: FailureKind, reason: str) -> None:
        self.close()
        streams, self.streams = list(self.streams.values()), {}
        for stream in streams:
            self._ended(stream, stream.failure(FailureKind.UNKNOWN, reason))
        self._gone(self, Failure(kind, reason))

    def lose(self, reason: str) -> None:
        self.was_lost = True
        self.fail(FailureKind.NOT_SENT, reason)

    # --- writing --------------------------------------------------------------------------------

    def _write_head(self, stream: Stream, block: bytes) -> None:
        """Write a block of fields, in parts where it is longer than a frame may be."""
        end = 0 if stream.request.body else frames.END_STREAM
        size = self._frame_size
        if len(block) <= size:
            flags = frames.END_HEADERS | end
            self._out += frames.frame(frames.HEADERS, flags, stream.id, block)
            return
        kind = frames.HEADERS
        for start in range(0, len(block), size):
            last = frames.END_HEADERS if start + size >= len(block) else 0
            part = block[start : start + size]
            self._out += frames.frame(kind, last | end, stream.id, part)
            kind, end = frames.CONTINUATION, 0

    def _write_body(self, stream: Stream) -> None:
        """Write as much of a body as the server takes now (§5.2)."""
        while stream.unsent:
            room = min(self._window, stream.window, self._frame_size)
            if room <= 0:
                return
            part, stream.unsent = stream.unsent[:room], stream.unsent[room:]
            self._window -= len(part)
            stream.window -= len(part)
            end = 0 if stream.unsent else frames.END_STREAM
            self._out += frames.frame(frames.DATA, end, stream.id, part)

    def _write_bodies(self) -> None:
        for stream in self.streams.values():
            self._write_body(stream)

    # --- hearing --------------------------------------------------------------------------------

    def _hear(self, one: Frame) -> None:
        if self._only is not None and one.kind != self._only:
            raise Broken
        match one.kind:
            case frames.HEADERS:
                self._hear_fields(one, bytearray(frames.unpadded(one)))
            case frames.CONTINUATION:
                if not self._begun or self._begun[0].stream != one.stream:
                    raise Broken
                first, block = self._begun
                end = one.flags & frames.END_HEADERS
                block += one.payload
                self._hear_fields(first._replace(flags=first.flags | end), block)
            case frames.DATA:
                self._hear_data(one)
            case frames.RST_STREAM:
                self._hear_reset(one)
            case frames.SETTINGS:
                self._hear_settings(one)
            case frames.PING:
                if not one.flags & frames.ACK:
                    self._acknowledge(frames.PING, one.payload)
            case frames.GOAWAY:
                self._hear_goodbye(frames.read_number(one.payload))
            case frames.WINDOW_UPDATE:
                self._hear_window(one.stream, frames.read_number(one.payload))
            case frames.PUSH_PROMISE:
                raise Broken  # we want none, and have said so

    def _of(self, one: Frame) -> Stream | None:
        """Give the stream of a frame, if it is still under way."""
        if one.stream == 0:
            raise Broken
        return self.streams.get(one.stream)

    def _hear_fields(self, first: Frame, block: bytearray) -> None:
        if len(block) > _LONGEST_HEADERS:
            raise Broken
        if not first.flags & frames.END_HEADERS:
            self._begun, self._only = (first, block), frames.CONTINUATION
            return
        self._begun = self._only = None
        stream = self._of(first)
        if stream is None:
            return
        whole = bytes(block)
        if not stream.status:  # else what follows the body (trailers), which says nothing to us
            status = fields.status(whole)
            if status < 200:  # an interim answer
                return
            stream.status, stream.block = status, whole
        if first.flags & frames.END_STREAM:
            self._finish(stream)

    def _hear_data(self, one: Frame) -> None:
        taken = len(one.payload)
        self._consumed += taken
        if self._consumed > frames.WINDOW // 2:
            self._out += frames.number(frames.WINDOW_UPDATE, 0, self._consumed)
            self._consumed = 0
        stream = self._of(one)
        if stream is None:
            return
        if not stream.status:
            raise Broken
        part = frames.unpadded(one)
        stream.chunks.append(part)
        stream.length += len(part)
        if stream.length > stream.request.max_response:
            self.cancel(stream)
            too_long = stream.failure(FailureKind.UNKNOWN, "the answer is too long")
            self._ended(stream, too_long)
        elif one.flags & frames.END_STREAM:
            self._finish(stream)
        elif taken:
            self._out += frames.number(frames.WINDOW_UPDATE, stream.id, taken)

    def _finish(self, stream: Stream) -> None:
        if stream.unsent:  # it knew enough before it had all
            self.cancel(stream)
        self._end(stream, stream.result())

    def _end(self, stream: Stream, result: Reply | Failure) -> None:
        self.streams.pop(stream.id, None)
        self._ended(stream, result)
        self._leave_if_done()

    def _leave_if_done(self) -> None:
        if self.leaving and not self.streams and self.alive:
            self.flush()
            self.lose(LOST)

    def _hear_reset(self, one: Frame) -> None:
        stream = self._of(one)
        if stream is None:
            return
        if frames.read_number(one.payload) == frames.REFUSED_STREAM:
            self._refuse(stream)
        else:
            self._end(stream, stream.failure(FailureKind.UNKNOWN, _RESET))

    def _refuse(self, stream: Stream) -> None:
        """End a request that was not taken; who has begun to answer it cannot say so any more."""
        unknown = stream.failure(FailureKind.UNKNOWN, _RESET)
        self._end(stream, unknown if stream.status else _REFUSED)

    def _hear_settings(self, one: Frame) -> None:
        if one.flags & frames.ACK:
            return
        for name, value in frames.read_settings(one.payload):
            match name:
                case frames.MAX_CONCURRENT_STREAMS:
                    self._limit = value
                case frames.MAX_FRAME_SIZE:
                    if not frames.SIZE <= value <= frames.LONGEST:
                        raise Broken
                    self._frame_size = value
                case frames.INITIAL_WINDOW_SIZE:
                    if value > frames.GREATEST:
                        raise Broken
                    for stream in self.streams.values():
                        stream.window += value - self._first_window
                    self._first_window = value
        self._acknowledge(frames.SETTINGS)
        self.ready, self._only = True, None
        self._write_bodies()

    def _acknowledge(self, kind: int, payload: bytes = b"") -> None:
        self._owed += 1
        if self._owed > _MOST_OWED:
            raise Broken
        self._out += frames.frame(kind, frames.ACK, 0, payload)

    def _hear_goodbye(self, last: int) -> None:
        self.leaving = True
        for stream in [one for one in self.streams.values() if one.id > last]:
            self._refuse(stream)
        self._leave_if_done()

    def _hear_window(self, where: int, more: int) -> None:
        if where == 0:
            self._window = _widened(self._window, more)
            self._write_bodies()
        elif stream := self.streams.get(where):
            stream.window = _widened(stream.window, more)
            self._write_body(stream)


def _widened(window: int, more: int) -> int:
    if more == 0 or window + more > frames.GREATEST:
        raise Broken
    return window + more
