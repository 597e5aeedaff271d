"""The writing half of an HTTP/2 connection (RFC 9113), within the limits that a server sets."""

import select
import time

from rme.transport.addresses import Origin
from rme.transport.http2 import frames
from rme.transport.http2.frames import ProtocolError
from rme.transport.http2.stream import Stream, head
from rme.transport.loop import Loop
from rme.transport.socket_connection import SocketConnection

_MAX_CONTROL_FRAMES = 10_000
"""Unread answers to the server's frames; more are an attack on memory (CVE-2019-9512, -9515)."""


class Http2Writer(SocketConnection):
    """The half of a connection that writes; the subclass reads."""

    def __init__(self, loop: Loop, origin: Origin) -> None:
        super().__init__(loop, origin)
        self.streams: dict[int, Stream] = {}
        self.ready = False
        """Whether the server's limits are known."""
        self.closing = False
        """Whether it takes no more requests."""
        self.used_at = time.monotonic()
        self._next_id = 1
        self._limit = frames.MAX_VALUE
        self._frame_size = frames.DEFAULT_SIZE
        self._window = self._first_window = frames.DEFAULT_WINDOW
        self._control_frames = 0
        """How many answers to the server's frames are not written yet."""
        self._out = bytearray()

    @property
    def used(self) -> bool:
        """Return whether a request was ever written on it."""
        return self._next_id > 1

    @property
    def has_room(self) -> bool:
        return self.ready and not self.closing and len(self.streams) < self._limit

    def send(self, stream: Stream) -> None:
        """Write a request. The next `flush` sends it."""
        stream.id = self._next_id
        self._next_id += 2
        stream.window = self._first_window
        self.streams[stream.id] = stream
        self.used_at = time.monotonic()
        self._write_head(stream, head(stream.request))
        self._write_body(stream)
        if stream.id > frames.MAX_VALUE // 2:
            self.closing = True  # stream ids are used up

    def flush(self) -> None:
        """Write as much as the socket accepts. Raises OSError."""
        while self.alive and (self._out or self.unsent):
            if not self.unsent:
                self.unsent = memoryview(bytes(self._out))
                self._out.clear()
            try:
                super().flush()
            except OSError:
                if not self.streams:
                    raise
                self._stop_writing()
            if self.unsent:
                return

    def _stop_writing(self) -> None:
        """Stop writing: the other side has closed. What it sent before may still be read."""
        self.closing = True
        self.unsent = memoryview(b"")
        self._out.clear()
        self.watch(select.POLLIN)

    def on_flushed(self) -> None:
        self._control_frames = 0

    # --- limits set by the server -----------------------------------------------------------------

    def apply_settings(self, payload: bytes) -> None:
        """Apply the server's settings (§6.5). Raises ProtocolError."""
        for name, value in frames.read_settings(payload):
            match name:
                case frames.MAX_CONCURRENT_STREAMS:
                    self._limit = value
                case frames.MAX_FRAME_SIZE:
                    if not frames.DEFAULT_SIZE <= value <= frames.MAX_SIZE:
                        raise ProtocolError
                    self._frame_size = value
                case frames.INITIAL_WINDOW_SIZE:
                    if value > frames.MAX_VALUE:
                        raise ProtocolError
                    for stream in self.streams.values():
                        stream.window += value - self._first_window
                    self._first_window = value
        self.write_control(frames.frame(frames.SETTINGS, frames.ACK, 0))
        self.ready = True
        self._write_bodies()

    def extend_window(self, stream_id: int, increment: int) -> None:
        """Extend the window of one stream or (0) of the connection (§6.9). Raises ProtocolError."""
        if stream_id == 0:
            self._window = _extended(self._window, increment)
            self._write_bodies()
        elif stream := self.streams.get(stream_id):
            stream.window = _extended(stream.window, increment)
            self._write_body(stream)

    def write_control(self, frame: bytes) -> None:
        """Write an answer to a frame of the server. Raises ProtocolError."""
        self._control_frames += 1
        if self._control_frames > _MAX_CONTROL_FRAMES:
            raise ProtocolError
        self._out += frame

    # --- writing --------------------------------------------------------------------------------

    def _write_head(self, stream: Stream, block: bytes) -> None:
        """Write a header block, in several frames if it is too long for one."""
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
        """Write as much of a body as the windows allow now (§5.2)."""
        while unsent := stream.unsent:
            room = min(self._window, stream.window, self._frame_size)
            if room <= 0:
                return
            if len(unsent) <= room:
                part, stream.unsent = unsent, b""
            else:
                unsent = memoryview(unsent)  # its slices copy nothing
                part, stream.unsent = unsent[:room], unsent[room:]
            self._window -= len(part)
            stream.window -= len(part)
            end = 0 if stream.unsent else frames.END_STREAM
            self._out += frames.frame(frames.DATA, end, stream.id, part)

    def _write_bodies(self) -> None:
        for stream in self.streams.values():
            self._write_body(stream)


def _extended(window: int, increment: int) -> int:
    if increment == 0 or window + increment > frames.MAX_VALUE:
        raise ProtocolError
    return window + increment
