"""An SMSC on loopback, without a library, so that a test can break it anywhere."""

import socket
import ssl
import threading
from collections.abc import Callable

from rme.transport.smpp.pdu import CommandId, Pdu, take
from tests.fakes.tcp import TcpServer

Step = Callable[[socket.socket, Pdu], bool | None]
"""Answers a request. False ends the connection."""


def accept(connection: socket.socket, request: Pdu) -> None:
    """Accept every request; the id of a message is the request's number."""
    connection.sendall(request.answer(0, f"id{request.sequence}\0".encode()).encode())


def refuse(status: int) -> Step:
    """Refuse with a status."""
    return lambda connection, request: connection.sendall(request.answer(status).encode())


class SmppServer(TcpServer):
    """Answer requests by a function for each command, or accept them; store them."""

    def __init__(
        self,
        steps: dict[int, Step] | None = None,
        tls: ssl.SSLContext | None = None,
        *,
        otherwise: Step = accept,
    ) -> None:
        super().__init__(self._requests, tls)
        self.steps, self.otherwise = steps or {}, otherwise
        self.seen: list[Pdu] = []
        self._answering = threading.Lock()

    def of(self, command: int) -> list[Pdu]:
        return [each for each in self.seen if each.command == command]

    def send(self, request: Pdu) -> None:
        """Send a request of the SMSC's own on the connection that was made last."""
        self.send_bytes(request.encode())

    def send_bytes(self, data: bytes) -> None:
        """Send bytes on that connection, behind the answer to what was seen last."""
        with self._answering:
            self.last.sendall(data)

    def _requests(self, connection: socket.socket, number: int) -> None:
        self.last = connection
        buffer = bytearray()
        while part := connection.recv(65536):
            buffer += part
            while (request := take(buffer)) is not None:
                with self._answering:
                    self.seen.append(request)
                    step = self.steps.get(request.command, self.otherwise)
                    is_request = not request.command & CommandId.GENERIC_NACK
                    if is_request and step(connection, request) is False:
                        return
