"""The VAPID header (RFC 8292), as another library verifies it."""

from urllib.parse import urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey
from py_vapid.utils import b64urlencode

from push import vapid
from push.base64url import decode


@pytest.mark.parametrize("subject", ["mailto:ops@example.com", "https://example.com/contact"])
@pytest.mark.parametrize(
    "endpoint",
    [
        "https://updates.push.services.mozilla.com/wpush/v2/x",
        "https://fcm.googleapis.com/fcm/send/x",
        "https://web.push.apple.com:443/x",
    ],
)
def test_header_is_verified_by_another_library(endpoint, subject):
    parts = urlsplit(endpoint)
    origin = f"{parts.scheme}://{parts.netloc}"
    now = 1_700_000_000
    scheme, _, given = vapid.authorization(origin, subject, now).partition(" ")
    named = dict(part.strip().split("=", 1) for part in given.split(","))
    point = decode(named["k"])
    half = {"x": b64urlencode(point[1:33]), "y": b64urlencode(point[33:])}
    key = ECKey.import_key({"kty": "EC", "crv": "P-256", **half})
    token = jwt.decode(named["t"], key, algorithms=["ES256"])
    assert (scheme, named["k"]) == ("vapid", vapid.public_key())
    assert token.header == {"typ": "JWT", "alg": "ES256"}
    assert token.claims == {"aud": origin, "exp": now + 12 * 3600, "sub": subject}
