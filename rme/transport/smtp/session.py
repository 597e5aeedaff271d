"""An SMTP session (RFC 5321), without a socket.

Each generator yields what is to be written and receives the reply. `open_session` takes a
connection from the greeting to the log-in. `mail_transaction` sends one message: with PIPELINING
(RFC 2920) in two round trips, or in one where it was announced with the message before it.
"""

import base64
import re
from collections.abc import Generator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from rme.transport.messages import Envelope, Failure, FailureKind, MailSecurity, Reply, Stage

INVALID_REPLY = "the answer makes no sense"
_REPLY_LINE = re.compile(rb"([2-5]\d\d)(?:([ -])([^\0\r\n]*))?\r?\n")
_MAX_REPLY = 64 * 1024
"""Bytes. A reply has lines of 512 bytes at most (RFC 5321 §4.5.3.1.5)."""

Offers = dict[str, str]
"""A server's extensions, from its reply to EHLO: keyword to parameters."""


@dataclass(frozen=True, slots=True)
class SmtpReply:
    """A complete reply."""

    status: int
    lines: tuple[str, ...]


class SendBytes(NamedTuple):
    """Write `data`, then wait for a reply. `ends_message`: its last byte ends a message."""

    data: bytes
    stage: Stage
    ends_message: bool = False


@dataclass(frozen=True, slots=True)
class StartTls:
    """Start TLS; there is no reply."""


class InvalidReply(Exception):
    """What was received is not an SMTP reply."""


class SessionEnded(Exception):
    """The session has ended early, with a result for the mail."""

    def __init__(self, result: Reply | Failure) -> None:
        super().__init__()
        self.result = result


Opening = Generator[SendBytes | StartTls, SmtpReply, Offers]
Greeting = Generator[SendBytes | StartTls, SmtpReply, tuple[SmtpReply, Offers]]
Transaction = Generator[SendBytes, SmtpReply, Reply]


class ReplyReader:
    """Reads replies from bytes as they arrive; no byte is searched twice."""

    def __init__(self) -> None:
        self._unread = bytearray()
        self._searched = 0  # of `_unread`, where no line ends
        self._lines: list[str] = []  # of an incomplete reply
        self._size = 0  # of these

    def __bool__(self) -> bool:
        """Return whether there are bytes that are not a complete reply yet."""
        return bool(self._unread or self._lines)

    def add(self, part: bytes) -> None:
        """Store received bytes."""
        self._unread += part

    def take(self) -> SmtpReply | None:
        """Return the first reply; None while it is not complete (RFC 5321 §4.2).

        Raises InvalidReply.
        """
        while (end := self._unread.find(b"\n", self._searched) + 1) > 0:
            line = bytes(self._unread[:end])
            del self._unread[:end]
            self._searched = 0
            reply, continues = _read_line(line)
            if not (continues or self._lines):
                return reply
            self._size += end
            if self._size > _MAX_REPLY:
                raise InvalidReply
            self._lines += reply.lines
            if not continues:
                reply = SmtpReply(reply.status, tuple(self._lines))
                self._lines, self._size = [], 0
                return reply
        self._searched = len(self._unread)
        if self._size + self._searched > _MAX_REPLY:
            raise InvalidReply
        return None


@lru_cache(maxsize=64)  # most lines of a server are the same
def _read_line(line: bytes) -> tuple[SmtpReply, bool]:
    """Return a line as a reply of its own, and whether others continue it. Raises InvalidReply."""
    match = _REPLY_LINE.fullmatch(line)
    if not match or len(line) > _MAX_REPLY:
        raise InvalidReply
    text = line.decode("utf-8", "replace").rstrip("\r\n")
    return SmtpReply(int(match[1]), (text,)), match[2] == b"-"


def open_session(envelope: Envelope, name: str) -> Opening:
    """Open a session, up to where MAIL is allowed; return what the server offers.

    Raises SessionEnded if the server does not allow it.
    """
    reply = yield SendBytes(b"", Stage.CONNECT)
    if reply.status != 220:
        raise _rejected(reply)
    reply, offers = yield from _greet(name)
    if envelope.security is MailSecurity.STARTTLS:
        if "STARTTLS" not in offers:  # never continue without TLS
            raise SessionEnded(
                _failed(FailureKind.TLS, "the server does not offer STARTTLS", reply)
            )
        reply = yield SendBytes(b"STARTTLS\r\n", Stage.CONNECT)
        if reply.status != 220:
            raise SessionEnded(_failed(FailureKind.TLS, "the server does not begin TLS", reply))
        yield StartTls()
        reply, offers = yield from _greet(name)  # offers made in clear do not count
    if envelope.username:
        yield from _log_in(envelope, offers, reply)
    return offers


def _greet(name: str) -> Greeting:
    reply = yield SendBytes(f"EHLO {name}\r\n".encode(), Stage.CONNECT)
    if reply.status >= 500:  # a server without extensions
        reply = yield SendBytes(f"HELO {name}\r\n".encode(), Stage.CONNECT)
    if reply.status != 250:
        raise _rejected(reply)
    words = [line[4:].upper().split(" ", 1) for line in reply.lines[1:] if len(line) > 4]
    return reply, {keyword: "".join(parameters) for keyword, *parameters in words}


def _log_in(
    envelope: Envelope, offers: Offers, reply: SmtpReply
) -> Generator[SendBytes, SmtpReply, None]:
    """Log in by PLAIN (RFC 4616), else by LOGIN, the only way for some old servers."""
    mechanisms = offers.get("AUTH", "").split()
    user, password = envelope.username.encode(), envelope.password.encode()
    if "PLAIN" in mechanisms:
        steps = [b"AUTH PLAIN " + base64.b64encode(b"\0" + user + b"\0" + password)]
    elif "LOGIN" in mechanisms:
        steps = [b"AUTH LOGIN", base64.b64encode(user), base64.b64encode(password)]
    else:
        reason = "the server offers no log-in by password"
        raise SessionEnded(
            Failure(FailureKind.LOGIN, reason, reply.status, reply.lines, Stage.LOGIN)
        )
    for step in steps:
        reply = yield SendBytes(step + b"\r\n", Stage.LOGIN)
        if reply.status != (235 if step is steps[-1] else 334):
            reason = "the log-in was refused"
            raise SessionEnded(
                Failure(FailureKind.LOGIN, reason, reply.status, reply.lines, Stage.LOGIN)
            )


def announcement(envelope: Envelope, message: bytes, offers: Offers) -> bytes:
    """Return the commands before a message, to be written with the message before it.

    A message's end may be the first of a group of commands, and DATA has to be the last
    (RFC 2920 §3.1).
    """
    return "".join(_commands(envelope, message, offers)).encode()


def mail_transaction(
    envelope: Envelope,
    message: bytes,
    offers: Offers,
    *,
    reset: bool = False,
    announced: bool = False,
) -> Transaction:
    """Send one message; return the reply that decides. `reset` ends an earlier transaction first.
    With `announced` its `announcement` has been written.

    Raises SessionEnded if the connection cannot be used any more.
    """
    stages = [Stage.MAIL, *[Stage.RCPT] * len(envelope.recipients), Stage.DATA]
    commands = [] if announced else _commands(envelope, message, offers)
    if reset:
        stages.insert(0, Stage.CONNECT)
        commands.insert(0, "RSET\r\n")
    pipelining = "PIPELINING" in offers
    unsent = ["".join(commands)] if pipelining else commands
    decisive: Reply | None = None
    reply = SmtpReply(0, ())
    for stage in stages:
        reply = yield SendBytes(unsent.pop(0).encode() if unsent else b"", stage)
        if decisive is None and not _continues(reply, stage):
            decisive = _decided(reply, stage)
            if not pipelining:
                return decisive
    if decisive is not None:
        if reply.status == 354:  # it still expects a message (RFC 2920 §3.1): close
            raise SessionEnded(decisive)
        return decisive
    reply = yield SendBytes(_dot_stuffed(message), Stage.END, ends_message=True)
    if reply.status // 100 != 2 and reply.status < 400:
        raise SessionEnded(
            Failure(FailureKind.UNKNOWN, INVALID_REPLY, reply.status, reply.lines, Stage.END)
        )
    return _decided(reply, Stage.END)


def _commands(envelope: Envelope, message: bytes, offers: Offers) -> list[str]:
    """Return MAIL, RCPT for each recipient, and DATA."""
    size = f" SIZE={len(message)}" if "SIZE" in offers else ""
    return [
        f"MAIL FROM:{_path(envelope.mail_from)}{size}\r\n",
        *[f"RCPT TO:{_path(to)}\r\n" for to in envelope.recipients],
        "DATA\r\n",
    ]


def noop() -> Transaction:
    """Ask whether the server still answers (RFC 5321 §4.1.1.9); return its reply."""
    reply = yield SendBytes(b"NOOP\r\n", Stage.MAIL)
    return Reply(reply.status, lines=reply.lines, stage=Stage.MAIL)


def _continues(reply: SmtpReply, stage: Stage) -> bool:
    return reply.status == 354 if stage is Stage.DATA else reply.status // 100 == 2


def _decided(reply: SmtpReply, stage: Stage) -> Reply:
    """Return the deciding reply. Raises SessionEnded if it is none, or the server closes."""
    if reply.status < 400 and stage is not Stage.END:
        kind = FailureKind.NOT_SENT
        raise SessionEnded(Failure(kind, INVALID_REPLY, reply.status, reply.lines, stage))
    decisive = Reply(reply.status, lines=reply.lines, stage=stage)
    if reply.status == 421 or stage is Stage.CONNECT:
        raise SessionEnded(decisive)
    return decisive


def _rejected(reply: SmtpReply) -> SessionEnded:
    if reply.status >= 400:
        return SessionEnded(Reply(reply.status, lines=reply.lines, stage=Stage.CONNECT))
    return SessionEnded(_failed(FailureKind.NOT_SENT, INVALID_REPLY, reply))


def _failed(kind: FailureKind, reason: str, reply: SmtpReply) -> Failure:
    return Failure(kind, reason, reply.status, reply.lines, Stage.CONNECT)


def _path(address: str) -> str:
    return address if address.startswith("<") else f"<{address}>"


def _dot_stuffed(message: bytes) -> bytes:
    """Return a message with dots escaped, and its end (RFC 5321 §4.5.2)."""
    escaped = message.replace(b"\r\n.", b"\r\n..")
    if escaped.startswith(b"."):
        escaped = b"." + escaped
    return escaped + (b".\r\n" if escaped.endswith(b"\r\n") or not escaped else b"\r\n.\r\n")
