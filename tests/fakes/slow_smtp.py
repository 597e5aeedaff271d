"""A mail server that answers the mails of some recipients only after `go` is set."""

import socket
import threading
from collections.abc import Callable

from tests.fakes import tcp


class SlowSmtp(tcp.TcpServer):
    """Accept mails; delay the reply to those whose recipient `holds` returns True for.

    `taken` are the recipients in the order in which their mails were read to the end.
    """

    def __init__(self, holds: Callable[[str], bool]) -> None:
        super().__init__(self._converse)
        self.holds = holds
        self.go = threading.Event()
        self.answer = b"250 2.0.0 queued\r\n"
        self.taken: list[str] = []

    def _converse(self, connection: socket.socket, number: int) -> None:
        stream = connection.makefile("rb")
        connection.sendall(b"220 slow ESMTP\r\n")
        recipient = ""
        while line := stream.readline():
            verb = line[:4].upper()
            if verb == b"RCPT":
                recipient = line.decode().split("<")[1].split(">")[0]
            if verb == b"DATA":
                connection.sendall(b"354 go on\r\n")
                while stream.readline() not in (b".\r\n", b""):
                    pass
                self.taken.append(recipient)
                if self.holds(recipient):
                    self.go.wait(60)
                connection.sendall(self.answer if self.holds(recipient) else b"250 2.0.0 ok\r\n")
            elif verb == b"EHLO":
                connection.sendall(b"250 slow\r\n")
            else:
                connection.sendall(b"250 2.1.0 ok\r\n")
