"""HTTP/1.1 on loopback, without a library, so that a test can break it anywhere."""

import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass

from tests.fakes.tcp import TcpServer


@dataclass(frozen=True)
class Seen:
    """A request as it arrived. `connection` counts from 0."""

    connection: int
    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((v for n, v in self.headers if n.lower() == name.lower()), None)


Answer = Callable[[socket.socket, Seen], bool | None]
"""Writes an answer. False ends the connection."""


def ok(connection: socket.socket, seen: Seen) -> None:
    """Answer 200 with the request's body."""
    respond(connection, 200, seen.body)


def respond(
    connection: socket.socket, status: int, body: bytes = b"", headers: dict[str, str] | None = None
) -> None:
    head = f"HTTP/1.1 {status} Status\r\nContent-Length: {len(body)}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    connection.sendall(head.encode() + b"\r\n" + body)


class Http1Server(TcpServer):
    """Answer requests by a function and remember them."""

    def __init__(self, answer: Answer = ok, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(self._requests, tls)
        self.answer = answer
        self.seen: list[Seen] = []

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}/"

    def _requests(self, connection: socket.socket, number: int) -> None:
        with connection.makefile("rb") as stream:
            while line := stream.readline():
                method, path, _ = line.decode().split(" ", 2)
                headers: list[tuple[str, str]] = []
                while (line := stream.readline()) not in (b"\r\n", b""):
                    name, _, value = line.decode().partition(":")
                    headers.append((name, value.strip()))
                length = next((v for n, v in headers if n.lower() == "content-length"), "0")
                body = stream.read(int(length))
                seen = Seen(number, method, path, tuple(headers), body)
                self.seen.append(seen)
                if self.answer(connection, seen) is False:
                    return
