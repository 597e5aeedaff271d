"""The server's side of a websocket (RFC 6455): whole text messages, nothing negotiated."""

import socket
import struct
import threading
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha1
from typing import IO

from tests.fakes.tcp import TcpServer

_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10


class Websocket:
    """One connection. Messages may be sent from any thread."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._stream: IO[bytes] = connection.makefile("rb")
        self._writing = threading.Lock()

    def shake_hands(self) -> None:
        """Answer the upgrade, with the first protocol that is offered."""
        headers: dict[str, str] = {}
        self._stream.readline()
        while (line := self._stream.readline().decode().strip()) != "":
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        key = headers["sec-websocket-key"] + _GUID
        answer = [
            "HTTP/1.1 101 Switching Protocols",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Accept: {b64encode(sha1(key.encode()).digest()).decode()}",
        ]
        if protocols := headers.get("sec-websocket-protocol"):
            answer.append(f"Sec-WebSocket-Protocol: {protocols.split(',')[0].strip()}")
        self._socket.sendall(("\r\n".join(answer) + "\r\n\r\n").encode())

    def receive(self) -> str | None:
        """Return the next message; None when the other side has closed."""
        parts = b""
        while (head := self._stream.read(2)) and len(head) == 2:
            kind, body = head[0] & 15, self._body(head[1])
            if kind == _CLOSE:
                return None
            if kind == _PING:
                self._frame(_PONG, body)
            elif kind != _PONG:
                parts += body
                if head[0] & 128:
                    return parts.decode()
        return None

    def _body(self, length: int) -> bytes:
        assert length & 128, "a client masks what it sends"
        length &= 127
        if length > 125:
            wide = self._stream.read(2 if length == 126 else 8)
            length = int.from_bytes(wide)
        mask, masked = self._stream.read(4), self._stream.read(length)
        return bytes(byte ^ mask[place % 4] for place, byte in enumerate(masked))

    def send(self, text: str) -> None:
        self._frame(_TEXT, text.encode())

    def _frame(self, kind: int, body: bytes) -> None:
        short = len(body) if len(body) < 126 else 126 if len(body) < 65536 else 127
        wide = {126: struct.pack("!H", len(body) & 0xFFFF), 127: struct.pack("!Q", len(body))}
        with self._writing:
            self._socket.sendall(bytes((128 | kind, short)) + wide.get(short, b"") + body)

    def end(self) -> None:
        """Leave without a word."""
        self._socket.shutdown(socket.SHUT_RDWR)


class WebsocketServer(TcpServer):
    """Serve websockets on loopback: a function talks to each."""

    def __init__(self, talk: Callable[[Websocket], None]) -> None:
        super().__init__(self._talk)
        self._speak = talk

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/"

    def _talk(self, connection: socket.socket, number: int) -> None:
        websocket = Websocket(connection)
        websocket.shake_hands()
        self._speak(websocket)
