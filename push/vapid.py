"""The deployment's VAPID identity (RFC 8292): its key, and the headers signed with it by py-vapid.

Browsers bind a subscription to the public key: another key loses all of them.
"""

from functools import lru_cache

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings
from py_vapid import Vapid02
from py_vapid.utils import b64urlencode

from push import base64url
from rme.core.cache import TtlCache

CACHE_SECONDS = 3600.0
"""How long a signed header is reused for its origin."""
VALID_SECONDS = 12 * 3600
"""RFC 8292 §2 allows 24 hours; half of it, since clocks differ."""

_headers: TtlCache[tuple[str, str, str], str] = TtlCache(seconds=CACHE_SECONDS)


@lru_cache(maxsize=4)
def _signer(private_key: str) -> Vapid02:
    if len(base64url.decode(private_key)) != 32:
        raise ValueError("VAPID_PRIVATE_KEY must be 32 bytes in base64url")
    signer = Vapid02.from_raw(private_key.encode())
    signer.conf["no-strict"] = True  # else it refuses a subject such as https://host/contact
    return signer


def public_key() -> str:
    """Return a browser's `applicationServerKey`. Raises ValueError if the setting is no key."""
    public = _signer(settings.VAPID_PRIVATE_KEY).public_key
    point: str = b64urlencode(public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))
    return point


def authorization(origin: str, subject: str, now: float) -> str:
    """Return the Authorization header for an origin (`https://host`), signed once an hour.

    `subject` is a `mailto:` or `https:` address at which the push service can reach the sender;
    `now` is in seconds since 1970.
    """
    private_key = settings.VAPID_PRIVATE_KEY

    def sign() -> str:
        claims = {"aud": origin, "exp": int(now) + VALID_SECONDS, "sub": subject}
        return str(_signer(private_key).sign(claims)["Authorization"])

    header = _headers.get((private_key, origin, subject), sign)
    assert header is not None  # `sign` always returns one
    return header
