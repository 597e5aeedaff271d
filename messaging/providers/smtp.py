"""Email by SMTP (RFC 5321): any mail server, with STARTTLS, TLS from the first byte, and log-in.

The table of bounce classes (`rme.core.provider.bounce_classes`) gives the meaning of refusals. Two
are the account's own fault: a refused sender, if the account has a `bounce_address`, since that is
the sender; and refused relaying, if it has no log-in. Other results:

| what happened | outcome |
|---|---|
| 2xx to the message | Accepted, with our Message-ID |
| no connection, or connection lost or time-out before the end of the message | Retryable |
| connection lost, or no answer, after the whole message was written | Unknown |
| log-in refused (5xx), certificate not to be trusted, no STARTTLS | Misconfigured |
| an address that may not be called | Misconfigured |
| log-in or STARTTLS refused for now (4xx) | Retryable |
"""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated
from urllib.parse import quote

from django.utils.translation import gettext as _
from pydantic import Field, SecretStr, StringConstraints, model_validator

from messaging.domain.channels import Channel
from messaging.providers import mime
from rme.core import addresses
from rme.core.outcomes import Accepted, Misconfigured, Outcome, Retryable, Unknown
from rme.core.provider import Dispatch, Provider, ProviderSettings, bounces
from rme.core.provider.bounce_classes import BounceClass
from rme.core.provider.credentials import DESTINATION, CaPem, Host, Port
from rme.core.provider.refusals import MISCONFIGURED
from rme.transport.messages import (
    Envelope,
    Failure,
    FailureKind,
    InvalidRequest,
    MailSecurity,
    Reply,
    Request,
    Stage,
)
from rme.transport.performer import Performer

_ADDRESS = re.compile(r"[\x21-\x3b\x3d\x3f-\x7e]{1,200}@[A-Za-z0-9.:\[\]-]{1,253}")
_MESSAGE_ID = re.compile(r"[\x21-\x3b\x3d\x3f-\x7e]{1,200}")


class SmtpSettings(ProviderSettings):
    """The mail server and the log-in."""

    host: Host
    port: Port = 587
    security: Annotated[MailSecurity, DESTINATION] = MailSecurity.STARTTLS
    username: str = ""
    password: SecretStr = SecretStr("")
    helo: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9.-]*$", max_length=253)] = Field(
        default="", description="The name in EHLO. Leave empty for this machine's name."
    )
    bounce_address: Annotated[
        str, StringConstraints(pattern=r"^([\x21-\x3b=\x3f-\x7e]+@[A-Za-z0-9.-]+)?$")
    ] = Field(default="", description="Where bounces go. Leave empty for the sender's address.")
    ca_pem: CaPem = ""
    timeout: Annotated[float, Field(gt=0, le=25)] = 20.0

    @model_validator(mode="after")
    def _no_password_in_clear(self) -> "SmtpSettings":
        if self.username and self.security is MailSecurity.NONE:
            raise ValueError(_("a log-in needs STARTTLS or TLS"))
        return self


class Smtp(Provider):
    """Hand emails to a mail server."""

    kind = "smtp"
    label = "SMTP"
    channels = frozenset({Channel.EMAIL})
    Settings = SmtpSettings
    settings: SmtpSettings

    def request(self, dispatch: Dispatch) -> Request:
        email = dispatch.email
        if not (_ADDRESS.fullmatch(email.to) and _ADDRESS.fullmatch(email.from_address)):
            raise InvalidRequest("not an email address that can be written")
        sender = self.settings.bounce_address or email.from_address
        return self._request(sender, (email.to,), mime.write(email, message_id(dispatch)))

    @cached_property
    def _url(self) -> str:
        account = self.settings
        scheme = "smtps" if account.security is MailSecurity.TLS else "smtp"
        host = f"[{account.host}]" if ":" in account.host else account.host
        return f"{scheme}://{host}:{account.port}/{quote(account.helo)}"

    def _request(
        self, sender: str, recipients: tuple[str, ...], body: bytes, *, checks_login: bool = False
    ) -> Request:
        account = self.settings
        return Request(
            url=self._url,
            body=body,
            envelope=Envelope(
                mail_from=sender,
                recipients=recipients,
                security=account.security,
                username=account.username,
                password=account.password.get_secret_value(),
                checks_login=checks_login,
            ),
            connect_timeout=min(10.0, account.timeout),
            timeout=account.timeout,
            ca_pem=account.ca_pem,
        )

    def check(self, transport: Performer) -> Outcome:
        """Log in, and send NOOP in place of a message."""
        (reply,) = transport.perform([self._request("", (), b"", checks_login=True)])
        outcome = self.outcome(reply)
        # Nothing was sent, so nothing can be in doubt.
        return Retryable(outcome.reason) if isinstance(outcome, Unknown) else outcome

    def outcome(self, reply: Reply | Failure) -> Outcome:
        if isinstance(reply, Failure):
            return _failed(reply)
        return Accepted() if reply.status < 300 else self._refused(reply)

    def _refused(self, reply: Reply) -> Outcome:
        """Return the outcome of a refusal by its bounce class."""
        text = " ".join(line[4:] for line in reply.lines)
        bounce_class = bounces.of_reply(reply.stage, reply.status, text)
        meaning = (
            MISCONFIGURED if self._is_own_fault(bounce_class, reply.stage) else bounce_class.meaning
        )
        return meaning.outcome(_reason(reply.lines))

    def _is_own_fault(self, bounce_class: BounceClass, stage: Stage | None) -> bool:
        """Return whether the account's settings caused the refusal, and not the message."""
        if bounce_class is BounceClass.RELAY:
            return not self.settings.username
        is_of_sender = bounce_class in (BounceClass.SENDER, BounceClass.MALFORMED_SENDER)
        return is_of_sender and stage is Stage.MAIL and bool(self.settings.bounce_address)

    def outcome_of(self, dispatch: Dispatch, reply: Reply | Failure) -> Outcome:
        """Return the outcome; the id of an accepted email is its Message-ID."""
        outcome = self.outcome(reply)
        return Accepted(message_id(dispatch)) if isinstance(outcome, Accepted) else outcome


def message_id(dispatch: Dispatch) -> str:
    """Return an email's Message-ID without angle brackets; made of the attempt if it is unset."""
    email = dispatch.email
    if _MESSAGE_ID.fullmatch(email.message_id):
        return email.message_id
    return f"{dispatch.attempt_id}@{email.from_address.rpartition('@')[2]}"


def _failed(failure: Failure) -> Outcome:
    reason = _reason(failure.lines) if failure.status >= 400 else ""
    reason = reason or failure.reason
    match failure.kind:
        case FailureKind.UNKNOWN:
            return Unknown(failure.reason)
        case FailureKind.NOT_SENT:
            return Retryable(failure.reason)
        case _ if 400 <= failure.status < 500:
            return Retryable(reason)
    return Misconfigured(reason)


def _reason(lines: Sequence[str]) -> str:
    """Return a reply as a reason, without the addresses that servers repeat."""
    text = " ".join([lines[0][:3], *(line[4:] for line in lines)]) if lines else ""
    return addresses.redacted(text[:400])[:200]
