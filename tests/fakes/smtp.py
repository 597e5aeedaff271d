"""An SMTP server that follows a script, so that it can fail at any stage of a conversation."""

import base64
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.fakes import tcp

Step = str | Callable[[socket.socket], None]
"""A reply (lines joined by newlines), or what is done instead before the connection ends."""


def close(connection: socket.socket) -> None:
    """End the connection without a word."""


def garbage(connection: socket.socket) -> None:
    connection.sendall(b"\x00\xffnonsense\r\n")


USUAL: dict[str, Step] = {
    "GREETING": "220 mail.test ESMTP",
    "EHLO": "250-mail.test\n250-8BITMIME\n250 SIZE 10485760",
    "HELO": "250 mail.test",
    "STARTTLS": "220 2.0.0 go on",
    "AUTH": "235 2.7.0 welcome",
    "MAIL": "250 2.1.0 ok",
    "RCPT": "250 2.1.5 ok",
    "DATA": "354 go on",
    "END": "250 2.0.0 queued as 4F2A",
    "RSET": "250 2.0.0 ok",
    "NOOP": "250 2.0.0 ok",
    "QUIT": "221 2.0.0 bye",
}


@dataclass(frozen=True)
class Mail:
    """A mail as it arrived, without dot-stuffing."""

    connection: int
    mail_from: str
    recipient: str
    data: bytes
    encrypted: bool
    login: str


class _Ended(Exception):
    """The script ends the connection."""


class SmtpServer(tcp.TcpServer):
    """Follow a script and store the mails. `commands` are those of all connections.

    A server that is not `strict` answers DATA with 354 though it has refused the recipient.
    """

    def __init__(
        self,
        script: Mapping[str, Step] | None = None,
        *,
        starttls: ssl.SSLContext | None = None,
        tls: ssl.SSLContext | None = None,
        offers: str = "",
        strict: bool = True,
    ) -> None:
        super().__init__(self._converse, tls)
        self.script: dict[str, Step] = {**USUAL, **(script or {})}
        self.starttls = starttls
        self.offers = offers
        self.strict = strict
        self.commands: list[str] = []
        self.mails: list[Mail] = []

    def _converse(self, connection: socket.socket, number: int) -> None:
        try:
            self._say(connection, "GREETING")
            _Conversation(self, connection, number).run()
        except _Ended:
            pass

    def _say(self, connection: socket.socket, step: str) -> None:
        answer = self.script[step]
        if callable(answer):
            answer(connection)
            raise _Ended
        lines = answer.split("\n")
        if step == "EHLO" and lines[0].startswith("250"):
            extra = [f"250-{offer}" for offer in self.offers.split("\n") if offer]
            lines = [lines[0], *extra, *lines[1:]] if len(lines) > 1 else lines
        connection.sendall("".join(f"{line}\r\n" for line in lines).encode())

    def say(self, connection: socket.socket, step: str) -> None:
        self._say(connection, step)


class _Conversation:
    """One connection's commands."""

    def __init__(self, server: SmtpServer, connection: socket.socket, number: int) -> None:
        self.server = server
        self.connection = connection
        self.number = number
        self.stream = connection.makefile("rb")
        self.encrypted = server.tls is not None
        self.in_order = False
        self.login = self.mail_from = self.recipient = ""

    def run(self) -> None:
        while line := self.stream.readline():
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            self.server.commands.append(text)
            verb, _, rest = text.partition(" ")
            getattr(self, f"_{verb.lower()}", self._other)(verb.upper(), rest)
            if verb.upper() == "QUIT":
                return

    def _other(self, verb: str, rest: str) -> None:
        self.server.say(self.connection, verb if verb in self.server.script else "QUIT")

    def _starttls(self, verb: str, rest: str) -> None:
        self.server.say(self.connection, verb)
        assert self.server.starttls is not None
        self.connection = self.server.starttls.wrap_socket(self.connection, server_side=True)
        self.stream = self.connection.makefile("rb")
        self.encrypted = True

    def _auth(self, verb: str, rest: str) -> None:
        mechanism, _, initial = rest.partition(" ")
        if not initial:
            self.connection.sendall(b"334 \r\n")
            initial = self.stream.readline().decode().strip()
        credentials = base64.b64decode(initial).decode()
        if mechanism == "LOGIN":
            self.connection.sendall(b"334 UGFzc3dvcmQ6\r\n")
            credentials += ":" + base64.b64decode(self.stream.readline()).decode()
        self.login = credentials.strip("\0").replace("\0", ":")
        self.server.say(self.connection, verb)

    def _mail(self, verb: str, rest: str) -> None:
        self.mail_from = rest.removeprefix("FROM:").split(" ")[0]
        self.in_order = str(self.server.script[verb]).startswith("250")
        self.server.say(self.connection, verb)

    def _rcpt(self, verb: str, rest: str) -> None:
        self.recipient = rest.removeprefix("TO:")
        self.in_order = self.in_order and str(self.server.script[verb]).startswith("250")
        self.server.say(self.connection, verb)

    def _data(self, verb: str, rest: str) -> None:
        if self.server.strict and not self.in_order:
            self.connection.sendall(b"503 5.5.1 no valid recipient\r\n")
            return
        goes_on = str(self.server.script["DATA"]).startswith("354")
        self.server.say(self.connection, verb)
        if not goes_on:
            return
        lines: list[bytes] = []
        while (line := self.stream.readline()) not in (b".\r\n", b""):
            lines.append(line[1:] if line.startswith(b".") else line)
        if not line:
            return
        self.server.mails.append(
            Mail(
                self.number,
                self.mail_from,
                self.recipient,
                b"".join(lines),
                self.encrypted,
                self.login,
            )
        )
        self.server.say(self.connection, "END")
