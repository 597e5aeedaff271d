"""SMS by Kannel, the open-source gateway (https://www.kannel.org/download/1.4.5/userguide.pdf).

| answer of sendsms | outcome |
|---|---|
| 202 (`0: Accepted for delivery`, `3: Queued for later delivery`) | Accepted |
| 400 or 403 with `denied` (by a list, or no number) | Rejected, the recipient's fault |
| 403 with `Not routable` (no link takes the number) | Rejected, another account may take it |
| 401, 403, 404 | Misconfigured |
| 400 with `receiver` | Rejected, the number is dead |
| 400 with `Sender` (there is none, and no global one) | Misconfigured |
| another 400 | Rejected, the content's fault |
| 429 (of what stands before it), 503 | Retryable: `Temporal failure, try again later` |
| anything else | Unknown |

Kannel signs nothing. So each message has a receipt URL with our signature; inbound SMS come to a
URL with the secret, the gateway's id of the message and its time.
"""

from datetime import UTC, datetime, timedelta
from typing import Annotated
from urllib.parse import urlencode

from pydantic import Field, SecretStr

from messaging.domain.channels import Channel
from messaging.providers import callbacks
from rme.core import ids
from rme.core.outcomes import Accepted, Fault, Misconfigured, Outcome, Rejected
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
from rme.transport import gsm
from rme.transport.messages import Failure, InvalidRequest, Reply, Request
from rme.transport.performer import Performer
from rme.transport.smpp import text_encoding
from rme.transport.smpp.text_encoding import Alphabet

RECEIPTS: dict[int, str] = {
    1: "delivered",
    2: "failed",  # not delivered to the phone
    8: "sent",  # taken by the SMSC
    16: "failed",  # refused by the SMSC
    34: "failed",  # expired (0x22)
}
"""`%d`, the bits of a receipt."""
NO_NEWS = frozenset({4, 66})
"""Buffered and unknown report nothing new."""
SOFT = 34
MASK = 1 | 2 | 8 | 16
INBOUND_AGE = timedelta(days=1)


class KannelSettings(http.HttpSettings):
    """The gateway's URL and the log-in."""

    base_url: http.Url = Field(description="Like http://10.0.0.5:13013 (see OUTBOUND_OPEN_HOSTS).")
    username: Annotated[str, Field(min_length=1, max_length=100)]
    password: SecretStr
    smsc: Annotated[str, Field(max_length=100)] = Field(
        default="", description="The SMSC to use. Leave empty to let Kannel route."
    )
    sender: Annotated[str, Field(max_length=20)] = ""
    max_messages: Annotated[int, Field(ge=1, le=255)] = Field(
        default=10, description="The value of your sendsms-user. Kannel cuts off longer texts."
    )
    callback_secret: Annotated[SecretStr, Field(max_length=200)] = Field(
        default=SecretStr(""),
        description="Signs the URLs of receipts. Without it, rme requests none.",
    )


class Kannel(Provider):
    """Hand SMS to a Kannel gateway."""

    kind = "kannel"
    label = "Kannel"
    callback_help = (
        "Receipts need no setup: each message carries the URL. For inbound SMS, enter it as the "
        "post-url of an sms-service, followed by ?key= and the callback secret."
    )
    channels = frozenset({Channel.SMS})
    Settings = KannelSettings
    settings: KannelSettings

    def request(self, dispatch: Dispatch) -> Request:
        sms, account = dispatch.sms, self.settings
        if len(text_encoding.encode(sms.text, Alphabet.GSM).parts()) > account.max_messages:
            raise InvalidRequest("a longer text than Kannel sends: it would cut it off and say 202")
        query = {
            "username": account.username,
            "password": account.password.get_secret_value(),
            "to": sms.to,
            "from": sms.sender or account.sender,
            "text": sms.text,
            "charset": "UTF-8",
            "coding": "0" if gsm.CHARACTERS.issuperset(sms.text) else "2",
        }
        if account.smsc:
            query["smsc"] = account.smsc
        if url := callbacks.signed_url(dispatch, account.callback_secret.get_secret_value()):
            query |= {"dlr-mask": str(MASK), "dlr-url": f"{url}&status=%d&reason=%A"}
        url = f"{account.base_url}/cgi-bin/sendsms?{urlencode(query, errors='replace')}"
        return account.request(url, method="GET")

    def outcome(self, reply: Reply | Failure) -> Outcome:
        if isinstance(reply, Failure):
            return http.failure_outcome(reply)
        text = http.text_of(reply.body.decode("utf-8", "replace"), 120)
        reason = f"refused: {reply.status} {text}".rstrip()
        match reply.status:
            case 202 if text.startswith(("0:", "3:")):
                return Accepted()
            case 400 | 403 if "denied" in text.lower() and "auth" not in text.lower():
                return Rejected(reason)
            case 403 if "not routable" in text.lower():
                return Rejected(reason, Fault.ROUTE)
            case 400 if "receiver" in text.lower():
                return Rejected(reason, hard=True)
            case 400 if text.lower().startswith("sender"):
                return Misconfigured(reason)
        return refusals.by_status(reply, reason)

    def is_authentic(self, callback: CallbackRequest, transport: Performer) -> bool:
        secret = self.settings.callback_secret.get_secret_value()
        if callbacks.is_signed(callback, secret):
            return True
        return callbacks.has_secret(callback, secret) and _is_recent_inbound(callback)

    def read_callback(self, callback: CallbackRequest) -> CallbackContent:
        values = callbacks.parameters(callback)
        if "attempt" not in values:
            sender, own_id = values.get("from", ""), values.get("id") or values.get("t", "")
            sms = InboundSms(sender, values.get("to", ""), values.get("text", ""), id=own_id)
            return [sms] if sender else []
        attempt_id, status = ids.parse(values["attempt"]), values.get("status", "")
        bits = int(status) if status.isascii() and status.isdigit() and len(status) < 9 else -1
        kind = RECEIPTS.get(bits)
        if attempt_id is None or not status or bits in NO_NEWS:
            return []
        if kind is None:
            return [UnknownCode(status)]
        reason = http.text_of(values.get("reason", ""), 120) or None
        return [DeliveryReceipt(attempt_id, kind, reason, bits == SOFT)]


def _is_recent_inbound(callback: CallbackRequest) -> bool:
    """Return whether an inbound SMS is recent, by its `t=%T` (seconds since 1970)."""
    sent_at = callbacks.parameters(callback).get("t", "")
    if not sent_at.isascii() or not sent_at.isdigit() or len(sent_at) > 11:
        return False
    return callbacks.is_recent(datetime.fromtimestamp(int(sent_at), UTC), callback, INBOUND_AGE)
