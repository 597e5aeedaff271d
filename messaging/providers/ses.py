"""Email by Amazon SES: SendEmail of its API v2
(https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_SendEmail.html).

| answer | outcome |
|---|---|
| 200 | Accepted, with its `MessageId` |
| an error of ERRORS below | what the table says |
| 401, 403, 404 | Misconfigured |
| 429, 503 | Retryable: not taken |
| another 400 | Rejected, the content's fault |
| anything else | Unknown |

django-anymail is not used for SES: it calls SES by boto3, which is large and has its own
connections, and it does not check SNS's signatures. `sigv4` signs a request in thirty lines. SES
reports by SNS; only the topic that the settings name is accepted.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import formataddr
from typing import Annotated

import orjson
from pydantic import Field, SecretStr, StringConstraints, field_validator

from messaging.domain.channels import Channel
from messaging.providers import callbacks, ses_events, sigv4, sns
from rme.core import addresses
from rme.core.outcomes import Accepted, Outcome
from rme.core.provider import CallbackContent, CallbackRequest, Dispatch, Provider, http, refusals
from rme.core.provider.credentials import DESTINATION
from rme.core.provider.refusals import (
    CONTENT,
    ELSEWHERE,
    LATER,
    MESSAGE_LATER,
    MISCONFIGURED,
    RefusalTable,
    Rows,
)
from rme.transport.messages import Failure, InvalidRequest, Reply, Request
from rme.transport.performer import Performer

ERRORS: Rows = (
    # `type text`; the first row that fits counts.
    # https://docs.aws.amazon.com/ses/latest/APIReference-V2/CommonErrors.html
    (r"(TooManyRequests|Throttling|LimitExceeded|ServiceUnavailable)\w* .*", LATER),
    (r"MailFromDomainNotVerified\w* .*", MESSAGE_LATER),  # of one sender domain
    (r"AccessDenied\w* .*:identity/.*", MESSAGE_LATER),  # the key may not send as this domain
    (r"(AccountSuspended|SendingPaused|NotFound)\w* .*", MISCONFIGURED),
    (r"(AccessDenied|UnrecognizedClient|InvalidSignature)\w* .*", MISCONFIGURED),
    (r"(SignatureDoesNotMatch|InvalidClientTokenId|ExpiredToken)\w* .*", MISCONFIGURED),
    (r"(MissingAuthenticationToken|RequestExpired)\w* .*", MISCONFIGURED),
    (r"MessageRejected\w* .*not verified.*", MESSAGE_LATER),  # one sender; a sandbox's recipient
    (r"MessageRejected\w* .*", CONTENT),
    # It does not say which address: the sender's would suppress every recipient.
    (r"BadRequest\w* .*(illegal|invalid|missing final).*(address|domain).*", ELSEWHERE),
    (r"BadRequest\w* .*(local address|domain) contains.*", ELSEWHERE),
)
_TABLE = RefusalTable(ERRORS)
STATUSES = {**refusals.BY_STATUS, 413: CONTENT}
CALLBACK_AGE = timedelta(hours=2)
"""A message that SNS signed longer ago is a replay: SNS retries for at most an hour."""
_ADDRESS = re.compile(r"[\x21-\x3b\x3d\x3f-\x7e]{1,200}@[A-Za-z0-9.-]{1,253}")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]+")
_ARN = r"^(arn:aws[a-z-]*:sns:[a-z0-9-]{5,30}:[0-9]{12}:[A-Za-z0-9_.-]{1,256})?$"


class SesSettings(http.HttpSettings):
    """The region, the access key, and the topic that reports."""

    region: Annotated[str, StringConstraints(pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9]$"), DESTINATION]
    access_key_id: Annotated[str, StringConstraints(pattern=r"^[A-Z0-9]{16,128}$")]
    secret_access_key: SecretStr
    configuration_set: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{0,64}$")] = Field(
        default="", description="Needed for receipts."
    )
    topic_arn: Annotated[str, StringConstraints(pattern=_ARN)] = Field(
        default="", description="The SNS topic of receipts. rme accepts no other."
    )
    base_url: http.Url | None = Field(default=None, description="Only for another endpoint of SES.")
    sns_url: http.Url | None = Field(default=None, description="Only for another endpoint of SNS.")

    @field_validator("base_url", "sns_url", mode="before")
    @classmethod
    def _none(cls, value: object) -> object:
        return value or None  # the form shows None as nothing

    @property
    def ses(self) -> str:
        """Return SES's URL."""
        return (self.base_url or f"https://email.{_host(self.region)}").rstrip("/")

    @property
    def sns(self) -> str:
        """Return SNS's URL in the topic's region."""
        parts = self.topic_arn.split(":")
        region = parts[3] if len(parts) > 3 else self.region
        return (self.sns_url or f"https://sns.{_host(region)}").rstrip("/")


def _host(region: str) -> str:
    return f"{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"


class Ses(Provider):
    """Hand emails to Amazon SES."""

    kind = "ses"
    label = "Amazon SES"
    callback_help = (
        "Subscribe this URL over HTTPS to the SNS topic of your configuration set. rme confirms "
        "the SNS subscription automatically."
    )
    channels = frozenset({Channel.EMAIL})
    Settings = SesSettings
    settings: SesSettings

    def request(self, dispatch: Dispatch) -> Request:
        body = orjson.dumps(_body(dispatch, self.settings.configuration_set))
        return self._signed("POST", "outbound-emails", body)

    def _signed(self, method: str, path: str, body: bytes = b"") -> Request:
        account = self.settings
        url = f"{account.ses}/v2/email/{path}"
        secret = account.secret_access_key.get_secret_value()
        key = sigv4.AccessKey(account.access_key_id, secret, account.region, "ses")
        base_headers = {"Content-Type": "application/json"}
        now = datetime.now(UTC)
        headers = sigv4.signed(key, method, url, headers=base_headers, body=body, now=now)
        return account.request(url, body, tuple(headers.items()), method=method)

    def check(self, transport: Performer) -> Outcome | None:
        """Read the account (GetAccount); None for a key that is known and may only send."""
        (reply,) = transport.perform([self._signed("GET", "account")])
        kind = reply.headers.get("x-amzn-errortype", "") if isinstance(reply, Reply) else ""
        return None if kind.startswith("AccessDenied") else http.check_outcome(reply)

    def outcome(self, reply: Reply | Failure) -> Outcome:
        if isinstance(reply, Failure):
            return http.failure_outcome(reply)
        answer = http.read_object(reply.body)
        if reply.status == 200 and (message_id := http.text_of(answer.get("MessageId"), 255)):
            return Accepted(message_id)
        return _refused(reply, answer)

    def is_authentic(self, callback: CallbackRequest, transport: Performer) -> bool:
        message = http.read_object(callback.body)
        topic = self.settings.topic_arn
        if not topic or message.get("TopicArn") != topic or not _is_recent(message, callback):
            return False
        account = self.settings
        return sns.is_signed(message, account.sns, transport, account.ca_pem)

    def confirm(self, callback: CallbackRequest, transport: Performer) -> None:
        message = http.read_object(callback.body)
        if message.get("Type") == sns.CONFIRMATION:
            sns.confirm(message, self.settings.sns, transport, self.settings.ca_pem)

    def read_callback(self, callback: CallbackRequest) -> CallbackContent:
        message = http.read_object(callback.body)
        text = message.get("Message")
        if message.get("Type") != sns.NOTIFICATION or not isinstance(text, str):
            return []
        receipt = ses_events.receipt(http.read_object(text.encode(errors="replace")))
        return [receipt] if receipt else []


def _body(dispatch: Dispatch, configuration_set: str) -> dict[str, object]:
    email = dispatch.email
    texts = {"Text": email.text, "Html": email.html}
    simple: dict[str, object] = {
        "Subject": _text(_line(email.subject)),
        "Body": {name: _text(text) for name, text in texts.items() if text},
    }
    if email.headers:
        simple["Headers"] = [
            {"Name": name, "Value": _line(value)} for name, value in email.headers.items()
        ]
    body: dict[str, object] = {
        "FromEmailAddress": _mailbox(email.from_name, email.from_address),
        "Destination": {"ToAddresses": [_mailbox(email.to_name, email.to)]},
        "Content": {"Simple": simple},
        "EmailTags": [{"Name": ses_events.ATTEMPT, "Value": dispatch.attempt_id}],
    }
    return body | ({"ConfigurationSetName": configuration_set} if configuration_set else {})


def _text(text: str) -> dict[str, str]:
    return {"Data": http.encodable(text), "Charset": "UTF-8"}


def _line(text: str) -> str:
    return _CONTROLS.sub(" ", http.encodable(text)).strip()


def _mailbox(name: str, address: str) -> str:
    """Return a mailbox in ASCII (RFC 2047), as SES requires."""
    if not _ADDRESS.fullmatch(address):
        raise InvalidRequest("not an email address that can be written")
    return formataddr((_line(name)[:200], address))


def _refused(reply: Reply, answer: Mapping[str, object]) -> Outcome:
    error = reply.headers.get("x-amzn-errortype") or answer.get("__type") or answer.get("code")
    kind = http.text_of(error, 100).partition(":")[0].rpartition("#")[2]
    text = http.text_of(answer.get("message") or answer.get("Message"), 300)
    reason = addresses.redacted(f"refused: {reply.status} {kind} {text}").strip()[:200]
    if meaning := _TABLE.find(f"{kind} {text}"):
        return meaning.outcome(reason, http.retry_after(reply))
    return refusals.by_status(reply, reason, STATUSES)


def _is_recent(message: Mapping[str, object], callback: CallbackRequest) -> bool:
    try:
        moment = datetime.fromisoformat(str(message.get("Timestamp")))
    except ValueError:
        return False
    return moment.tzinfo is not None and callbacks.is_recent(moment, callback, CALLBACK_AGE)
