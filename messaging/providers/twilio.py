"""SMS by Twilio (https://www.twilio.com/docs/messaging/api/message-resource).

| answer | outcome |
|---|---|
| 201 | Accepted, with its `sid` |
| 4xx with a code of REFUSALS below | what the table says |
| 401, 403, 404 | Misconfigured |
| 429, 503 | Retryable: not taken |
| another 400 | Rejected, the content's fault |
| anything else | Unknown |

Twilio takes no idempotency key. Its callbacks are signed with the account's auth token
(https://www.twilio.com/docs/usage/security), over the URL that it was given: BASE_URL has to be the
URL at which Twilio reaches us. Signatures with a shared key (HMAC_SHA256) are not accepted. Where
Twilio cannot reach us, each message's status is polled (`status_by`).
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal
from urllib.parse import quote, urlencode, urlsplit
from uuid import UUID

from pydantic import Field, SecretStr, StringConstraints

from messaging.domain.channels import Channel
from messaging.providers import callbacks
from rme.core import ids
from rme.core.outcomes import Accepted, Fault, Misconfigured, OptOut, Outcome, Rejected, Retryable
from rme.core.provider import (
    CallbackContent,
    CallbackRequest,
    DeliveryReceipt,
    Dispatch,
    InboundSms,
    Provider,
    SentMessage,
    UnknownCode,
    http,
    refusals,
)
from rme.transport.messages import Failure, Reply, Request
from rme.transport.performer import Performer

DEAD = Rejected("no mobile number", hard=True)
UNREACHABLE = Rejected("this number cannot be written to")
CONTENT = Rejected("the text was refused", Fault.CONTENT)
SENDER = Misconfigured("the sender was refused", of_sender=True)
REFUSALS: dict[int, Outcome] = {
    # https://www.twilio.com/docs/api/errors
    20003: Misconfigured("authentication failed"),
    20404: Misconfigured("no such account"),
    20429: Retryable("too many requests"),
    14107: Retryable("too many messages"),
    21211: DEAD,  # not a phone number
    21214: UNREACHABLE,  # cannot be reached
    21610: Rejected("the person wrote STOP to this sender", opt_out=OptOut.STOP),
    21217: DEAD,  # not a phone number
    21265: UNREACHABLE,  # a short code
    21266: UNREACHABLE,  # the sender itself
    21408: Rejected("the region is not enabled", Fault.ROUTE),
    21602: CONTENT,  # empty
    21605: CONTENT,  # too long
    21617: CONTENT,  # more than 1600 characters
    21612: Rejected("no way from the sender to this number", Fault.ROUTE),
    21608: Rejected("a trial account does not send to this number", Fault.ROUTE),
    21212: SENDER,  # not a phone number
    21603: SENDER,  # none
    # Cannot send to this number; for other reasons Twilio has 21660 and 21661.
    21606: Retryable("the sender cannot send to this number", of_sender=True, blames_account=False),
    21659: SENDER,  # not a number of Twilio's; see DOMESTIC
    21660: SENDER,  # not a number of this account
    21661: SENDER,  # cannot send SMS
    21703: SENDER,  # the messaging service has no number
    21705: SENDER,  # no such messaging service
    21609: Misconfigured("the callback address was refused"),
    21611: Retryable("the sender's queue is full"),
    21614: DEAD,  # not a mobile
    21635: DEAD,  # a landline
    30001: Retryable("the queue is full"),
    30002: Misconfigured("the account is suspended"),
    63038: Retryable("the account's daily limit is reached"),
}
DOMESTIC = frozenset({21606, 21659})
"""What a short code gets for a number of another country, too
(https://www.twilio.com/docs/api/errors/21606, https://www.twilio.com/docs/api/errors/21659)."""
ABROAD = Rejected("the short code sends only within its country", Fault.ROUTE)
_SHORT_CODE = re.compile(r"[0-9]{3,8}")
RECEIPTS: dict[str, str] = {
    "sent": "sent",
    "delivered": "delivered",
    "read": "open",
    "undelivered": "failed",
    "failed": "failed",
}
"""By `MessageStatus` of a callback, or `status` of a polled message: the receipt's type."""
NO_NEWS = frozenset(
    {"accepted", "scheduled", "queued", "sending", "receiving", "received", "canceled"}
)
DEAD_ERRORS = frozenset({"21211", "21614", "21635", "30005"})
"""Error codes of `failed` and `undelivered` that mean a dead number."""
SOFT_ERRORS = frozenset({"30003", "30006"})
"""Error codes of an unreachable handset, a landline, or a carrier without a route."""
STOP_ERRORS = frozenset({"21610"})
"""Error codes of a person who wrote STOP."""
OTHER_ERRORS = frozenset(
    {
        "30001",  # the queue is full
        "30002",  # the account is suspended
        "30004",  # blocked, by the person or the carrier
        "30007",  # filtered as spam
        "30008",  # the carrier does not say why
        "30009",  # a segment was lost
        "30010",  # dearer than allowed
        "30034",  # a sender that is not registered
    }
)


class TwilioSettings(http.HttpSettings):
    """The log-in and the sender."""

    account_sid: Annotated[str, StringConstraints(pattern=r"^AC[0-9a-fA-F]{32}$")]
    auth_token: SecretStr = Field(description="Also signs receipts.")
    api_key_sid: Annotated[str, StringConstraints(pattern=r"^(SK[0-9a-fA-F]{32})?$")] = ""
    api_key_secret: SecretStr = SecretStr("")
    sender: Annotated[str, Field(max_length=34)] = Field(
        default="", description="A number (+12025550123), a sender id, or a service (MG…)."
    )
    status_by: Literal["CALLBACK", "POLL"] = Field(
        default="CALLBACK",
        description="POLL: rme asks Twilio for receipts, if Twilio can't call this service. You "
        "then receive no inbound SMS.",
    )
    base_url: http.Url = "https://api.twilio.com"


class Twilio(Provider):
    """Hand SMS to Twilio."""

    kind = "twilio"
    label = "Twilio"
    callback_help = (
        "Receipts need no setup: each message carries the URL. For inbound SMS, enter it as the "
        "webhook of your number or messaging service under A message comes in, with POST."
    )
    channels = frozenset({Channel.SMS})
    # https://www.twilio.com/docs/glossary/what-alphanumeric-sender-id
    shows_ascii_senders_only = True
    Settings = TwilioSettings
    settings: TwilioSettings

    def request(self, dispatch: Dispatch) -> Request:
        sms, account = dispatch.sms, self.settings
        sender = self.requested_sender(sms) or account.sender
        service = sender.startswith("MG") and len(sender) == 34
        form = {
            "To": sms.to,
            "MessagingServiceSid" if service else "From": sender,
            "Body": sms.text,
        }
        # Twilio refuses what it cannot reach.
        if dispatch.callback_url.startswith("https:") and not self.polls:
            form["StatusCallback"] = f"{dispatch.callback_url}?attempt={dispatch.attempt_id}"
        body = urlencode(form, errors="replace").encode()
        headers = (self._login(), ("Content-Type", "application/x-www-form-urlencoded"))
        return account.request(self._url("Messages.json"), body, headers)

    def _url(self, path: str) -> str:
        account = self.settings
        return f"{account.base_url}/2010-04-01/Accounts/{account.account_sid}/{path}"

    def _login(self) -> tuple[str, str]:
        account = self.settings
        user, secret = account.account_sid, account.auth_token
        if account.api_key_sid:
            user, secret = account.api_key_sid, account.api_key_secret
        login = base64.b64encode(f"{user}:{secret.get_secret_value()}".encode()).decode()
        return "Authorization", f"Basic {login}"

    def check(self, transport: Performer) -> Outcome:
        # Not the account itself, which an API key may not read.
        url, login = self._url("Messages.json?PageSize=1"), (self._login(),)
        return http.check(transport, self.settings.request(url, b"", login, method="GET"))

    def outcome(self, reply: Reply | Failure) -> Outcome:
        if isinstance(reply, Failure):
            return http.failure_outcome(reply)
        answer = http.read_object(reply.body)
        if reply.status in (200, 201) and (sid := http.text_of(answer.get("sid"))):
            return Accepted(sid)
        code = answer.get("code")
        if 400 <= reply.status < 500 and isinstance(code, int) and code in REFUSALS:
            if code in DOMESTIC and _SHORT_CODE.fullmatch(self.settings.sender):
                return ABROAD
            return _with_retry_after(REFUSALS[code], reply)
        reason = f"refused: {reply.status} {http.text_of(code)}".rstrip()
        return refusals.by_status(reply, reason)

    def outcome_of(self, dispatch: Dispatch, reply: Reply | Failure) -> Outcome:
        return refusals.of_message(self.outcome(reply), self.requested_sender(dispatch.sms))

    def is_authentic(self, callback: CallbackRequest, transport: Performer) -> bool:
        signature = callback.headers.get("x-twilio-signature", "").encode(errors="replace")
        form = set(callbacks.form_pairs(callback.body))  # a repeated parameter counts once
        if "json" in callback.headers.get("content-type", ""):
            digest = _query(callback).get("bodySHA256", "").encode(errors="replace")
            if not hmac.compare_digest(hashlib.sha256(callback.body).hexdigest().encode(), digest):
                return False
            form = set()  # the digest in the query signs the body
        query = f"?{callback.query}" if callback.query else ""
        text = query + "".join(name + value for name, value in sorted(form))
        matches = [
            hmac.compare_digest(self._sign(url + text), signature)
            for url in _spellings(callback.url)
        ]
        return any(matches) and _is_recent_receipt(callback)

    def _sign(self, text: str) -> bytes:
        secret = self.settings.auth_token.get_secret_value().encode()
        return base64.b64encode(hmac.new(secret, text.encode(errors="replace"), "sha1").digest())

    def read_callback(self, callback: CallbackRequest) -> CallbackContent:
        values = callbacks.parameters(callback)
        status, attempt_id = values.get("MessageStatus", ""), ids.parse(values.get("attempt", ""))
        if not status and values.get("From"):
            text, own_id = values.get("Body", ""), values.get("MessageSid", "")
            has_answer = "OptOutType" in values
            taken_as = values.get("OptOutType", "")
            return [
                InboundSms(
                    values["From"],
                    values.get("To", ""),
                    text,
                    has_answer,
                    id=own_id,
                    taken_as=taken_as,
                )
            ]
        return _receipts(attempt_id, status, values.get("ErrorCode", "")) if attempt_id else []

    @property
    def polls(self) -> bool:
        return self.settings.status_by == "POLL"

    def poll_request(self, message: SentMessage) -> Request:
        url = self._url(f"Messages/{quote(message.provider_id, safe='')}.json")
        return self.settings.request(url, headers=(self._login(),), method="GET")

    def read_poll_reply(
        self, message: SentMessage, reply: Reply | Failure
    ) -> Sequence[DeliveryReceipt | UnknownCode] | None:
        answer = http.read_object(reply.body) if isinstance(reply, Reply) else {}
        status = http.text_of(answer.get("status"), 32)
        if isinstance(reply, Reply) and reply.status == 404:  # it was deleted there
            return []
        # A refusal has a `status` too: that of HTTP.
        if isinstance(reply, Failure) or reply.status != 200 or not status:
            return None
        return _receipts(message.attempt_id, status, http.text_of(answer.get("error_code"), 16))


def _receipts(attempt_id: UUID, status: str, code: str) -> list[DeliveryReceipt | UnknownCode]:
    """Return the receipts of a message's status and error code (empty if there is none)."""
    if status in NO_NEWS or not status:
        return []
    if status not in RECEIPTS:
        return [UnknownCode(status)]
    kind = RECEIPTS[status]
    if kind == "failed" and code in DEAD_ERRORS:
        kind = "bounced"
    reason = f"Twilio {http.text_of(code, 16)}" if code else None
    opt_out = OptOut.STOP if kind == "failed" and code in STOP_ERRORS else None
    receipt = DeliveryReceipt(attempt_id, kind, reason, code in SOFT_ERRORS, opt_out=opt_out)
    is_known = not code or code in DEAD_ERRORS | SOFT_ERRORS | STOP_ERRORS | OTHER_ERRORS
    return [receipt] if is_known else [receipt, UnknownCode(code)]


def _with_retry_after(outcome: Outcome, reply: Reply) -> Outcome:
    if isinstance(outcome, Retryable):
        return replace(outcome, retry_after=http.retry_after(reply))
    return outcome


def _spellings(url: str) -> tuple[str, str]:
    """Return a URL without and with its port: Twilio signs either."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].removesuffix(f":{parts.port}")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    bare = parts._replace(netloc=host)
    return bare.geturl(), bare._replace(netloc=f"{host}:{port}").geturl()


def _is_recent_receipt(callback: CallbackRequest) -> bool:
    """Return whether a receipt is for a recent attempt; otherwise it is a replay.

    Twilio signs no time. An inbound SMS is stored once, by its MessageSid.
    """
    attempt_id = ids.parse(_query(callback).get("attempt", ""))
    age = callbacks.RECEIPT_AGE
    return attempt_id is None or callbacks.is_recent(ids.moment(attempt_id), callback, age)


def _query(callback: CallbackRequest) -> dict[str, str]:
    return callbacks.parameters(replace(callback, body=b""))
