"""What goes into the transport and what comes out of it."""

from dataclasses import dataclass, field
from enum import StrEnum


class InvalidRequest(ValueError):
    """A provider made a request that cannot be written safely: a fault of ours."""


class MailSecurity(StrEnum):
    """How a connection to a mail server is protected."""

    NONE = "NONE"
    STARTTLS = "STARTTLS"
    TLS = "TLS"


@dataclass(frozen=True, slots=True)
class Envelope:
    """An SMTP envelope (RFC 5321 §2.3.1) and how to log in."""

    mail_from: str
    recipients: tuple[str, ...]
    security: MailSecurity = MailSecurity.STARTTLS
    username: str = ""
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Request:
    """One request. Times are in seconds, sizes in bytes.

    With an `envelope` it is a mail to `smtp://host:port` (or `smtps://`), and `body` the message.
    Headers may hold credentials and stay out of the repr.
    """

    url: str
    body: bytes = field(default=b"", repr=False)
    method: str = "POST"
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    envelope: Envelope | None = None
    connect_timeout: float = 5.0
    timeout: float = 20.0
    max_response: int = 256 * 1024
    http2: bool = False
    ca_pem: str = field(default="", repr=False)
    """Certificates to trust instead of the usual ones."""

    def __post_init__(self) -> None:
        texts = [self.url, *(part for header in self.headers for part in header)]
        if self.envelope:
            texts += [self.envelope.mail_from, *self.envelope.recipients]
        if any(set(text) & {"\r", "\n", "\0"} for text in texts):
            raise InvalidRequest("a control character in an address, a header or an envelope")


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. `status` is the HTTP status or the SMTP reply code.

    `lines` are the reply lines of an SMTP conversation in their order. Header names are lower
    case. `elapsed` is in seconds.
    """

    status: int
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)
    lines: tuple[str, ...] = field(default=(), repr=False)
    elapsed: float = 0.0


class FailureKind(StrEnum):
    """Whether the other side may have taken a request that it did not answer."""

    NOT_SENT = "NOT_SENT"
    UNKNOWN = "UNKNOWN"
    REFUSED_ADDRESS = "REFUSED_ADDRESS"
    """Not sent: the address is not one that may be called."""
    TLS = "TLS"
    """Not sent: the other side could not prove who it is, or does not speak TLS."""
    LOGIN = "LOGIN"
    """Not sent: the mail server refused the log-in."""


@dataclass(frozen=True, slots=True)
class Failure:
    """No (whole) answer. `reason` is a short text without secrets or addresses of people.

    `status` and `lines` are the last SMTP reply, where there was one.
    """

    kind: FailureKind
    reason: str
    status: int = 0
    lines: tuple[str, ...] = field(default=(), repr=False)
