"""Encrypting for a browser, against the example of the standard."""

from cryptography.hazmat.primitives.asymmetric import ec

from push.encoding import base64url, decoded
from push.encryption import encrypt


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
