"""What is said to a mail server (RFC 5321), without a socket.

libcurl can speak SMTP, too, but it waits for the reply to a message by blocking all that goes on
beside it, and it uses a connection again whose last reply never came: the next mail would get it.

Each generator yields what is to be written and receives the reply. `open_session` takes a
connection from the greeting to the log-in. `mail_transaction` sends one message: with PIPELINING
(RFC 2920) in two round trips.
"""

import base64
import re
from collections.abc import Generator
from dataclasses import dataclass

from rme.transport.messages import Envelope, Failure, FailureKind, MailSecurity, Reply, Stage

INVALID_REPLY = "the answer makes no sense"
_REPLY_LINE = re.compile(rb"([2-5]\d\d)(?:([ -])([^\0\r\n]*))?\r?\n")
_MAX_REPLY = 64 * 1024
"""Bytes. A reply is some lines of 512 at most (RFC 5321 §4.5.3.1.5)."""

Offers = dict[str, str]
"""A server's extensions, from its answer to EHLO: keyword to parameters."""


@dataclass(frozen=True, slots=True)
class SmtpReply:
    """A whole reply."""

    status: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SendBytes:
    """Write this, then wait for a reply. `whole`: with its last byte a message has been sent."""

    data: bytes
    stage: Stage
    whole: bool = False


@dataclass(frozen=True, slots=True)
class StartTls:
    """Begin TLS now; there is no reply."""


class InvalidReply(Exception):
    """What came is no reply."""


class SessionEnded(Exception):
    """The dialogue came to an end before its time."""

    def __init__(self, result: Reply | Failure) -> None:
        super().__init__()
        self.result = result


Opening = Generator[SendBytes | StartTls, SmtpReply, Offers]
Hello = Generator[SendBytes | StartTls, SmtpReply, tuple[SmtpReply, Offers]]
Transaction = Generator[SendBytes, SmtpReply, Reply]


class ReplyReader:
    """What a server says, in the parts that it comes in. No byte is looked at twice."""

    def __init__(self) -> None:
        self._unread = bytearray()
        self._searched = 0  # of `_unread`, where no line ends
        self._lines: list[str] = []  # of a reply that is not whole
        self._size = 0  # of these

    def __bool__(self) -> bool:
        """Return whether something came that is no whole reply."""
        return bool(self._unread or self._lines)

    def add(self, part: bytes) -> None:
        """Store what came."""
        self._unread += part

    def take(self) -> SmtpReply | None:
        """Return the first reply; None while it is not whole (RFC 5321 §4.2).

        Raises Senseless for what is no reply.
        """
        while (end := self._unread.find(b"\n", self._searched) + 1) > 0:
            line = bytes(self._unread[:end])
            del self._unread[:end]
            self._searched = 0
            self._size += end
            found = _REPLY_LINE.fullmatch(line)
            if not found or self._size > _MAX_REPLY:
                raise InvalidReply
            self._lines.append(line.decode("utf-8", "replace").rstrip("\r\n"))
            if found[2] != b"-":
                said = SmtpReply(int(found[1]), tuple(self._lines))
                self._lines, self._size = [], 0
                return said
        self._searched = len(self._unread)
        if self._size + self._searched > _MAX_REPLY:
            raise InvalidReply
        return None


def open_session(envelope: Envelope, name: str) -> Opening:
    """Bring a connection to where MAIL may be said. Raises Ended when it does not come there."""
    said = yield SendBytes(b"", Stage.CONNECT)
    if said.status != 220:
        raise _turned_away(said)
    said, offers = yield from _hello(name)
    if envelope.security is MailSecurity.STARTTLS:
        if "STARTTLS" not in offers:  # never gone without
            raise SessionEnded(_failed(FailureKind.TLS, "the server does not offer STARTTLS", said))
        said = yield SendBytes(b"STARTTLS\r\n", Stage.CONNECT)
        if said.status != 220:
            raise SessionEnded(_failed(FailureKind.TLS, "the server does not begin TLS", said))
        yield StartTls()
        said, offers = yield from _hello(name)  # what was offered in clear does not count
    if envelope.username:
        yield from _log_in(envelope, offers, said)
    return offers


def _hello(name: str) -> Hello:
    said = yield SendBytes(f"EHLO {name}\r\n".encode(), Stage.CONNECT)
    if said.status >= 500:  # older than extensions
        said = yield SendBytes(f"HELO {name}\r\n".encode(), Stage.CONNECT)
    if said.status != 250:
        raise _turned_away(said)
    words = [line[4:].upper().split(" ", 1) for line in said.lines[1:] if len(line) > 4]
    return said, {keyword: "".join(rest) for keyword, *rest in words}


def _log_in(
    envelope: Envelope, offers: Offers, said: SmtpReply
) -> Generator[SendBytes, SmtpReply, None]:
    """Log in by PLAIN (RFC 4616), else by LOGIN, which old servers know alone."""
    known = offers.get("AUTH", "").split()
    user, password = envelope.username.encode(), envelope.password.encode()
    if "PLAIN" in known:
        steps = [b"AUTH PLAIN " + base64.b64encode(b"\0" + user + b"\0" + password)]
    elif "LOGIN" in known:
        steps = [b"AUTH LOGIN", base64.b64encode(user), base64.b64encode(password)]
    else:
        reason = "the server offers no log-in by password"
        raise SessionEnded(Failure(FailureKind.LOGIN, reason, said.status, said.lines, Stage.LOGIN))
    for step in steps:
        said = yield SendBytes(step + b"\r\n", Stage.LOGIN)
        if said.status != (235 if step is steps[-1] else 334):
            reason = "the log-in was refused"
            raise SessionEnded(
                Failure(FailureKind.LOGIN, reason, said.status, said.lines, Stage.LOGIN)
            )


def mail_transaction(
    envelope: Envelope, message: bytes, offers: Offers, *, reset: bool = False
) -> Transaction:
    """Hand over a message. Gives the reply that decides; `reset` ends an earlier one first.

    Raises Ended when the connection is of no use any more.
    """
    size = f" SIZE={len(message)}" if "SIZE" in offers else ""
    commands = [(Stage.MAIL, f"MAIL FROM:{_path(envelope.mail_from)}{size}\r\n")]
    commands += [(Stage.RCPT, f"RCPT TO:{_path(to)}\r\n") for to in envelope.recipients]
    commands.append((Stage.DATA, "DATA\r\n"))
    if reset:
        commands.insert(0, (Stage.CONNECT, "RSET\r\n"))
    in_a_row = "PIPELINING" in offers
    unsaid = "".join(command for _, command in commands).encode()
    decisive: Reply | None = None
    said = SmtpReply(0, ())
    for stage, command in commands:
        said = yield SendBytes(unsaid if in_a_row else command.encode(), stage)
        unsaid = b""
        if decisive is None and not _goes_on(said, stage):
            decisive = _answer(said, stage)
            if not in_a_row:
                return decisive
    if decisive is not None:
        if said.status == 354:  # it waits for a message all the same (RFC 2920 §3.1): hang up
            raise SessionEnded(decisive)
        return decisive
    said = yield SendBytes(_stuffed(message), Stage.END, whole=True)
    if said.status // 100 != 2 and said.status < 400:
        raise SessionEnded(
            Failure(FailureKind.UNKNOWN, INVALID_REPLY, said.status, said.lines, Stage.END)
        )
    return _answer(said, Stage.END)


def _goes_on(said: SmtpReply, stage: Stage) -> bool:
    return said.status == 354 if stage is Stage.DATA else said.status // 100 == 2


def _answer(said: SmtpReply, stage: Stage) -> Reply:
    """Take a refusal as the answer. Raises Ended for what is none, and where the server leaves."""
    if said.status < 400 and stage is not Stage.END:
        kind = FailureKind.NOT_SENT
        raise SessionEnded(Failure(kind, INVALID_REPLY, said.status, said.lines, stage))
    reply = Reply(said.status, lines=said.lines, stage=stage)
    if said.status == 421 or stage is Stage.CONNECT:
        raise SessionEnded(reply)
    return reply


def _turned_away(said: SmtpReply) -> SessionEnded:
    if said.status >= 400:
        return SessionEnded(Reply(said.status, lines=said.lines, stage=Stage.CONNECT))
    return SessionEnded(_failed(FailureKind.NOT_SENT, INVALID_REPLY, said))


def _failed(kind: FailureKind, reason: str, said: SmtpReply) -> Failure:
    return Failure(kind, reason, said.status, said.lines, Stage.CONNECT)


def _path(address: str) -> str:
    return address if address.startswith("<") else f"<{address}>"


def _stuffed(message: bytes) -> bytes:
    """Double the dots that begin lines, and end the message (RFC 5321 §4.5.2)."""
    stuffed = message.replace(b"\r\n.", b"\r\n..")
    if stuffed.startswith(b"."):
        stuffed = b"." + stuffed
    return stuffed + (b".\r\n" if stuffed.endswith(b"\r\n") or not stuffed else b"\r\n.\r\n")
