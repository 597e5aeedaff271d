"""SMS by any HTTP API that a few settings can describe, such as an own gateway or a small service.

| answer | outcome |
|---|---|
| 2xx, and no code of a list | Accepted, with the value at `id_path` |
| a code (at `code_path`, else the HTTP status) of a list | the list's outcome |
| 401, 402, 403, 404 | Misconfigured |
| 429, 503 | Retryable |
| another 4xx | Rejected, the content's fault |
| anything else | Unknown |

`parameters_json` has placeholders: {to}, {number} (without +), {sender}, {text}, {id} (the
attempt's id) and {callback} (a signed URL for its receipts).
"""

import re
from collections.abc import Mapping
from typing import Annotated, Literal
from urllib.parse import urlencode

import orjson
from django.utils.translation import gettext as _
from pydantic import Field, SecretStr, field_validator

from messaging.domain.channels import Channel
from messaging.providers import callbacks
from rme.core import ids
from rme.core.outcomes import Accepted, OptOut, Outcome
from rme.core.provider import (
    CallbackContent,
    CallbackRequest,
    DeliveryReceipt,
    Dispatch,
    InboundSms,
    Provider,
    UnknownCode,
    http,
    refusals,
)
from rme.core.provider.refusals import RefusalMeaning
from rme.transport.messages import Failure, Reply, Request
from rme.transport.performer import Performer

Words = list[Annotated[str, Field(max_length=100)]]
STATUSES = {
    **dict.fromkeys(range(400, 500), RefusalMeaning.CONTENT),
    **refusals.BY_STATUS,
    402: RefusalMeaning.MISCONFIGURED,
}
_PLACEHOLDER = re.compile(r"\{(to|number|sender|text|id|callback)\}")


class HttpSmsSettings(http.HttpSettings):
    """How requests are written, what answers mean, and how receipts are read."""

    url: http.Url
    format: Literal["JSON", "FORM", "QUERY"] = "JSON"
    parameters_json: str = '{"to": "{to}", "from": "{sender}", "text": "{text}"}'
    authorization: SecretStr = Field(
        default=SecretStr(""), description="The Authorization header, like Bearer … or Basic …."
    )
    sender: Annotated[str, Field(max_length=20)] = ""
    id_path: str = Field(
        default="id", description="Where the answer has the message's id, like messages.0.id."
    )
    code_path: str = Field(
        default="",
        description="Where the answer has its code, like error.code. Empty: the HTTP status.",
    )
    dead_codes: Words = Field(default=[], description="Codes that mean: the number doesn't exist.")
    stop_codes: Words = Field(
        default=[],
        description="Codes that mean: the recipient replied STOP.",
    )
    recipient_codes: Words = Field(
        default=[], description="Codes that mean: the recipient can't be reached."
    )
    content_codes: Words = Field(default=[], description="Codes that mean: the text was rejected.")
    sender_codes: Words = Field(default=[], description="Codes that mean: the sender was rejected.")
    route_codes: Words = Field(
        default=[], description="Codes that mean: this account can't send there, but another may."
    )
    account_codes: Words = Field(
        default=[], description="Codes that mean: the account's settings are wrong."
    )
    later_codes: Words = Field(
        default=[], description="Codes that mean: not accepted, retry later."
    )
    callback_secret: Annotated[SecretStr, Field(max_length=200)] = Field(
        default=SecretStr(""),
        description="Signs {callback}. rme also accepts calls that have it as their key.",
    )
    status_field: str = "status"
    reference_field: str = Field(
        default="reference", description="The field of a receipt that has {id}."
    )
    sent_words: Words = ["sent"]
    delivered_words: Words = ["delivered"]
    failed_words: Words = ["failed", "undelivered", "expired", "rejected"]
    dead_words: Words = []
    stop_words: Words = Field(
        default=[], description="Failed words that mean: the recipient replied STOP."
    )
    soft_words: Words = Field(
        default=["expired"], description="Failed words that mean: unreachable right now."
    )
    quiet_words: Words = Field(
        default=["queued", "accepted"], description="Words that report nothing new."
    )
    from_field: str = "from"
    text_field: str = "text"
    opt_out_field: str = Field(
        default="", description="The field of an inbound SMS that says STOP or START."
    )
    inbound_id_field: str = Field(
        default="",
        description="The field of an inbound SMS with its id, by which rme knows repeated calls.",
    )

    @field_validator("parameters_json")
    @classmethod
    def _an_object_of_texts(cls, text: str) -> str:
        try:
            orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise ValueError(_("is no JSON")) from error
        if not http.read_object(text.encode()):
            raise ValueError(_("must be an object that is not empty"))
        return text


class HttpSms(Provider):
    """Hand SMS to an HTTP API as its settings describe it."""

    kind = "http_sms"
    label = "SMS by HTTP"
    callback_help = (
        "Enter this URL as the address for receipts and inbound SMS, followed by ?key= and the "
        "callback secret."
    )
    channels = frozenset({Channel.SMS})
    Settings = HttpSmsSettings
    settings: HttpSmsSettings

    def request(self, dispatch: Dispatch) -> Request:
        sms, account = dispatch.sms, self.settings
        values = {
            "to": sms.to,
            "number": sms.to.removeprefix("+"),
            "sender": sms.sender or account.sender,
            "text": http.encodable(sms.text),
            "id": dispatch.attempt_id,
            "callback": callbacks.signed_url(dispatch, account.callback_secret.get_secret_value()),
        }
        template = http.read_object(account.parameters_json.encode())
        filled = {name: _fill(value, values) for name, value in template.items()}
        url, body, kind, method = account.url, b"", "", "POST"
        match account.format:
            case "JSON":
                body, kind = orjson.dumps(filled), "application/json"
            case "FORM":
                body, kind = urlencode(filled).encode(), "application/x-www-form-urlencoded"
            case "QUERY":
                url, method = f"{url}{'&' if '?' in url else '?'}{urlencode(filled)}", "GET"
        headers = {"Content-Type": kind, "Authorization": account.authorization.get_secret_value()}
        used_headers = tuple((name, value) for name, value in headers.items() if value)
        return account.request(url, body, used_headers, method=method)

    def outcome(self, reply: Reply | Failure) -> Outcome:
        if isinstance(reply, Failure):
            return http.failure_outcome(reply)
        account, answer = self.settings, http.read_object(reply.body)
        code = http.text_of(http.value_at(answer, account.code_path)) if account.code_path else ""
        code = code or str(reply.status)
        reason = f"refused: {reply.status} {code}"
        codes_by_outcome = (
            (account.dead_codes, RefusalMeaning.DEAD),
            (account.stop_codes, RefusalMeaning.STOPPED),
            (account.recipient_codes, RefusalMeaning.RECIPIENT),
            (account.content_codes, RefusalMeaning.CONTENT),
            (account.route_codes, RefusalMeaning.ELSEWHERE),
            (account.sender_codes, RefusalMeaning.SENDER),
            (account.account_codes, RefusalMeaning.MISCONFIGURED),
            (account.later_codes, RefusalMeaning.LATER),
        )
        if meaning := next((meaning for codes, meaning in codes_by_outcome if code in codes), None):
            return meaning.outcome(reason, http.retry_after(reply))
        if reply.status in (200, 201, 202):
            return Accepted(http.text_of(http.value_at(answer, account.id_path)))
        return refusals.by_status(reply, reason, STATUSES)

    def outcome_of(self, dispatch: Dispatch, reply: Reply | Failure) -> Outcome:
        return refusals.of_message(self.outcome(reply), dispatch.sms.sender)

    def is_authentic(self, callback: CallbackRequest, transport: Performer) -> bool:
        secret = self.settings.callback_secret.get_secret_value()
        return callbacks.is_signed(callback, secret) or callbacks.has_secret(callback, secret)

    def read_callback(self, callback: CallbackRequest) -> CallbackContent:
        account = self.settings
        fields: Mapping[str, object] = {
            **http.read_object(callback.body),
            **callbacks.parameters(callback),
        }
        status = http.text_of(http.value_at(fields, account.status_field)).lower()
        if not status and (sender := http.text_of(http.value_at(fields, account.from_field))):
            text = http.text_of(http.value_at(fields, account.text_field), 2000)
            path = account.inbound_id_field
            own_id = http.text_of(http.value_at(fields, path)) if path else ""
            taken_as = http.text_of(http.value_at(fields, account.opt_out_field))
            return [InboundSms(sender, "", text, id=own_id, taken_as=taken_as)]
        text_id = http.text_of(
            fields.get("attempt") or http.value_at(fields, account.reference_field)
        )
        attempt_id = ids.parse_reported(text_id)
        words = (
            (account.delivered_words, "delivered"),
            (account.dead_words, "bounced"),
            (account.stop_words, "failed"),
            (account.failed_words, "failed"),
            (account.sent_words, "sent"),
        )
        kind = next((k for spellings, k in words if status in map(str.lower, spellings)), None)
        if attempt_id is None or not status or status in map(str.lower, account.quiet_words):
            return []
        if kind is None:
            return [UnknownCode(status)]
        soft = status in map(str.lower, account.soft_words)
        stopped = status in map(str.lower, account.stop_words)
        opt_out = OptOut.STOP if kind == "failed" and stopped else None
        return [DeliveryReceipt(attempt_id, kind, status[:100], soft, opt_out=opt_out)]


def _fill(value: object, values: Mapping[str, str]) -> object:
    """Return a value with the placeholders of every text filled in once."""
    match value:
        case str():
            return _PLACEHOLDER.sub(lambda match: values[match[1]], value)
        case dict():
            return {name: _fill(inner, values) for name, inner in value.items()}
        case list():
            return [_fill(inner, values) for inner in value]
    return value
