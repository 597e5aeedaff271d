"""Browsers' subscriptions for tests, with the keys to read what is sent to them."""

from dataclasses import dataclass, field

import orjson
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from py_vapid.utils import b64urlencode

ENDPOINT = "https://updates.push.services.mozilla.com/wpush/v2/gAAAA"


@dataclass
class Browser:
    """A browser that has subscribed."""

    endpoint: str = ENDPOINT
    private: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    auth: bytes = bytes(range(16))

    @property
    def public(self) -> bytes:
        return self.private.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
        )

    @property
    def subscription(self) -> dict[str, object]:
        keys = {"p256dh": b64urlencode(self.public), "auth": b64urlencode(self.auth)}
        return {"endpoint": self.endpoint, "keys": keys}

    @property
    def text(self) -> str:
        return orjson.dumps(self.subscription, option=orjson.OPT_SORT_KEYS).decode()
