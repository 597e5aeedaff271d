"""Public keys of applications: PEM, certificate, JWK (RFC 7517) or JWKS."""

from collections.abc import Iterator, Mapping
from functools import cache

import jwt
import orjson
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from django.utils.translation import gettext as _

ALGORITHMS: dict[str, type] = {
    "RS256": rsa.RSAPublicKey,
    "PS256": rsa.RSAPublicKey,
    "ES256": ec.EllipticCurvePublicKey,
    "EdDSA": ed25519.Ed25519PublicKey,
}
"""The accepted signature algorithms, and the type of key for each."""

RSA_BITS = 2048  # RFC 7518 §3.3: "A key of size 2048 bits or larger MUST be used"

_BY_TYPE = {"RSA": "RS256", "EC": "ES256", "OKP": "EdDSA"}

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey
Keys = list[tuple[str | None, PublicKey]]
"""Key ids (`kid`, if any) with their keys."""


def load(material: str) -> Keys:
    """Parse key ids and keys. Raise ValueError with a text for people if no key is usable.

    Unusable members of a JWKS are ignored, as RFC 7517 §5 requires.
    """
    text = material.strip()
    usable_keys: Keys = (
        list(_from_json(text)) if text.startswith("{") else [(None, _from_pem(text))]
    )
    if not usable_keys:
        raise ValueError(_("There is no usable signature key in this set."))
    return usable_keys


def _from_pem(text: str) -> PublicKey:
    if "PRIVATE KEY" in text:
        raise ValueError(_("This is a private key: keep it, and store the public half here."))
    try:
        if "BEGIN CERTIFICATE" in text:
            key: object = x509.load_pem_x509_certificate(text.encode()).public_key()
        else:
            key = load_pem_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError(_("This isn't a PEM public key, PEM certificate, JWK or JWKS.")) from None
    return _usable(key)


def _from_json(text: str) -> Iterator[tuple[str | None, PublicKey]]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise ValueError(_("This is not valid JSON.")) from None
    if "keys" not in value:
        yield _from_jwk(value)
        return
    members = value["keys"]
    for member in members if isinstance(members, list) else []:
        try:
            yield _from_jwk(member)
        except ValueError:
            continue


def _from_jwk(member: object) -> tuple[str | None, PublicKey]:
    jwk = member if isinstance(member, Mapping) else {}
    kind = jwk.get("kty")
    if not isinstance(kind, str) or kind not in _BY_TYPE:
        raise ValueError(_("The key type must be RSA, EC or OKP."))
    if "d" in jwk:
        raise ValueError(_("This is a private key: keep it, and store the public half here."))
    if jwk.get("use", "sig") != "sig":
        raise ValueError(_("This key is not for signatures."))
    try:
        key = jwt.PyJWK(dict(jwk), algorithm=_BY_TYPE[kind]).key
    except (jwt.PyJWTError, ValueError, TypeError):
        raise ValueError(_("This key cannot be read.")) from None
    kid = jwk.get("kid")
    return kid if isinstance(kid, str) else None, _usable(key)


def _usable(key: object) -> PublicKey:
    """Return a key if an accepted algorithm can use it. Raise ValueError otherwise."""
    match key:
        case rsa.RSAPublicKey() if key.key_size >= RSA_BITS:
            return key
        case ec.EllipticCurvePublicKey() if isinstance(key.curve, ec.SECP256R1):
            return key
        case ed25519.Ed25519PublicKey():
            return key
    raise ValueError(_("The key must be RSA of 2048 bits or more, EC on P-256, or Ed25519."))


@cache
def decoy(algorithm: str) -> PublicKey:
    """Return a key that belongs to no client.

    An unknown client's assertion is checked against it, and takes as long as a wrong signature.
    """
    kind = ALGORITHMS[algorithm]
    if kind is rsa.RSAPublicKey:
        return rsa.RSAPublicNumbers(65537, (1 << 2048) - 159).public_key()
    if kind is ec.EllipticCurvePublicKey:
        return ec.generate_private_key(ec.SECP256R1()).public_key()
    return ed25519.Ed25519PrivateKey.generate().public_key()
