"""SMS by Vonage's Messages API (https://developer.vonage.com/en/api/messages-olympus).

| answer | outcome |
|---|---|
| 202 | Accepted, with its `message_uuid` |
| 401, 403, 404 | Misconfigured |
| 402 | Misconfigured: no credit |
| 422 with `to` among the `invalid_parameters` | Rejected, the number is dead |
| 422 with `from` there | Misconfigured |
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

from messaging.providers import callbacks
from rme.core import ids
from rme.core.channels import Channel
from rme.core.outcomes import Accepted, Outcome
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
from rme.transport import Failure, Reply, Request, Transport

RECEIPTS: dict[str, str] = {
    "submitted": "sent",
    "delivered": "delivered",
    "read": "open",
    "rejected": "failed",
    "undeliverable": "failed",
}
DEAD_ERRORS = frozenset({"1240"})
"""Titles of errors that mean a dead number: illegal number."""
STATUSES = {**refusals.BY_STATUS, 402: RefusalMeaning.MISCONFIGURED}
CALLBACK_AGE = timedelta(hours=1)
"""A call that was signed longer ago is a replay."""


class VonageSettings(http.HttpSettings):
    """The log-in and the sender."""

    api_key: Annotated[str, Field(min_length=1, max_length=100)]
    api_secret: SecretStr
    signature_secret: SecretStr = Field(
        default=SecretStr(""),
        description="Checks receipts and inbound SMS; without it none is accepted.",
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
        "Nothing for receipts: each message names the URL, if it is https. For inbound SMS set "
        "it as the inbound URL of your application, Messages capability."
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

    def check(self, transport: Transport) -> Outcome:
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
        if reply.status in (400, 422):
            return _invalid(answer).outcome(reason)
        return refusals.by_status(reply, reason, STATUSES)

    def is_authentic(self, callback: CallbackRequest) -> bool:
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
            return [InboundSms(f"+{sender.lstrip('+')}", to, text, id=own_id)]
        attempt_id = ids.parse(http.text_of(body.get("client_ref")))
        status = http.text_of(body.get("status"))
        kind = RECEIPTS.get(status)
        if attempt_id is None or not status:
            return []
        if kind is None:
            return [UnknownCode(status)]
        title = http.text_of(http.value_at(body, "error.title"), 80)
        if kind == "failed" and title in DEAD_ERRORS:
            kind = "bounced"
        return [DeliveryReceipt(attempt_id, kind, f"Vonage {title}" if title else None)]


def _invalid(answer: Mapping[str, object]) -> RefusalMeaning:
    """Return what a refusal means, by the parameters that were found invalid."""
    wrong = answer.get("invalid_parameters")
    entries = wrong if isinstance(wrong, list) else []
    names = {http.text_of(entry.get("name")) for entry in entries if isinstance(entry, dict)}
    if "to" in names:
        return RefusalMeaning.DEAD
    return RefusalMeaning.MISCONFIGURED if "from" in names else RefusalMeaning.CONTENT
