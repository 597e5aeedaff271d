"""A connection over HTTP/2 (RFC 9113): many requests at once on one wire.

Unlike libcurl it says of each request just what HTTP/2 says: refused (REFUSED_STREAM, or above the
last id of a GOAWAY) was certainly not taken, all else without an answer may have been. Nothing is
ever sent a second time by itself, and nothing before the server's limits are known. A window of
requests leaves in one write.
"""

import time
from collections.abc import Callable

from rme.transport.addresses import Origin
from rme.transport.http2 import frames, header_fields
from rme.transport.http2.frames import Frame, ProtocolError
from rme.transport.http2.stream import Stream
from rme.transport.http2.writer import Http2Writer
from rme.transport.loop import Loop
from rme.transport.messages import Failure, FailureKind, Reply
from rme.transport.socket_connection import LOST

NO_HTTP2 = "the host does not speak HTTP/2"
_LONGEST_HEADERS = 64 * 1024
_REFUSED = Failure(FailureKind.NOT_SENT, "the stream was refused")
_RESET = "the stream was reset"
_PROTOCOL_ERROR = 0x1

Ended = Callable[[Stream, Reply | Failure], None]


class Http2Connection(Http2Writer):
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
        self.was_lost = False
        self.heard_at = time.monotonic()
        self._ca_pem = ca_pem
        self._ended = ended
        self._gone = gone
        self._consumed = 0
        self._in = bytearray()
        self._only: int | None = frames.SETTINGS
        """The kind of frame that has to come next (§3.4, §6.10)."""
        self._begun: tuple[Frame, bytearray] | None = None
        """A block of header fields whose end is to come."""

    # --- for who has requests -------------------------------------------------------------------

    def cancel(self, stream: Stream) -> None:
        """Let go of a request. Its answer, if one comes, is dropped."""
        if self.streams.pop(stream.id, None):
            self._out += frames.number(frames.RST_STREAM, stream.id, frames.CANCEL)
            self._leave_if_done()

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
        except (ProtocolError, header_fields.InvalidHeaderBlock):
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

    # --- hearing --------------------------------------------------------------------------------

    def _hear(self, one: Frame) -> None:
        if self._only is not None and one.kind != self._only:
            raise ProtocolError
        match one.kind:
            case frames.HEADERS:
                self._hear_fields(one, frames.unpadded(one))
            case frames.CONTINUATION:
                if not self._begun or self._begun[0].stream != one.stream:
                    raise ProtocolError
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
                    self.say(frames.frame(frames.PING, frames.ACK, 0, one.payload[:8]))
            case frames.GOAWAY:
                self._hear_goodbye(frames.read_number(one.payload))
            case frames.WINDOW_UPDATE:
                self.widen(one.stream, frames.read_number(one.payload))
            case frames.PUSH_PROMISE:
                raise ProtocolError  # we want none, and have said so

    def _of(self, one: Frame) -> Stream | None:
        """Give the stream of a frame, if it is still under way."""
        if one.stream == 0:
            raise ProtocolError
        return self.streams.get(one.stream)

    def _hear_fields(self, first: Frame, block: bytes | bytearray) -> None:
        if len(block) > _LONGEST_HEADERS:
            raise ProtocolError
        if not first.flags & frames.END_HEADERS:
            if isinstance(block, bytes):
                block = bytearray(block)  # which grows in its place, however many parts come
            self._begun, self._only = (first, block), frames.CONTINUATION
            return
        self._begun = self._only = None
        stream = self._of(first)
        if stream is None:
            return
        whole = bytes(block)
        if not stream.status:  # else what follows the body (trailers), which says nothing to us
            status = header_fields.status(whole)
            if status < 200:  # an interim answer
                return
            stream.status, stream.block = status, whole
        if first.flags & frames.END_STREAM:
            self._finish(stream)

    def _hear_data(self, one: Frame) -> None:
        taken = len(one.payload)
        self._consumed += taken
        if self._consumed > frames.WINDOW // 2:
            self.say(frames.number(frames.WINDOW_UPDATE, 0, self._consumed))
            self._consumed = 0
        stream = self._of(one)
        if stream is None:
            return
        if not stream.status:
            raise ProtocolError
        part = frames.unpadded(one)
        if part or not stream.chunks:  # nothing, without end, would be much (CVE-2019-9518)
            stream.chunks.append(part)
        stream.length += len(part)
        if stream.length > stream.request.max_response:
            self.cancel(stream)
            too_long = stream.failure(FailureKind.UNKNOWN, "the answer is too long")
            self._ended(stream, too_long)
        elif one.flags & frames.END_STREAM:
            self._finish(stream)
        elif taken:
            self.say(frames.number(frames.WINDOW_UPDATE, stream.id, taken))

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
        if not one.flags & frames.ACK:
            self._only = None
            self.take_settings(one.payload)

    def _hear_goodbye(self, last: int) -> None:
        self.leaving = True
        for stream in [one for one in self.streams.values() if one.id > last]:
            self._refuse(stream)
        self._leave_if_done()
