"""SMS by Vonage's Messages API (https://developer.vonage.com/en/api/messages-olympus).

| answer | outcome |
|---|---|
| 202 | Accepted, with its `message_uuid` |
| 401, 403, 404 | Misconfigured |
| 402 | Misconfigured: no credit |
| a problem of PROBLEMS below (the end of its `type`) | what the table says |
| 422 with `to` among the `invalid_parameters` | Rejected, the number is dead |
| 422 with `from` there | the sender is refused: Misconfigured, unless the request named it |
| another 400 or 422 | Rejected, the content's fault |
| 429, 503 | Retryable: not taken |
| anything else | Unknown |

Receipts carry a JWT (HS256 with the account's signature secret, RFC 7519) that holds the digest of
the body (https://developer.vonage.com/en/getting-started/concepts/webhooks).
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated

import jwt
import orjson
from pydantic import Field, SecretStr

from messaging.domain.channels import Channel
from messaging.providers import callbacks
from rme.core import ids
from rme.core.addresses import Digits
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

RECEIPTS: dict[str, str] = {
    "submitted": "sent",
    "delivered": "delivered",
    "read": "open",
    "rejected": "failed",
    "undeliverable": "failed",
}
PROBLEMS: dict[str, RefusalMeaning] = {
    # https://developer.vonage.com/en/api-errors/messages
    "1060": RefusalMeaning.MISCONFIGURED,  # the account is barred
    "1070": RefusalMeaning.MISCONFIGURED,  # no credit
    "1120": RefusalMeaning.SENDER,
    "1420": RefusalMeaning.SENDER,
    "1140": RefusalMeaning.MISCONFIGURED,  # a facility that is not enabled
    "1160": RefusalMeaning.ELSEWHERE,  # a trial account does not send to this number
    "1170": RefusalMeaning.DEAD,  # not a number
    "1190": RefusalMeaning.DEAD,  # the number is no longer in use
    "1240": RefusalMeaning.STOPPED,
    "1250": RefusalMeaning.ELSEWHERE,  # no route
    "1260": RefusalMeaning.ELSEWHERE,  # the destination is not reached
}
"""Meanings of problems by their number, at the end of their `type`."""
DEAD_ERRORS = frozenset({"1170", "1190"})
"""Titles of errors that mean a dead number: not a number, no longer in use."""
SOFT_ERRORS = frozenset({"1180", "1220"})
"""Titles of errors of a phone that is unreachable for now."""
STOP_ERRORS = frozenset({"1240"})
"""Titles of errors of a person who wrote STOP
(https://developer.vonage.com/en/opt-out-assist/guides/messaging-opted-out-numbers)."""
STATUSES = {**refusals.BY_STATUS, 402: RefusalMeaning.MISCONFIGURED}
CALLBACK_AGE = timedelta(hours=1)
"""A call that was signed longer ago is a replay."""


class VonageSettings(http.HttpSettings):
    """The log-in and the sender."""

    api_key: Annotated[str, Field(min_length=1, max_length=100)]
    api_secret: SecretStr
    signature_secret: SecretStr = Field(
        default=SecretStr(""),
        description="Checks receipts and inbound SMS. Without it, rme accepts none.",
    )
    sender: Annotated[str, Field(max_length=15)] = Field(
        default="", description="A number without + or a sender id."
    )
    base_url: http.Url = "https://api.nexmo.com"


class Vonage(Provider):
    """Hand SMS to Vonage."""

    kind = "vonage"
    label = "Vonage"
    callback_help = (
        "Receipts need no setup: each message carries the URL, if it is https. For inbound SMS, "
        "enter it as the inbound URL of your application's Messages capability."
    )
    channels = frozenset({Channel.SMS})
    Settings = VonageSettings
    settings: VonageSettings

    def request(self, dispatch: Dispatch) -> Request:
        sms, account = dispatch.sms, self.settings
        body = {
            "message_type": "text",
            "channel": "sms",
            "to": sms.to.removeprefix("+"),
            "from": (sms.sender or account.sender).removeprefix("+"),
            "text": http.encodable(sms.text),
            "client_ref": dispatch.attempt_id,
        }
        if dispatch.callback_url.startswith("https:"):
            body |= {"webhook_url": dispatch.callback_url, "webhook_version": "v1"}
        headers = (
            self._login(),
            ("Content-Type", "application/json"),
            ("Accept", "application/json"),
        )
        return account.request(f"{account.base_url}/v1/messages", orjson.dumps(body), headers)

    def _login(self) -> tuple[str, str]:
        account = self.settings
        login = f"{account.api_key}:{account.api_secret.get_secret_value()}".encode()
        return "Authorization", f"Basic {base64.b64encode(login).decode()}"

    def check(self, transport: Performer) -> Outcome:
        # https://developer.vonage.com/en/api/application.v2#listApplication
        url = f"{self.settings.base_url}/v2/applications?page_size=1"
        request = self.settings.request(url, b"", (self._login(),), method="GET")
        return http.check(transport, request)

    def outcome(self, reply: Reply | Failure) -> Outcome:
        if isinstance(reply, Failure):
            return http.failure_outcome(reply)
        answer = http.read_object(reply.body)
        reason = f"refused: {reply.status} {http.text_of(answer.get('title'), 80)}".rstrip()
        if reply.status == 202 and (uuid := http.text_of(answer.get("message_uuid"))):
            return Accepted(uuid)
        problem = http.text_of(answer.get("type")).rpartition("#")[2]
        if 400 <= reply.status < 500 and problem in PROBLEMS:
            return PROBLEMS[problem].outcome(reason)
        if reply.status in (400, 422):
            return _invalid(answer).outcome(reason)
        return refusals.by_status(reply, reason, STATUSES)

    def outcome_of(self, dispatch: Dispatch, reply: Reply | Failure) -> Outcome:
        return refusals.of_message(self.outcome(reply), dispatch.sms.sender)

    def is_authentic(self, callback: CallbackRequest, transport: Performer) -> bool:
        kind, _, token = callback.headers.get("authorization", "").partition(" ")
        secret = self.settings.signature_secret.get_secret_value()
        if not secret or kind.lower() != "bearer":
            return False
        try:
            # The time is checked below, by the moment of the call.
            claims = jwt.decode(
                token.strip(),
                secret,
                algorithms=["HS256"],
                options={
                    "require": ["iat"],
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_aud": False,
                },
            )
            signed_at = datetime.fromtimestamp(float(claims["iat"]), UTC)
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, OSError):
            return False
        digest = str(claims.get("payload_hash", ""))
        expected = hashlib.sha256(callback.body).hexdigest()
        matches = hmac.compare_digest(digest.lower().encode(), expected.encode())
        return matches and callbacks.is_recent(signed_at, callback, CALLBACK_AGE)

    def read_callback(self, callback: CallbackRequest) -> CallbackContent:
        body = http.read_object(callback.body)
        if "status" not in body and body.get("message_type") == "text":
            sender, to = http.text_of(body.get("from")), http.text_of(body.get("to"))
            text, own_id = (
                http.text_of(body.get("text"), 2000),
                http.text_of(body.get("message_uuid")),
            )
            return [InboundSms(sender, to, text, id=own_id, digits=Digits.INTERNATIONAL)]
        attempt_id = ids.parse_reported(http.text_of(body.get("client_ref")))
        status = http.text_of(body.get("status"))
        kind = RECEIPTS.get(status)
        if attempt_id is None or not status:
            return []
        if kind is None:
            return [UnknownCode(status)]
        title = http.text_of(http.value_at(body, "error.title"), 80)
        reason = f"Vonage {title}" if title else None
        if kind != "failed":
            return [DeliveryReceipt(attempt_id, kind, reason)]
        opt_out = OptOut.STOP if title in STOP_ERRORS else None
        kind = "bounced" if title in DEAD_ERRORS else "failed"
        return [DeliveryReceipt(attempt_id, kind, reason, title in SOFT_ERRORS, opt_out=opt_out)]


def _invalid(answer: Mapping[str, object]) -> RefusalMeaning:
    """Return what a refusal means, by the parameters that were found invalid."""
    wrong = answer.get("invalid_parameters")
    entries = wrong if isinstance(wrong, list) else []
    names = {http.text_of(entry.get("name")) for entry in entries if isinstance(entry, dict)}
    if "to" in names:
        return RefusalMeaning.DEAD
    return RefusalMeaning.SENDER if "from" in names else RefusalMeaning.CONTENT
