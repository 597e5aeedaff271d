"""The deployment's VAPID identity (RFC 8292): its key, and the headers signed with it.

Browsers bind a subscription to the public key: with another key all of them are lost.
"""

from functools import lru_cache

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.conf import settings

from push.encoding import base64url, decoded
from rme.core.cache import TtlCache

KEPT_SECONDS = 3600.0
"""How long a signed header is used again, for its origin."""
LIFE_SECONDS = 12 * 3600
"""RFC 8292 §2: at most 24 hours; half of it, as clocks differ."""

_headers: TtlCache[tuple[str, str, str], str] = TtlCache(seconds=KEPT_SECONDS)


@lru_cache(maxsize=4)
def _key(private: str) -> ec.EllipticCurvePrivateKey:
    secret = decoded(private)
    if len(secret) != 32:
        raise ValueError("VAPID_PRIVATE_KEY must be 32 bytes in base64url")
    return ec.derive_private_key(int.from_bytes(secret), ec.SECP256R1())


def _public(private: str) -> str:
    point = (
        _key(private)
        .public_key()
        .public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    )
    return base64url(point)


def public_key() -> str:
    """Give the public key: a browser's `applicationServerKey`. Raises ValueError without a key."""
    return _public(settings.VAPID_PRIVATE_KEY)


def authorization(origin: str, subject: str, now: float) -> str:
    """Give the Authorization header for an origin (`https://host`), signed once an hour.

    `subject` is a `mailto:` or `https:` address at which the push service finds whoever sends;
    `now` in seconds since 1970.
    """
    private = settings.VAPID_PRIVATE_KEY

    def sign() -> str:
        claims = {"aud": origin, "exp": int(now) + LIFE_SECONDS, "sub": subject}
        token = jwt.encode(claims, _key(private), algorithm="ES256")
        return f"vapid t={token}, k={_public(private)}"

    header = _headers.get((private, origin, subject), sign)
    assert header is not None  # sign always gives one
    return header
