"""Signing JSON Web Tokens by ES256 (RFC 7518 §3.4) so that equal input gives an equal token."""

from collections.abc import Mapping

import orjson
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from jwt import PyJWS
from jwt.algorithms import ECAlgorithm
from jwt.utils import der_to_raw_signature

# RFC 6979: the secret number of a signature is derived from key and text instead of random.
_DETERMINISTIC = ec.ECDSA(SHA256(), deterministic_signing=True)


class _DeterministicEs256(ECAlgorithm):
    """ES256 whose signature depends on key and text alone."""

    def __init__(self) -> None:
        super().__init__(SHA256, ec.SECP256R1)

    def sign(
        self, msg: bytes, key: ec.EllipticCurvePrivateKey | ec.EllipticCurvePublicKey
    ) -> bytes:
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return der_to_raw_signature(key.sign(msg, _DETERMINISTIC), key.curve)


_jws = PyJWS(algorithms=["ES256"])
_jws.unregister_algorithm("ES256")
_jws.register_algorithm("ES256", _DeterministicEs256())


def es256(key: ec.EllipticCurvePrivateKey, key_id: str, claims: Mapping[str, str | int]) -> str:
    """Return a token with the claims, signed by the key; its header names the key's id."""
    # An empty `typ` leaves it out.
    return _jws.encode(orjson.dumps(claims), key, "ES256", {"kid": key_id, "typ": ""})
