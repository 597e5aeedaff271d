"""Public keys of applications, as people hand them in: PEM, certificate, JWK (RFC 7517), JWKS."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import jwt
import orjson
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key

ALGORITHMS: dict[str, type] = {
    "RS256": rsa.RSAPublicKey,
    "PS256": rsa.RSAPublicKey,
    "ES256": ec.EllipticCurvePublicKey,
    "EdDSA": ed25519.Ed25519PublicKey,
}
"""The signatures that are accepted, and the kind of key that makes each."""

RSA_BITS = 2048  # RFC 7518 §3.3: "A key of size 2048 bits or larger MUST be used"

_BY_TYPE = {"RSA": "RS256", "EC": "ES256", "OKP": "EdDSA"}

Keys = list[tuple[str | None, Any]]


def load(material: str) -> Keys:
    """Read key ids and keys. Raises ValueError, whose text may be shown, if none can be used.

    Members of a JWKS that are of no use here are passed over, as RFC 7517 §5 asks.
    """
    text = material.strip()
    found: Keys = list(_from_json(text)) if text.startswith("{") else [(None, _from_pem(text))]
    if not found:
        raise ValueError("There is no usable signature key in this set.")
    return found


def _from_pem(text: str) -> Any:
    if "PRIVATE KEY" in text:
        raise ValueError("This is a private key: keep it, and store the public half here.")
    try:
        if "BEGIN CERTIFICATE" in text:
            key: Any = x509.load_pem_x509_certificate(text.encode()).public_key()
        else:
            key = load_pem_public_key(text.encode())
    except Exception:  # noqa: BLE001 (the library raises its own kinds besides ValueError)
        raise ValueError("This is no PEM public key, PEM certificate, JWK or JWKS.") from None
    return _usable(key)


def _from_json(text: str) -> Iterator[tuple[str | None, Any]]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise ValueError("This is not valid JSON.") from None
    if "keys" not in value:
        yield _from_jwk(value)
        return
    members = value["keys"]
    for member in members if isinstance(members, list) else []:
        try:
            yield _from_jwk(member)
        except ValueError:
            continue


def _from_jwk(member: Any) -> tuple[str | None, Any]:
    kind = member.get("kty") if isinstance(member, Mapping) else None
    if not isinstance(kind, str) or kind not in _BY_TYPE:
        raise ValueError("The key type must be RSA, EC or OKP.")
    if "d" in member:
        raise ValueError("This is a private key: keep it, and store the public half here.")
    if member.get("use", "sig") != "sig":
        raise ValueError("This key is not for signatures.")
    try:
        key = jwt.PyJWK(dict(member), algorithm=_BY_TYPE[kind]).key
    except Exception:  # noqa: BLE001 (a broken member breaks the library in many ways)
        raise ValueError("This key cannot be read.") from None
    kid = member.get("kid")
    return kid if isinstance(kid, str) else None, _usable(key)


def _usable(key: Any) -> Any:
    """Refuse keys that no accepted signature is made with. Raises ValueError."""
    match key:
        case rsa.RSAPublicKey() if key.key_size >= RSA_BITS:
            return key
        case ec.EllipticCurvePublicKey() if isinstance(key.curve, ec.SECP256R1):
            return key
        case ed25519.Ed25519PublicKey():
            return key
    raise ValueError("The key must be RSA of 2048 bits or more, EC on P-256, or Ed25519.")


@cache
def stand_in(algorithm: str) -> Any:
    """Return a key that is nobody's, so that an unknown client costs as much as a wrong signature."""
    kind = ALGORITHMS[algorithm]
    if kind is rsa.RSAPublicKey:
        return rsa.RSAPublicNumbers(65537, (1 << 2048) - 159).public_key()
    if kind is ec.EllipticCurvePublicKey:
        return ec.generate_private_key(ec.SECP256R1()).public_key()
    return ed25519.Ed25519PrivateKey.generate().public_key()
