"""What is written on a connection over HTTP/2 (RFC 9113), within the limits that a server sets."""

import select
import time

from rme.transport.addresses import Origin
from rme.transport.http2 import frames
from rme.transport.http2.frames import ProtocolError
from rme.transport.http2.stream import Stream, head
from rme.transport.loop import Loop
from rme.transport.socket_connection import SocketConnection

_MOST_OWED = 10_000
"""Who makes us say so much, and reads none of it, wants our memory (CVE-2019-9512, -9515)."""


class Http2Writer(SocketConnection):
    """The half of a connection that writes. What is heard is for who inherits."""

    def __init__(self, loop: Loop, where: Origin) -> None:
        super().__init__(loop, where)
        self.streams: dict[int, Stream] = {}
        self.ready = False
        """The server's limits are known."""
        self.leaving = False
        """It takes no more requests."""
        self.used_at = time.monotonic()
        self._next_id = 1
        self._limit = frames.GREATEST
        self._frame_size = frames.SIZE
        self._window = self._first_window = frames.WINDOW
        self._owed = 0
        """How many frames that others made us say are not written yet."""
        self._out = bytearray()

    @property
    def used(self) -> bool:
        """Say whether a request was ever written on it."""
        return self._next_id > 1

    @property
    def has_room(self) -> bool:
        return self.ready and not self.leaving and len(self.streams) < self._limit

    def send(self, stream: Stream) -> None:
        """Write a request. It leaves with the next `flush`."""
        stream.id = self._next_id
        self._next_id += 2
        stream.window = self._first_window
        self.streams[stream.id] = stream
        self.used_at = time.monotonic()
        self._write_head(stream, head(stream.request))
        self._write_body(stream)
        if stream.id > frames.GREATEST // 2:
            self.leaving = True  # the numbers come to an end

    def flush(self) -> None:
        """Write what the socket takes. Raises OSError."""
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

    # --- what the server grants -----------------------------------------------------------------

    def take_settings(self, payload: bytes) -> None:
        """Keep to what the server says from now on (§6.5). Raises Broken."""
        for name, value in frames.read_settings(payload):
            match name:
                case frames.MAX_CONCURRENT_STREAMS:
                    self._limit = value
                case frames.MAX_FRAME_SIZE:
                    if not frames.SIZE <= value <= frames.LONGEST:
                        raise ProtocolError
                    self._frame_size = value
                case frames.INITIAL_WINDOW_SIZE:
                    if value > frames.GREATEST:
                        raise ProtocolError
                    for stream in self.streams.values():
                        stream.window += value - self._first_window
                    self._first_window = value
        self.say(frames.frame(frames.SETTINGS, frames.ACK, 0))
        self.ready = True
        self._write_bodies()

    def widen(self, where: int, more: int) -> None:
        """Write more, of one stream or (0) of all (§6.9). Raises Broken."""
        if where == 0:
            self._window = _widened(self._window, more)
            self._write_bodies()
        elif stream := self.streams.get(where):
            stream.window = _widened(stream.window, more)
            self._write_body(stream)

    def say(self, frame: bytes) -> None:
        """Say what something that was heard calls for. Raises Broken."""
        self._owed += 1
        if self._owed > _MOST_OWED:
            raise ProtocolError
        self._out += frame

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
        while left := stream.unsent:
            room = min(self._window, stream.window, self._frame_size)
            if room <= 0:
                return
            if len(left) <= room:
                part, stream.unsent = left, b""
            else:
                left = memoryview(left)  # whose slices copy nothing
                part, stream.unsent = left[:room], left[room:]
            self._window -= len(part)
            stream.window -= len(part)
            end = 0 if stream.unsent else frames.END_STREAM
            self._out += frames.frame(frames.DATA, end, stream.id, part)

    def _write_bodies(self) -> None:
        for stream in self.streams.values():
            self._write_body(stream)


def _widened(window: int, more: int) -> int:
    if more == 0 or window + more > frames.GREATEST:
        raise ProtocolError
    return window + more
