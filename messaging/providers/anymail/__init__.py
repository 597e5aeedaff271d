"""Email by the services that django-anymail supports, over our transport.

django-anymail turns an email into a service's request, and reads what the service answers and
reports. Its own connections (`requests`, one request at a time, with redirects) are not used.
Amazon SES has its own provider (`ses`), since django-anymail calls it by boto3.

`services` is the table of the services, which the console's forms read. `refusals.py`
has what they refuse; `receipts.py` reads their webhooks.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from email.headerregistry import Address
from typing import Annotated, Any

import requests
import structlog
from anymail.exceptions import AnymailError
from django.core.mail import EmailMultiAlternatives
from django.utils.module_loading import import_string
from django.utils.translation import gettext
from pydantic import Field, SecretStr, StringConstraints, model_validator

from messaging.domain.channels import Channel
from messaging.providers.anymail import receipts, refusals
from messaging.providers.anymail.services import BASIC, NEVER, SERVICES, SVIX, ServiceName
from rme.core.outcomes import NOT_TRIED, Accepted, Outcome, Rejected, Unknown
from rme.core.provider import (
    CallbackContent,
    CallbackRequest,
    Dispatch,
    Email,
    Progress,
    Provider,
    http,
    no_progress,
)
from rme.core.provider.base import UNWRITABLE
from rme.core.provider.credentials import DESTINATION
from rme.transport.messages import NOT_STARTED, Failure, InvalidRequest, Reply, Request
from rme.transport.performer import Performer

log = structlog.get_logger(__name__)

_ADDRESS = re.compile(r"[\x21-\x3b\x3d\x3f-\x7e]{1,200}@[A-Za-z0-9.-]{1,253}")
_KEY = re.compile(r"[\x21-\x7e]+")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]+")
_CHECK = Dispatch("check", Email("a@example.com", "b@example.com", "", "Check", "Check"))
"""An email that is never sent: a check has its headers."""
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]*$", max_length=253)]


class AnymailSettings(http.HttpSettings):
    """The service and the log-in. A setting that the service does not have is refused."""

    service: Annotated[ServiceName, DESTINATION] = Field(
        description="scaleway sends no receipts, so its messages stay SENT. django-anymail no "
        "longer supports sendgrid; rme tests it against its documentation only."
    )
    api_key: SecretStr = Field(description="The API key or token. For Postmark, the server token.")
    secret_key: SecretStr = Field(default=SecretStr(""), description="Mailjet: the second key.")
    sender_domain: Name = Field(
        default="", description="Mailgun: the sending domain. Leave empty for the sender's."
    )
    message_stream: Name = Field(
        default="", description="Postmark: leave empty for the default stream."
    )
    subaccount: Name = Field(default="", description="SparkPost.")
    project_id: Name = Field(default="", description="Scaleway.")
    region: Annotated[Name, DESTINATION] = Field(
        default="", description="Scaleway: leave empty for fr-par."
    )
    callback_secret: SecretStr = Field(
        default=SecretStr(""),
        description="Checks receipts: the signing key, or user:password as in the callback URL. "
        "Without it, rme accepts no receipts.",
    )
    base_url: Annotated[str, DESTINATION] = Field(
        default="",
        pattern=r"^(https?://[\x21-\x7a\x7c\x7e]+)?$",
        max_length=500,
        description="The API's URL, for another region or your own server.",
    )

    @model_validator(mode="after")
    def _fits(self) -> "AnymailSettings":
        service = SERVICES[self.service]
        values = {name: _text(getattr(self, name)) for name in (*OWN, "base_url")}
        if unset := [name for name in service.needs if not values[name]]:
            raise ValueError(
                gettext("%(service)s needs %(unset)s")
                % {"service": self.service, "unset": unset[0]}
            )
        if odd := [name for name in OWN if values[name] and name not in service.arguments]:
            raise ValueError(
                gettext("%(service)s has no %(odd)s") % {"service": self.service, "odd": odd[0]}
            )
        if not all(_KEY.fullmatch(values[name]) for name in ("api_key", *service.needs)):
            raise ValueError(gettext("a key has a character that isn't allowed"))
        self._fits_callback(self.callback_secret.get_secret_value())
        return self

    def _fits_callback(self, secret: str) -> None:
        check = SERVICES[self.service].check
        if not secret:
            return
        if check in (NEVER, "api_key"):
            raise ValueError(
                gettext("%(service)s has no callback_secret") % {"service": self.service}
            )
        if check == BASIC and not re.fullmatch(r"[^:]+:.{16,}", secret):
            raise ValueError(
                gettext("callback_secret must be user:password, of 16 characters or more")
            )
        if check == SVIX and receipts.svix_key(secret) is None:
            raise ValueError(gettext("callback_secret must be like whsec_…"))
        if check not in (BASIC, SVIX) and not receipts.accepts_key(self.service, secret):
            raise ValueError(gettext("callback_secret isn't a signing key"))


OWN = (
    *("api_key", "secret_key", "sender_domain", "message_stream"),
    *("subaccount", "project_id", "region"),
)
"""The settings that only some services have."""


def _text(value: SecretStr | str) -> str:
    return value.get_secret_value() if isinstance(value, SecretStr) else value


class _LabelledEmail(EmailMultiAlternatives):
    """An email with the attributes that django-anymail adds; its backends read those set."""

    tags: list[str]
    metadata: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A request, and what django-anymail needs to read its answer."""

    request: Request
    payload: Any
    message: EmailMultiAlternatives


class Anymail(Provider):
    """Hand emails to a service that django-anymail supports."""

    kind = "anymail"
    label = "Email service (django-anymail)"
    callback_help = (
        "Enter this URL as the service's webhook for delivery events. If it asks for a user and a "
        "password, write https://user:password@…, as in the callback secret."
    )
    channels = frozenset({Channel.EMAIL})
    Settings = AnymailSettings
    settings: AnymailSettings

    def __init__(self, settings: AnymailSettings) -> None:
        super().__init__(settings)
        self.service = SERVICES[settings.service]
        arguments = {
            argument: value
            for name, argument in self.service.arguments.items()
            if (value := _text(getattr(settings, name)))
        }
        if settings.base_url:
            arguments["api_url"] = settings.base_url
        backend = import_string(f"anymail.backends.{settings.service}.EmailBackend")
        self.backend = backend(**arguments)

    @property
    def spf_mechanism(self) -> str:
        return self.service.spf

    def send(
        self,
        dispatches: Sequence[Dispatch],
        transport: Performer,
        progress: Progress = no_progress,
    ) -> list[Outcome]:
        """Send a window of emails at once; one that cannot be written fails alone."""
        window = [self._prepare(dispatch) for dispatch in dispatches]
        going = [(index, prepared) for index, prepared in enumerate(window) if prepared]

        def on_replies(replies: Sequence[tuple[int, Reply | Failure]]) -> None:
            answers = [(*going[place], reply) for place, reply in replies]
            progress([(index, self._outcome(sent, reply)) for index, sent, reply in answers])

        replies = iter(transport.perform([each.request for _, each in going], on_replies))
        return [self._outcome(each, next(replies)) if each else UNWRITABLE for each in window]

    def request(self, dispatch: Dispatch) -> Request:
        return self._build(dispatch).request

    def check(self, transport: Performer) -> Outcome | None:
        """Read a page of the service's API with an email's headers; None if no page can be read."""
        if not self.service.ping:
            return None
        headers = self.request(_CHECK).headers
        url = f"{self.backend.api_url.rstrip('/')}/{self.service.ping}"
        return http.check(transport, self.settings.request(url, b"", headers, method="GET"))

    def outcome(self, reply: Reply | Failure) -> Outcome:
        """Return what a refusal or a missing answer means; only `send` reads an acceptance."""
        if isinstance(reply, Failure):
            return http.failure_outcome(reply)
        return refusals.refusal(self.settings.service, reply) or Unknown("an answer not read")

    def is_authentic(self, callback: CallbackRequest, transport: Performer) -> bool:
        return receipts.is_authentic(self.settings.service, self._callback_secret, callback)

    def read_callback(self, callback: CallbackRequest) -> CallbackContent:
        return receipts.read(self.settings.service, self._callback_secret, callback)

    @property
    def _callback_secret(self) -> str:
        if self.service.check == "api_key":
            return self.settings.api_key.get_secret_value()
        return self.settings.callback_secret.get_secret_value()

    def _prepare(self, dispatch: Dispatch) -> _Prepared | None:
        try:
            return self._build(dispatch)
        except Exception as error:  # noqa: BLE001 (whatever it is, the others are sent)
            # without its text, which may repeat the address
            attempt, kind = dispatch.attempt_id, type(error).__name__
            log.warning("provider.request", kind=self.kind, attempt=attempt, error=kind)
            return None

    def _build(self, dispatch: Dispatch) -> _Prepared:
        message = self._message(dispatch)
        payload = self.backend.build_message_payload(message, self.backend.send_defaults)
        params = payload.get_request_params(self.backend.api_url)
        prepared = requests.Request(**params).prepare()
        # A body that is not a form is JSON, even without a type (Mandrill).
        headers = {"Content-Type": "application/json", **prepared.headers}
        headers.pop("Content-Length", None)  # the transport's
        if self.service.once:
            headers[self.service.once] = dispatch.attempt_id
        body = prepared.body or b""
        request = self.settings.request(
            str(prepared.url),
            body if isinstance(body, bytes) else body.encode(),
            tuple((name, str(value)) for name, value in headers.items()),
            method=str(prepared.method),
        )
        return _Prepared(request, payload, message)

    def _message(self, dispatch: Dispatch) -> EmailMultiAlternatives:
        """Return Django's message of an email, with the attempt's id as django-anymail has it."""
        email = dispatch.email
        message = _LabelledEmail(
            subject=_line(email.subject),
            body=http.encodable(email.text),
            from_email=_mailbox(email.from_name, email.from_address),
            to=[_mailbox(email.to_name, email.to)],
            headers={name: _line(value) for name, value in email.headers.items()},
        )
        if email.html:
            message.attach_alternative(http.encodable(email.html), "text/html")
        if self.service.tag:
            message.tags = [dispatch.attempt_id]
        else:
            message.metadata = {receipts.ATTEMPT: dispatch.attempt_id}
        return message

    def _outcome(self, sent: _Prepared, reply: Reply | Failure) -> Outcome:
        if reply is NOT_STARTED:
            return NOT_TRIED
        if isinstance(reply, Failure):
            return http.failure_outcome(reply)
        if refused := refusals.refusal(self.settings.service, reply):
            return refused
        response = requests.Response()
        response.status_code, response._content = reply.status, reply.body
        response.headers.update(reply.headers)
        try:
            self.backend.raise_for_status(response, sent.payload, sent.message)
            statuses = self.backend.parse_recipient_status(response, sent.payload, sent.message)
            (status,) = statuses.values()
        except (AnymailError, LookupError, TypeError, ValueError, AttributeError, RecursionError):
            return Unknown(f"an answer that makes no sense: {reply.status}")
        return _taken(status.status, http.text_of(status.message_id, 255))


def _taken(status: str | None, message_id: str) -> Outcome:
    """Return what django-anymail's status of the recipient means."""
    match status:
        case "sent" | "queued":
            return Accepted(message_id)
        case "invalid":
            return Rejected("the service takes this address for none", hard=True)
        case "rejected" | "failed":
            return Rejected("the service does not send to this address")
    return Unknown("the service does not say whether it was taken")


def _line(text: str) -> str:
    return _CONTROLS.sub(" ", http.encodable(text)).strip()


def _mailbox(name: str, address: str) -> str:
    if not _ADDRESS.fullmatch(address):
        raise InvalidRequest("not an email address that can be written")
    return str(Address(_line(name), addr_spec=address))
