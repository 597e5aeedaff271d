"""A connection over HTTP/2 (RFC 9113): many requests at once.

Unlike libcurl it reports what HTTP/2 says of each request: one refused (REFUSED_STREAM, or an id
above the last one of a GOAWAY) was certainly not processed; any other without a response may have
been. Nothing is sent twice, and nothing before the server's limits are known. A window of requests
is sent by one write.
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

OnResult = Callable[[Stream, Reply | Failure], None]


class Http2Connection(Http2Writer):
    """One connection. It calls `on_result` for each stream, and `on_end` when it has ended."""

    def __init__(
        self,
        loop: Loop,
        origin: Origin,
        ca_pem: str,
        on_result: OnResult,
        on_end: "Callable[[Http2Connection, Failure], None]",
    ) -> None:
        super().__init__(loop, origin)
        self.was_lost = False
        self.received_at = time.monotonic()
        self._ca_pem = ca_pem
        self._on_result = on_result
        self._on_end = on_end
        self._consumed = 0
        self._received = bytearray()
        self._expected: int | None = frames.SETTINGS
        """The only kind of frame that may come next (§3.4, §6.10)."""
        self._partial: tuple[Frame, bytearray] | None = None
        """The first frame and the bytes of a header block whose end has not arrived."""

    def cancel(self, stream: Stream) -> None:
        """Cancel a request. A response that still arrives is dropped."""
        if self.streams.pop(stream.id, None):
            self._out += frames.number(frames.RST_STREAM, stream.id, frames.CANCEL)
            self._close_if_done()

    def close(self) -> None:
        self.closing = True
        self.close_socket()

    # --- events of the socket -----------------------------------------------------------------

    def on_connected(self) -> None:
        self.begin_tls(self._ca_pem, "h2", "http/1.1")

    def on_tls(self) -> None:
        if self.protocol != "h2":
            self.fail(FailureKind.NOT_SENT, NO_HTTP2)
            return
        settings = ((frames.HEADER_TABLE_SIZE, 0), (frames.ENABLE_PUSH, 0))
        self._out += frames.PREFACE + frames.settings(*settings)

    def on_received(self, part: bytes) -> None:
        self.received_at = time.monotonic()
        self._received += part
        try:
            for received in frames.take(self._received):
                self._process(received)
        except (ProtocolError, header_fields.InvalidHeaderBlock):
            self._out += frames.frame(frames.GOAWAY, 0, 0, bytes(7) + bytes([_PROTOCOL_ERROR]))
            self.flush()
            self.lose("broken HTTP/2")

    def fail(self, kind: FailureKind, reason: str) -> None:
        self.close()
        streams, self.streams = list(self.streams.values()), {}
        for stream in streams:
            self._on_result(stream, stream.failure(FailureKind.UNKNOWN, reason))
        self._on_end(self, Failure(kind, reason))

    def lose(self, reason: str) -> None:
        self.was_lost = True
        self.fail(FailureKind.NOT_SENT, reason)

    # --- frames -------------------------------------------------------------------------------

    def _process(self, received: Frame) -> None:
        if self._expected is not None and received.kind != self._expected:
            raise ProtocolError
        match received.kind:
            case frames.HEADERS:
                self._on_headers(received, frames.unpadded(received))
            case frames.CONTINUATION:
                if not self._partial or self._partial[0].stream != received.stream:
                    raise ProtocolError
                first, block = self._partial
                end = received.flags & frames.END_HEADERS
                block += received.payload
                self._on_headers(first._replace(flags=first.flags | end), block)
            case frames.DATA:
                self._on_data(received)
            case frames.RST_STREAM:
                self._on_reset(received)
            case frames.SETTINGS:
                self._on_settings(received)
            case frames.PING:
                if not received.flags & frames.ACK:
                    answer = frames.frame(frames.PING, frames.ACK, 0, received.payload[:8])
                    self.write_control(answer)
            case frames.GOAWAY:
                self._on_goaway(frames.read_number(received.payload))
            case frames.WINDOW_UPDATE:
                self.extend_window(received.stream, frames.read_number(received.payload))
            case frames.PUSH_PROMISE:
                raise ProtocolError  # our settings forbid it

    def _stream_of(self, received: Frame) -> Stream | None:
        """Return the stream of a frame, if it is still in flight."""
        if received.stream == 0:
            raise ProtocolError
        return self.streams.get(received.stream)

    def _on_headers(self, first: Frame, block: bytes | bytearray) -> None:
        if len(block) > _LONGEST_HEADERS:
            raise ProtocolError
        if not first.flags & frames.END_HEADERS:
            if isinstance(block, bytes):
                block = bytearray(block)  # it grows in place, however many parts arrive
            self._partial, self._expected = (first, block), frames.CONTINUATION
            return
        self._partial = self._expected = None
        stream = self._stream_of(first)
        if stream is None:
            return
        complete = bytes(block)
        if not stream.status:  # else these are trailers, which are not needed
            status = header_fields.status(complete)
            if status < 200:  # an interim response
                return
            stream.status, stream.block = status, complete
        if first.flags & frames.END_STREAM:
            self._finish(stream)

    def _on_data(self, received: Frame) -> None:
        size = len(received.payload)
        self._consumed += size
        if self._consumed > frames.DEFAULT_WINDOW // 2:
            self.write_control(frames.number(frames.WINDOW_UPDATE, 0, self._consumed))
            self._consumed = 0
        stream = self._stream_of(received)
        if stream is None:
            return
        if not stream.status:
            raise ProtocolError
        part = frames.unpadded(received)
        if part or not stream.chunks:  # endless empty frames would use up memory (CVE-2019-9518)
            stream.chunks.append(part)
        stream.length += len(part)
        if stream.length > stream.request.max_response:
            self.cancel(stream)
            too_long = stream.failure(FailureKind.UNKNOWN, "the answer is too long")
            self._on_result(stream, too_long)
        elif received.flags & frames.END_STREAM:
            self._finish(stream)
        elif size:
            self.write_control(frames.number(frames.WINDOW_UPDATE, stream.id, size))

    def _finish(self, stream: Stream) -> None:
        if stream.unsent:  # the server has answered before it had the complete body
            self.cancel(stream)
        self._end(stream, stream.result())

    def _end(self, stream: Stream, result: Reply | Failure) -> None:
        self.streams.pop(stream.id, None)
        self._on_result(stream, result)
        self._close_if_done()

    def _close_if_done(self) -> None:
        if self.closing and not self.streams and self.alive:
            self.flush()
            self.lose(LOST)

    def _on_reset(self, received: Frame) -> None:
        stream = self._stream_of(received)
        if stream is None:
            return
        if frames.read_number(received.payload) == frames.REFUSED_STREAM:
            self._refuse(stream)
        else:
            self._end(stream, stream.failure(FailureKind.UNKNOWN, _RESET))

    def _refuse(self, stream: Stream) -> None:
        """End a request that was not processed; it is unknown if its response had begun."""
        unknown = stream.failure(FailureKind.UNKNOWN, _RESET)
        self._end(stream, unknown if stream.status else _REFUSED)

    def _on_settings(self, received: Frame) -> None:
        if not received.flags & frames.ACK:
            self._expected = None
            self.apply_settings(received.payload)

    def _on_goaway(self, last: int) -> None:
        self.closing = True
        for stream in [stream for stream in self.streams.values() if stream.id > last]:
            self._refuse(stream)
        self._close_if_done()
