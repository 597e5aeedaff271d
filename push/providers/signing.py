"""Signing tokens by ES256 (RFC 7518 §3.4), the same text by the same key to the same signature."""

from collections.abc import Mapping
from typing import Any

import orjson
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from push.encoding import base64url

# RFC 6979: the number that must be secret and new comes of key and text, not of chance.
_ALGORITHM = ec.ECDSA(hashes.SHA256(), deterministic_signing=True)


def es256(
    key: ec.EllipticCurvePrivateKey, header: Mapping[str, Any], claims: Mapping[str, Any]
) -> str:
    """Write a JSON Web Token. Whoever signs the same at the same time has the same token."""
    parts = ({"alg": "ES256", **header}, claims)
    text = ".".join(base64url(orjson.dumps(part)) for part in parts)
    r, s = decode_dss_signature(key.sign(text.encode(), _ALGORITHM))
    return f"{text}.{base64url(r.to_bytes(32) + s.to_bytes(32))}"
