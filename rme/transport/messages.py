"""Requests, replies and failures: what the transport takes and returns."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from functools import lru_cache

_BREAKING = re.compile(r"[^\x20-\x7e\t]")
"""Any character that could end a line, or that is not ASCII."""
_URL = re.compile(r"[\x21-\x7e]+")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_MAILBOX = re.compile(r"<[\x21-\x3b\x3d\x3f-\x7e]*>|[\x21-\x3b\x3d\x3f-\x7e]*")
"""No spaces, no inner angle brackets: a parameter could follow them (RFC 5321 §4.1.2)."""


Headers = tuple[tuple[str, str], ...]


@lru_cache(maxsize=512)
def _are_tokens(*texts: str) -> bool:
    return all(_TOKEN.fullmatch(text) for text in texts)


TIME_OUT = "time-out"
"""The reason of a failure by time-out."""


class InvalidRequest(ValueError):
    """A request that cannot be written safely: a defect of the code that built it."""


class MailSecurity(StrEnum):
    """How a connection to a mail server is protected."""

    NONE = "NONE"
    STARTTLS = "STARTTLS"
    TLS = "TLS"


class Stage(StrEnum):
    """The part of an SMTP session that a reply or a failure belongs to."""

    CONNECT = "CONNECT"
    """The greeting, EHLO and STARTTLS."""
    LOGIN = "LOGIN"
    MAIL = "MAIL"
    RCPT = "RCPT"
    DATA = "DATA"
    """The command DATA, before the message."""
    END = "END"
    """The message itself, up to its last line."""


@dataclass(slots=True, repr=False)
class Envelope:
    """An SMTP envelope (RFC 5321 §2.3.1) and how to log in. Raises InvalidRequest when built.

    It must not be changed later; `frozen` would take three times as long to build.
    Addresses may stand in angle brackets; an empty `mail_from` is the null sender. With
    `checks_login` nothing is sent: the reply is that to NOOP, behind the log-in.
    """

    mail_from: str
    recipients: tuple[str, ...]
    security: MailSecurity = MailSecurity.STARTTLS
    username: str = ""
    password: str = ""
    checks_login: bool = False

    def __post_init__(self) -> None:
        if not self.checks_login and not (self.recipients and all(self.recipients)):
            raise InvalidRequest("an envelope without a recipient")
        for path in (self.mail_from, *self.recipients):
            if not _MAILBOX.fullmatch(path):
                raise InvalidRequest("an address that cannot stand in an envelope")

    def __repr__(self) -> str:
        return f"Envelope({len(self.recipients)} recipients, {self.security})"


class CommonHeaders:
    """Headers that many requests have in common: checked and encoded once for all of them.

    Raises InvalidRequest when built.
    """

    __slots__ = ("block", "headers")

    def __init__(self, *headers: tuple[str, str]) -> None:
        _check(headers)
        self.headers: Headers = headers
        self.block = b""
        """Their encoding for HTTP/2, once a request has needed it."""


@dataclass(slots=True, repr=False, eq=False)
class Request:
    """One request. Times are in seconds, sizes in bytes. Raises InvalidRequest when built.

    It must not be changed later; `frozen` would take three times as long to build.

    With an `envelope` it is a mail to `smtp://host:port/ehlo-name` (or `smtps://`), and `body` the
    message with CRLF line ends, before dot-stuffing.
    A response longer than `max_response` ends as UNKNOWN.
    """

    url: str
    body: bytes = b""
    method: str = "POST"
    headers: Headers = ()
    common_headers: CommonHeaders | None = None
    envelope: Envelope | None = None
    connect_timeout: float = 5.0
    timeout: float = 20.0
    max_response: int = 256 * 1024
    http2: bool = False
    ca_pem: str = ""
    """Certificates (PEM) to trust in place of certifi's."""

    def __post_init__(self) -> None:
        if not _URL.fullmatch(self.url):
            raise InvalidRequest("a character that no URL has")
        if not _are_tokens(self.method):
            raise InvalidRequest("not a method")
        if self.headers:
            _check(self.headers)
        if self.envelope:
            if not self.body.count(b"\r\n") == self.body.count(b"\n") == self.body.count(b"\r"):
                raise InvalidRequest(
                    "a message with bare line ends"
                )  # some servers would end the message there
            implicit = self.url.startswith("smtps:")
            if implicit is not (self.envelope.security is MailSecurity.TLS):
                raise InvalidRequest("smtps and TLS from the first byte go together")

    def __repr__(self) -> str:
        """Return a text without what may be secret or personal: path, query, headers, body."""
        origin = "/".join(self.url.split("/", 3)[:3]).rpartition("@")[2]
        return f"Request({self.method} {origin}, {len(self.body)} bytes)"


def _check(headers: Headers) -> None:
    """Raise InvalidRequest for headers that cannot be written."""
    names, values = zip(*headers, strict=True)
    joined = "".join(values)
    if _are_tokens(*names) and joined.isascii() and joined.isprintable():
        return
    for name, value in headers:
        if not _are_tokens(name) or _BREAKING.search(value):  # a tab may stand in a value
            raise InvalidRequest(f"a header that cannot be written: {name!r}")


@dataclass(slots=True)
class Reply:
    """A complete response, not to be changed. `status` is the HTTP status or the SMTP reply code.

    `lines` are the lines of the last SMTP reply, and `stage` is what it answered. Header names are
    lower case; of a repeated header the last counts. `elapsed` is in seconds.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)
    lines: tuple[str, ...] = field(default=(), repr=False)
    elapsed: float = 0.0
    stage: Stage | None = None


class FailureKind(StrEnum):
    """Whether the other side may have received a request that has no complete response."""

    NOT_SENT = "NOT_SENT"
    """It cannot have: no connection, a refused stream, or a mail not completely written."""
    UNKNOWN = "UNKNOWN"
    """It may have."""
    REFUSED_ADDRESS = "REFUSED_ADDRESS"
    """Not sent: the address may not be called."""
    TLS = "TLS"
    """Not sent: the certificate is not trusted, or the other side does not speak TLS."""
    LOGIN = "LOGIN"
    """Not sent: the mail server refused the log-in."""


@dataclass(frozen=True, slots=True)
class Failure:
    """No complete response. `reason` is a short text without secrets or personal addresses.

    `status`, `lines` and `stage` belong to the last response, if there was one: an HTTP status
    whose body did not end, or the last SMTP reply.
    """

    kind: FailureKind
    reason: str
    status: int = 0
    lines: tuple[str, ...] = field(default=(), repr=False)
    stage: Stage | None = None


NOT_STARTED = Failure(FailureKind.NOT_SENT, "no connection was free")
"""The result of a request that had not started at the start time-out: nothing was sent, and it says
nothing about the host.
"""

Result = Reply | Failure


def retry_after(reply: Reply) -> float | None:
    """Return the seconds until the time of `Retry-After` (RFC 9110 §10.2.3): seconds or a date.

    None if there is none, it is neither, or the date is past. The caller has to cap it.
    """
    text = reply.headers.get("retry-after", "").strip()[:64]
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    seconds = (when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return seconds if math.isfinite(seconds) and seconds > 0 else None


OnResults = Callable[[Sequence[tuple[int, Result]]], object]
"""Receives results while other requests are in flight: the place of each request, its result."""
