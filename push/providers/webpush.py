"""Web Push (RFC 8030, 8291, 8292): to browsers, by the push service that a subscription names.

| status | outcome |
|---|---|
| 201, 202 | Accepted |
| 404, 410 | Gone |
| 400, 401, 403 about the key | Gone: the subscription was made with another key |
| 400 else, 413 | Rejected, the content's fault |
| 401, 403 else | Misconfigured |
| 406, 429 | backoff of the host |
| 3xx (never followed), 5xx | Retryable |
| anything else | Unknown |

http_ece encrypts and py-vapid signs, the libraries by which pywebpush does; requests leave by the
transport, since pywebpush's own sending follows redirects, has no time-out and opens a connection
for each message.
"""

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Annotated

import http_ece
import orjson
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDH,
    SECP256R1,
    EllipticCurvePublicKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from py_vapid.utils import b64urlencode
from pydantic import Field, StringConstraints

from push import base64url, endpoints, vapid
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
from rme.transport import Failure, FailureKind, Reply, Request, Transport

PLAINTEXT_LIMIT = 3900
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

    def check(self, transport: Transport) -> Outcome:
        """Sign as for a push: that the deployment has a key is all that can be wrong before one."""
        try:
            vapid.authorization("https://push.example", self.settings.subject, now())
        except ValueError as error:
            return Misconfigured(str(error))
        return Accepted()

    def refusal(self, dispatch: Dispatch, transport: Transport) -> Outcome | None:
        """Refuse an endpoint that is not a push service's, as at its registration."""
        if other := super().refusal(dispatch, transport):
            return other
        subscription = parse_subscription(dispatch.push.token)
        refused = endpoints.url_error(subscription.endpoint, transport.policy)
        return Gone(f"the endpoint {refused}") if refused else None

    def throttle_key(self, dispatch: Dispatch) -> str:
        return f"webpush:{parse_subscription(dispatch.push.token).host}"

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
    """Where a browser is reached, and its keys. Its repr has none of it, as all is secret."""

    endpoint: str
    keys: dict[str, object] | None

    @cached_property
    def host(self) -> str:
        """Return the push service's host, with its port if it has one."""
        return self.endpoint.partition("//")[2].partition("/")[0]

    @cached_property
    def _receiver(self) -> "tuple[_BrowserKey, bytes]":
        """Return the browser's public key (p256dh) and its secret (auth).

        Raises ValueError for keys that are not valid.
        """
        keys = self.keys or {}
        point, secret = (base64url.decode(keys.get(name)) for name in ("p256dh", "auth"))
        if len(secret) != SECRET_BYTES:
            raise ValueError("the subscription's secret is not valid")
        return _BrowserKey(point), secret

    def encrypt(self, plaintext: bytes) -> bytes:
        """Return the text for this browser alone (RFC 8291), by a new key for each message.

        Raises ValueError for keys that are not valid.
        """
        browser_key, secret = self._receiver
        body: bytes = http_ece.encrypt(
            plaintext, private_key=_MessageKey(), dh=browser_key, auth_secret=secret
        )
        return body


# http_ece exports the points of both keys, three times a message, which takes 5 µs each. The two
# classes below stand for cryptography's keys in it, and hold the exported points.


class _BrowserKey:
    """A browser's public key on P-256, and its point."""

    def __init__(self, point: bytes) -> None:
        """Read an uncompressed point (X9.62, 65 bytes). Raises ValueError for any other."""
        if len(point) != POINT_BYTES:
            raise ValueError("the subscription's key is not valid")
        self.key, self._point = EllipticCurvePublicKey.from_encoded_point(SECP256R1(), point), point

    def public_bytes(self, encoding: Encoding, form: PublicFormat) -> bytes:
        return self._point


EllipticCurvePublicKey.register(_BrowserKey)  # http_ece asks whether it has a key or a point


class _MessageKey:
    """The new key of one message, and its point."""

    def __init__(self) -> None:
        self._key = generate_private_key(SECP256R1())
        public = self._key.public_key()
        self._point = public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    def public_key(self) -> "_MessageKey":
        return self

    def public_bytes(self, encoding: Encoding, form: PublicFormat) -> bytes:
        return self._point

    def exchange(self, algorithm: ECDH, browser_key: _BrowserKey) -> bytes:
        return self._key.exchange(algorithm, browser_key.key)


@lru_cache(maxsize=512)
def parse_subscription(token: str) -> PushSubscription:
    """Parse a subscription. It is cached, since each push needs it several times."""
    content = read_object(token.encode())
    keys = content.get("keys")
    return PushSubscription(
        str(content.get("endpoint", "")), keys if isinstance(keys, dict) else None
    )


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
