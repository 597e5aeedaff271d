"""Web Push (RFC 8030, 8291, 8292): to browsers, by the push service that a subscription names.

| status | outcome |
|---|---|
| 201, 202 | Accepted |
| 404, 410 | Gone |
| 400, 401, 403 about the key | Gone: the subscription was made with another key |
| 400 else, 413 | Rejected, the content's fault |
| 401, 403 else | backoff of the host; Misconfigured if no service has accepted the key yet |
| 406, 429 | backoff of the host |
| 3xx (never followed), 5xx | Retryable |
| anything else | Unknown |

pywebpush encrypts and py-vapid signs. Requests leave by the transport, since pywebpush's own
sending follows redirects, has no time-out and opens a connection for each message.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Annotated

import orjson
import structlog
from py_vapid.utils import b64urlencode
from pydantic import Field, StringConstraints

from push import base64url, endpoints, vapid
from push.providers import proven
from push.providers.access_tokens import credential_id
from push.providers.base import DAY, Answer, Backoff, PushProvider, now, too_large
from rme.core.outcomes import (
    Accepted,
    Fault,
    Gone,
    Misconfigured,
    Outcome,
    Rejected,
    Retryable,
    Unknown,
)
from rme.core.provider import Dispatch, Push
from rme.core.provider.http import HttpSettings, Timeout, read_object, retry_after
from rme.transport.messages import Failure, FailureKind, Reply, Request
from rme.transport.performer import Performer

log = structlog.get_logger(__name__)

PLAINTEXT_LIMIT = 3900
REFUSED_SECONDS = 60.0
"""How long a push service is left alone that refuses the key; doubled for each refusal."""
SECRET_BYTES = 16
"""Of a subscription's `auth` (RFC 8291 §3.2)."""
POINT_BYTES = 65
"""Of a subscription's `p256dh` (RFC 8291 §3.1): an uncompressed point."""
_OTHER_KEY = re.compile(
    rb"VapidPkHashMismatch|VAPID public key mismatch"
    rb"|(key|credentials)[^.]{0,60}(mismatch|do(es)? not (match|correspond))",
    re.IGNORECASE,
)
"""The words by which push services say that a subscription was made with another key."""


class WebPushSettings(HttpSettings):
    """How push services reach the sender. The key is the deployment's (`VAPID_PRIVATE_KEY`)."""

    subject: Annotated[
        str, StringConstraints(pattern=r"^(mailto:[^\s@]+@[^\s@]+|https://\S+)$", max_length=300)
    ] = Field(description="A mailto: or https: address of the sender, for the push services.")
    timeout: Timeout = 10.0


class WebPush(PushProvider):
    """Push to browsers and progressive web apps."""

    kind = "webpush"
    label = "Web Push"
    platforms = frozenset({"WEB"})
    throttles_account = False
    Settings = WebPushSettings
    settings: WebPushSettings

    def check(self, transport: Performer) -> Outcome:
        """Sign as for a push: that the deployment has a key is all that can be wrong before one."""
        try:
            vapid.authorization("https://push.example", self.settings.subject, now())
        except ValueError as error:
            return Misconfigured(str(error))
        return Accepted()

    def refusal(self, dispatch: Dispatch, transport: Performer) -> Outcome | None:
        """Refuse an endpoint that is not a push service's, as at its registration."""
        if outcome := super().refusal(dispatch, transport):
            return outcome
        subscription = parse_subscription(dispatch.push.token)
        refused = endpoints.url_error(subscription.endpoint, transport.policy)
        return Gone(f"the endpoint {refused}") if refused else None

    def throttle_key(self, dispatch: Dispatch) -> str:
        return f"webpush:{_host(dispatch)}"

    @cached_property
    def _identity(self) -> str:
        """Return a name of the key and the subject, as which push services accept or refuse us."""
        return f"webpush:{credential_id(vapid.public_key(), self.settings.subject)}"

    def on_accepted(self, dispatches: Sequence[Dispatch]) -> None:
        """Store that a push service accepted the key: one that refuses it concerns itself alone."""
        proven.prove({self._identity})

    def write(self, dispatch: Dispatch, credential: str) -> Request | Outcome:
        push, account = dispatch.push, self.settings
        subscription = parse_subscription(push.token)
        plaintext = orjson.dumps(_payload(push))
        if refused := too_large(plaintext, PLAINTEXT_LIMIT):
            return refused
        if subscription.keys is None:
            return Gone("the subscription has no keys")
        origin = f"https://{subscription.host}"
        headers = (
            ("Authorization", vapid.authorization(origin, account.subject, now())),
            ("Content-Encoding", "aes128gcm"),
            ("Content-Type", "application/octet-stream"),
            ("TTL", str(DAY if push.ttl is None else push.ttl)),
            ("Urgency", "high" if push.priority == "HIGH" else "normal"),
            *((("Topic", _topic(push)),) if push.collapse_key else ()),
        )
        body = subscription.encrypt(plaintext)
        return account.request(subscription.endpoint, body, headers, http2=True)

    def read_failure(self, dispatch: Dispatch, failure: Failure) -> Outcome:
        """Return Gone for an endpoint whose host has a private address."""
        if failure.kind is FailureKind.REFUSED_ADDRESS:
            return Gone("the endpoint's address is not public")
        return super().read_failure(dispatch, failure)

    def read_reply(self, dispatch: Dispatch, reply: Reply) -> Answer:
        reason = f"the push service answered {reply.status}"
        match reply.status:
            case 201 | 202:
                return Accepted(reply.headers.get("location", "")[:255])
            case 404 | 410:
                return Gone(reason)
            case 400 | 401 | 403 if _OTHER_KEY.search(reply.body):
                return Gone("subscribed with another key")
            case 401 | 403 if proven.is_proven(self._identity):
                log.warning("push.host_refuses_key", host=_host(dispatch))
                return Backoff(reason, first=REFUSED_SECONDS, retry_after=retry_after(reply))
            case 401 | 403:
                return Misconfigured(reason)
            case 400 | 413:
                return Rejected(reason, Fault.CONTENT)
            case 406 | 429:
                return Backoff(reason, first=10.0, retry_after=retry_after(reply))
            case status if 300 <= status < 400 or 500 <= status < 600:
                return Retryable(reason, retry_after(reply))
        return Unknown(f"unexpected answer: {reply.status}")


@dataclass(frozen=True, repr=False)  # without slots, since it caches
class PushSubscription:
    """Where a browser is reached, and its keys. Its repr shows nothing, as all is secret."""

    endpoint: str
    keys: dict[str, object] | None

    @cached_property
    def host(self) -> str:
        """Return the push service's host, with its port if it has one."""
        return self.endpoint.partition("//")[2].partition("/")[0]

    @cached_property
    def _encode(self) -> Callable[[bytes], Mapping[str, bytes]]:
        """Return pywebpush's encryption for this browser. Raises ValueError for invalid keys.

        pywebpush takes keys of any length, and skips characters that are not base64url.
        """
        # Here, since it loads aiohttp (13 MB): only a process that sends to browsers needs it.
        from pywebpush import WebPusher

        keys = self.keys or {}
        point, secret = (base64url.decode(keys.get(name)) for name in ("p256dh", "auth"))
        if len(point) != POINT_BYTES:
            raise ValueError("the subscription's key is not valid")
        if len(secret) != SECRET_BYTES:
            raise ValueError("the subscription's secret is not valid")
        encode: Callable[[bytes], Mapping[str, bytes]] = WebPusher(
            {"endpoint": self.endpoint, "keys": keys}
        ).encode
        return encode

    def encrypt(self, plaintext: bytes) -> bytes:
        """Return the text for this browser alone (RFC 8291), by a new key for each message.

        Raises ValueError for keys that are not valid.
        """
        return self._encode(plaintext)["body"]


@lru_cache(maxsize=512)
def parse_subscription(token: str) -> PushSubscription:
    """Parse a subscription. It is cached, since each push needs it several times."""
    content = read_object(token.encode())
    keys = content.get("keys")
    return PushSubscription(
        str(content.get("endpoint", "")), keys if isinstance(keys, dict) else None
    )


def _host(dispatch: Dispatch) -> str:
    return parse_subscription(dispatch.push.token).host


def _topic(content: Push) -> str:
    topic: str = b64urlencode(sha256(content.collapse_key.encode()).digest())[:32]
    return topic


def _payload(content: Push) -> dict[str, object]:
    """Return what the service worker reads: see docs/push.md."""
    payload = {
        "title": content.title,
        "body": content.body,
        "data": dict(content.data),
        "badge": content.badge,
        "image": content.image,
        "link": content.link,
        "tag": content.collapse_key,
    }
    return {name: value for name, value in payload.items() if value not in ("", None, {})}
