"""HTTP/2 over TLS on loopback (the h2 library); a test may write every frame itself."""

import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    DataReceived,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    WindowUpdated,
)
from h2.settings import SettingCodes

from tests.fakes.tcp import Talk, TcpServer
from tests.fakes.tls import server_context


@dataclass
class Stream:
    """A request as it arrived."""

    connection: int
    id: int
    headers: dict[str, str]
    body: bytearray = field(default_factory=bytearray)


@dataclass
class Http2Connection:
    """The connection that an answer is written on."""

    socket: socket.socket
    h2: H2Connection
    number: int

    def flush(self) -> None:
        self.socket.sendall(self.h2.data_to_send())

    def respond(self, stream: Stream, status: int, body: bytes = b"", **headers: str) -> None:
        fields = [(":status", str(status)), *((n.replace("_", "-"), v) for n, v in headers.items())]
        self.h2.send_headers(stream.id, fields, end_stream=not body)
        if body:
            self.h2.send_data(stream.id, body, end_stream=True)


Answer = Callable[[Http2Connection, Stream], bool | None]
"""Answers a complete request on a connection. False ends the connection."""


def ok(connection: Http2Connection, stream: Stream) -> None:
    connection.respond(stream, 200, bytes(stream.body))


def leave_open(connection: Http2Connection, stream: Stream) -> None:
    """Do not answer before the request is complete."""


Frame = tuple[int, int, int, bytes]
"""Kind, flags, stream and payload (RFC 9113 §4.1)."""


def raw(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Return a frame, encoded, even an invalid one."""
    return struct.pack(">I", len(payload) << 8 | kind) + struct.pack(">BI", flags, stream) + payload


def frames_from(sock: socket.socket) -> Iterator[Frame]:
    """Yield a client's frames, after the preface, until it closes."""
    with sock.makefile("rb") as stream:
        stream.read(24)
        while head := stream.read(9):
            length, flags, where = struct.unpack(">IBI", head)
            yield length & 255, flags, where, stream.read(length >> 8)


class Http2Server(TcpServer):
    """Answer streams by a function and remember them.

    `begun` may answer a request before its body arrives; `first` handles the first connection.
    """

    def __init__(
        self,
        answer: Answer = ok,
        *,
        begun: Answer = leave_open,
        first: Talk | None = None,
        **settings: int,
    ) -> None:
        super().__init__(self._connection, server_context("h2"))
        self.answer = answer
        self.begun = begun
        self.first = first
        self.settings = settings
        self.seen: list[Stream] = []

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}/"

    def _connection(self, sock: socket.socket, number: int) -> None:
        if self.first and number == 0:
            self.first(sock, number)
            return
        h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        given = {SettingCodes[name.upper()]: value for name, value in self.settings.items()}
        h2.local_settings.update(given)
        h2.local_settings.acknowledge()  # as if acknowledged: exceeding a limit ends the connection
        h2.max_inbound_frame_size = h2.local_settings.max_frame_size
        h2.initiate_connection()
        connection = Http2Connection(sock, h2, number)
        connection.flush()
        streams: dict[int, Stream] = {}
        while data := sock.recv(65536):
            for event in h2.receive_data(data):
                match event:
                    case RequestReceived(stream_id=int(id_), headers=headers):
                        streams[id_] = Stream(number, id_, dict(headers or []))
                        self.begun(connection, streams[id_])
                    case DataReceived(stream_id=int(id_), data=bytes(part)):
                        streams[id_].body += part
                        h2.acknowledge_received_data(event.flow_controlled_length or 0, id_)
                    case StreamEnded(stream_id=int(id_)):
                        self.seen.append(streams[id_])
                        if self.answer(connection, streams[id_]) is False:
                            connection.flush()
                            return
                    case RemoteSettingsChanged() | WindowUpdated():
                        pass
            connection.flush()
