"""Email by SMTP (RFC 5321): any mail server, with STARTTLS, TLS from the first byte, and log-in.

What the server's replies mean (enhanced codes of RFC 3463 and RFC 5248 where it gives them):

| reply | meaning |
|---|---|
| 2xx | Accepted |
| 4xx, greylisting, no connection, turned away at the greeting | Retryable |
| 5.1.1 to 5.1.6, 5.1.10, 5.2.1; 550, 551, 553 to RCPT | Rejected, the address is dead |
| 5.2.2, 5.4.x; another 5xx to RCPT | Rejected, the recipient's fault |
| 5.2.3, 5.3.4, 5.6.x, 5.7.x; any 5xx after the message | Rejected, the content's fault |
| 5xx to MAIL, 5.1.7, 5.1.8, 530, 534, 535, 538, log-in refused, no STARTTLS | Misconfigured |
| lost after the whole message was written | Unknown |
"""

import re
from collections.abc import Sequence
from typing import Annotated, ClassVar
from urllib.parse import quote

from pydantic import Field, SecretStr, StringConstraints, model_validator

from messaging.providers import mime
from messaging.providers.base import Dispatch, Email, Provider, ProviderSettings
from rme.core.channels import Channel
from rme.core.outcomes import (
    Accepted,
    Fault,
    Misconfigured,
    Outcome,
    Rejected,
    Retryable,
    Unknown,
)
from rme.core.transport import Envelope, Failure, FailureKind, MailSecurity, Reply, Request

_ENHANCED = re.compile(r"^\d{3}[ -](\d\.\d{1,3}\.\d{1,3})\b")

CONFIGURATION = {530, 534, 535, 538}
DEAD = {"5.1.1", "5.1.2", "5.1.3", "5.1.4", "5.1.5", "5.1.6", "5.1.10", "5.2.1"}
SENDER = {"5.1.7", "5.1.8"}
CONTENT_CODES = {"5.2.3", "5.3.4"}
CONTENT_CLASSES = ("5.6.", "5.7.")
DEAD_BASIC = {550, 551, 553}


class SmtpSettings(ProviderSettings):
    """How to reach the mail server."""

    host: Annotated[
        str, StringConstraints(pattern=r"^[A-Za-z0-9._:-]+$", min_length=1, max_length=253)
    ]
    port: Annotated[int, Field(ge=1, le=65535)] = 587
    security: MailSecurity = MailSecurity.STARTTLS
    username: str = ""
    password: SecretStr = SecretStr("")
    helo: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9.-]*$", max_length=253)] = Field(
        default="", description="The name to say in EHLO; empty: this machine's."
    )
    bounce_address: Annotated[
        str, StringConstraints(pattern=r"^([\x21-\x3b=\x3f-\x7e]+@[A-Za-z0-9.-]+)?$")
    ] = Field(default="", description="Where bounces go; empty: the sender's address.")
    timeout: Annotated[float, Field(gt=0, le=25)] = 20.0

    @model_validator(mode="after")
    def _no_password_in_clear(self) -> "SmtpSettings":
        if self.username and self.security is MailSecurity.NONE:
            raise ValueError("a log-in needs STARTTLS or TLS")
        return self


class Smtp(Provider):
    """Hand emails to a mail server."""

    kind: ClassVar[str] = "smtp"
    label: ClassVar[str] = "SMTP"
    channels: ClassVar[frozenset[Channel]] = frozenset({Channel.EMAIL})
    Settings: ClassVar[type[ProviderSettings]] = SmtpSettings
    settings: SmtpSettings

    def request(self, dispatch: Dispatch) -> Request:
        email = dispatch.content
        assert isinstance(email, Email)  # the account's channel
        account = self.settings
        scheme = "smtps" if account.security is MailSecurity.TLS else "smtp"
        host = f"[{account.host}]" if ":" in account.host else account.host
        return Request(
            url=f"{scheme}://{host}:{account.port}/{quote(account.helo)}",
            body=mime.write(email),
            envelope=Envelope(
                mail_from=f"<{account.bounce_address or email.from_address}>",
                recipients=(f"<{email.to}>",),
                security=account.security,
                username=account.username,
                password=account.password.get_secret_value(),
            ),
            connect_timeout=min(5.0, account.timeout),
            timeout=account.timeout,
        )

    def outcome(self, reply: Reply | Failure) -> Outcome:
        if isinstance(reply, Failure):
            return _failed(reply)
        if reply.status < 400:
            return Accepted(provider_id=_queue_id(reply.lines))
        return _refused(reply.status, reply.lines)


def _failed(failure: Failure) -> Outcome:
    match failure.kind:
        case FailureKind.UNKNOWN:
            return Unknown(failure.reason)
        case FailureKind.LOGIN if 400 <= failure.status < 500:
            return Retryable(_words(failure.lines) or failure.reason)
        case FailureKind.LOGIN | FailureKind.REFUSED_ADDRESS | FailureKind.TLS:
            return Misconfigured(failure.reason)
    return Retryable(failure.reason)


def _refused(status: int, lines: Sequence[str]) -> Outcome:
    """Say what a reply of 400 and more means, by the command that it answers."""
    reason = _words(lines)
    enhanced = _enhanced(lines)
    if status < 500:
        return Retryable(reason)
    where = stage(lines)
    if where == "CONNECT":
        return Retryable(reason)
    if status in CONFIGURATION or where == "MAIL" or enhanced in SENDER:
        return Misconfigured(reason)
    if where == "DATA" or enhanced in CONTENT_CODES or enhanced.startswith(CONTENT_CLASSES):
        return Rejected(reason, Fault.CONTENT)
    hard = enhanced in DEAD or (not enhanced and status in DEAD_BASIC)
    return Rejected(reason, Fault.RECIPIENT, hard=hard)


def stage(lines: Sequence[str]) -> str:
    """Say which command the last reply answers: CONNECT, MAIL, RCPT or DATA.

    A kept connection begins with MAIL; a new one with the greeting, EHLO and perhaps STARTTLS
    (220 and EHLO again) and AUTH (334, 235).
    """
    codes = [line[:3] for line in lines if line[3:4] != "-"]
    position = 0
    while position < len(codes) and codes[position] == "220":
        position += 2  # the greeting, or STARTTLS, and the EHLO after it
    while position < len(codes) and codes[position] in ("334", "235"):
        position += 1
    after = len(codes) - position
    if after <= 0:
        return "CONNECT"
    return {1: "MAIL", 2: "RCPT"}.get(after, "DATA")


def _enhanced(lines: Sequence[str]) -> str:
    found = _ENHANCED.match(lines[-1]) if lines else None
    return found.group(1) if found else ""


def _words(lines: Sequence[str]) -> str:
    """Give the last reply as a reason, without the addresses that servers like to repeat."""
    text = lines[-1] if lines else ""
    return re.sub(r"\S+@\S+", "…", text)[:200]


def _queue_id(lines: Sequence[str]) -> str:
    """Give the server's own id of the message, as most servers tell it (`queued as 4F2A…`)."""
    found = re.search(r"queued as (\S+)", lines[-1]) if lines else None
    return found.group(1)[:255] if found else ""
