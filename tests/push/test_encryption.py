"""Encrypting for a browser: the example of the standard, and what another library reads."""

import random
from urllib.parse import urlsplit

import http_ece
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from joserfc import jwt
from joserfc.jwk import ECKey

from push import vapid
from push.encoding import base64url, decoded
from push.encryption import encrypt
from push.providers.webpush import PLAINTEXT_LIMIT
from tests.push.subscriptions import Browser


def test_the_example_of_rfc_8291():
    body = encrypt(
        b"When I grow up, I want to be a watermelon",
        decoded(
            "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcx"
            "aOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
        ),
        decoded("BTBZMqHH6r4Tts7J_aSIgg"),
        sender=ec.derive_private_key(
            int.from_bytes(decoded("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw")),
            ec.SECP256R1(),
        ),
        salt=decoded("DGv6ra1nlYgDCS1FRnbzlw"),
    )
    assert base64url(body) == (
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27ml"
        "mlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPT"
        "pK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )


def test_nothing_is_used_twice():
    browser = ec.generate_private_key(ec.SECP256R1()).public_key()
    from cryptography.hazmat.primitives import serialization as s

    public = browser.public_bytes(s.Encoding.X962, s.PublicFormat.UncompressedPoint)
    one, other = (encrypt(b"Hi", public, bytes(16)) for _ in range(2))
    assert one[:16] != other[:16]
    assert one[21:86] != other[21:86]
    assert len(one) == len(other) == 86 + 2 + 1 + 16


@pytest.mark.parametrize("part", range(4))
def test_another_library_reads_what_was_encrypted(part):
    """10,000 payloads in four parts, each for a browser of its own: any size, any bytes."""
    chance = random.Random(part)
    for number in range(2500):
        size = chance.choice([0, 1, PLAINTEXT_LIMIT, chance.randrange(PLAINTEXT_LIMIT)])
        text, secret = chance.randbytes(size), chance.randbytes(16)
        browser = Browser(auth=secret)
        body = encrypt(text, browser.public, secret)
        read = http_ece.decrypt(
            body, private_key=browser.private, auth_secret=secret, version="aes128gcm"
        )
        assert read == text, (part, number, size)


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://updates.push.services.mozilla.com/wpush/v2/x",
        "https://fcm.googleapis.com/fcm/send/x",
        "https://web.push.apple.com:443/x",
    ],
)
def test_another_library_verifies_who_sends(endpoint):
    parts = urlsplit(endpoint)
    origin = f"{parts.scheme}://{parts.netloc}"
    now = 1_700_000_000
    scheme, _, given = vapid.authorization(origin, "mailto:ops@example.com", now).partition(" ")
    named = dict(part.split("=", 1) for part in given.split(", "))
    point = decoded(named["k"])
    half = {"x": base64url(point[1:33]), "y": base64url(point[33:])}
    key = ECKey.import_key({"kty": "EC", "crv": "P-256", **half})
    token = jwt.decode(named["t"], key, algorithms=["ES256"])
    assert (scheme, named["k"]) == ("vapid", vapid.public_key())
    assert token.header == {"typ": "JWT", "alg": "ES256"}
    assert token.claims == {"aud": origin, "exp": now + 12 * 3600, "sub": "mailto:ops@example.com"}
