"""Web Push: to browsers, by whichever push service a subscription names (RFC 8030, 8291, 8292).

| answer | means |
|---|---|
| 201, 202 | taken |
| 404, 410 | the subscription is dead |
| 400 about the key | the subscription was made with another key: dead for us |
| 400 else, 413 | this content never |
| 401, 403 about the key | dead for us |
| 401, 403 else | a person must act |
| 406, 429 | the host asks for patience |
| 3xx | never followed; later |
| 5xx | later |
| anything else | unknown |
"""

import re
from functools import lru_cache
from hashlib import sha256
from typing import Annotated, Any, ClassVar, NamedTuple
from urllib.parse import urlsplit

import orjson
from pydantic import Field, StringConstraints

from push import endpoints, vapid
from push.encoding import base64url, decoded
from push.encryption import encrypt
from push.providers.base import (
    DAY,
    Answer,
    Backoff,
    Sender,
    SenderSettings,
    Shot,
    now,
    read_object,
    retry_after,
    too_large,
)
from rme.core.credentials import CaPem
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
from rme.core.provider import Push
from rme.transport import Failure, FailureKind, Reply, Request, Transport

PLAINTEXT_LIMIT = 3900
_OTHER_KEY = re.compile(
    rb"VapidPkHashMismatch|VAPID public key mismatch"
    rb"|(key|credentials)[^.]{0,60}(mismatch|do(es)? not (match|correspond))",
    re.IGNORECASE,
)
"""How push services say that a subscription was made with another key than ours."""


class WebPushSettings(SenderSettings):
    """How push services find whoever sends. The key is the deployment's (`VAPID_PRIVATE_KEY`)."""

    subject: Annotated[
        str,
        StringConstraints(pattern=r"^(mailto:[^\s@]+@[^\s@]+|https://\S+)$", max_length=300),
    ] = Field(description="mailto: or https: address of whoever answers for the sends.")
    ca_pem: CaPem = ""
    timeout: Annotated[float, Field(gt=0, le=25)] = 10.0


class WebPush(Sender):
    """Push to browsers and progressive web apps."""

    kind: ClassVar[str] = "webpush"
    label: ClassVar[str] = "Web Push"
    platforms: ClassVar[frozenset[str]] = frozenset({"WEB"})
    lanes_are_the_account: ClassVar[bool] = False
    Settings: ClassVar[type[SenderSettings]] = WebPushSettings
    settings: WebPushSettings

    def refusal(self, shot: Shot, transport: Transport) -> Outcome | None:
        """Refuse an endpoint that is not one of a push service, as when it registered."""
        if other := super().refusal(shot, transport):
            return other
        refused = endpoints.refusal(_subscription(shot.content.token).endpoint, transport.policy)
        return Gone(f"the endpoint {refused}") if refused else None

    def lane(self, shot: Shot) -> str:
        return f"webpush:{_subscription(shot.content.token).host}"

    def request(self, shot: Shot, credential: str) -> Request | Outcome:
        content, given = shot.content, self.settings
        browser = _subscription(content.token)
        plaintext = orjson.dumps(_payload(content))
        if refused := too_large(plaintext, PLAINTEXT_LIMIT):
            return refused
        if browser.keys is None:
            return Gone("the subscription has no keys")
        origin = f"https://{browser.host}"
        return Request(
            url=browser.endpoint,
            body=encrypt(plaintext, *browser.keys),
            headers=(
                ("Authorization", vapid.authorization(origin, given.subject, now())),
                ("Content-Encoding", "aes128gcm"),
                ("Content-Type", "application/octet-stream"),
                ("TTL", str(DAY if content.ttl is None else content.ttl)),
                ("Urgency", "high" if content.priority == "HIGH" else "normal"),
                *((("Topic", _topic(content)),) if content.collapse_key else ()),
            ),
            connect_timeout=min(5.0, given.timeout),
            timeout=given.timeout,
            http2=True,
            ca_pem=given.ca_pem,
        )

    def failed(self, shot: Shot, failure: Failure) -> Outcome:
        """Blame the subscription for an endpoint that leads into a network of ours."""
        if failure.kind is FailureKind.REFUSED_ADDRESS:
            return Gone("the endpoint's address is not public")
        return super().failed(shot, failure)

    def answer(self, shot: Shot, reply: Reply) -> Answer:
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
                return Backoff(reason, first=10.0, wish=retry_after(reply))
            case status if 300 <= status < 400 or 500 <= status < 600:
                return Retryable(reason, retry_after(reply))
        return Unknown(f"unexpected answer: {reply.status}")


class _Subscription(NamedTuple):
    """Where a browser is reached, and by which keys."""

    endpoint: str
    keys: tuple[bytes, bytes] | None
    """Its p256dh and its auth."""

    @property
    def host(self) -> str:
        """Give the push service's name, with its port if it has one of its own."""
        return urlsplit(self.endpoint).netloc

    def __repr__(self) -> str:
        """Leave out all of it: who has it may push to the browser."""
        return f"{type(self).__name__}()"


@lru_cache(maxsize=512)
def _subscription(token: str) -> _Subscription:
    """Read a subscription: asked for several times for each push."""
    given = read_object(token.encode())
    endpoint, keys = str(given.get("endpoint", "")), given.get("keys")
    if not isinstance(keys, dict):
        return _Subscription(endpoint, None)
    return _Subscription(endpoint, (decoded(keys.get("p256dh")), decoded(keys.get("auth"))))


def _topic(content: Push) -> str:
    return base64url(sha256(content.collapse_key.encode()).digest())[:32]


def _payload(content: Push) -> dict[str, Any]:
    """Give what the service worker reads: see docs/push.md."""
    given = {
        "title": content.title,
        "body": content.body,
        "data": dict(content.data),
        "badge": content.badge,
        "image": content.image,
        "link": content.link,
        "tag": content.collapse_key,
    }
    return {name: value for name, value in given.items() if value not in ("", None, {})}
