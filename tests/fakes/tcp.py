"""A TCP server that handles each connection by a function of the test."""

import contextlib
import os
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from tests.ports import free_port as free_port

Talk = Callable[[socket.socket, int], None]
"""Handles one connection: its socket, and the number of earlier connections."""

TIME_OUT = 2.0
"""How long (s) a test waits for a server that is silent once it has received a request.

A shorter time-out may be over before the request has arrived, on a busy machine: then it was not
sent.
"""


class TcpServer:
    """Serve on a free port of 127.0.0.1 while the context is open; one thread a connection."""

    def __init__(self, talk: Talk, tls: ssl.SSLContext | None = None) -> None:
        self.talk = talk
        self.tls = tls
        self.connections = 0
        self.closing = threading.Event()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.closing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def wait_until_closed(self) -> bool:
        """Wait until this side has ended all connections (30 s at most); return whether it has."""
        until = time.monotonic() + 30
        while self._open and time.monotonic() < until:
            time.sleep(0.005)
        return not self._open

    def _accept(self) -> None:
        while not self.closing.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.add(connection)
            number = self.connections
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection, number), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        talking = connection
        try:
            if self.tls:
                talking = self.tls.wrap_socket(connection, server_side=True)
                self._open.add(talking)
            self.talk(talking, number)
        except (OSError, ValueError):
            pass  # the client closed, as many tests make it do
        finally:
            talking.close()
            self._open -= {connection, talking}


def stall(connection: socket.socket) -> None:
    """Send nothing until the other side closes (10 s at most)."""
    connection.settimeout(10)
    while connection.recv(65536):
        pass


def reset(connection: socket.socket) -> None:
    """End a connection by RST, though files may have been made of it."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    os.close(connection.detach())


def end_in_order(connection: socket.socket) -> None:
    """Read for a moment, then close: unread bytes would reset the connection, and what was
    written last would be lost.
    """
    with contextlib.suppress(OSError):
        connection.settimeout(0.05)
        while connection.recv(65536):
            pass


def drip(connection: socket.socket, data: bytes, pause: float) -> None:
    """Write a byte at a time."""
    for start in range(len(data)):
        connection.sendall(data[start : start + 1])
        time.sleep(pause)
