"""JWT assertions as authorization grants (RFC 7523 §3), strict where it is about security and
lenient where real clients are sloppy.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import orjson
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from django.conf import settings
from django.db import connection

from rme.core import clock
from rme.tenants.models import Application, Assertion

ALGORITHMS: dict[str, type] = {
    "RS256": rsa.RSAPublicKey,
    "PS256": rsa.RSAPublicKey,
    "ES256": ec.EllipticCurvePublicKey,
    "EdDSA": ed25519.Ed25519PublicKey,
}
FORBIDDEN_HEADERS = ("jwk", "jku", "x5u", "x5c", "crit")
SKEW = timedelta(seconds=60)
LONGEST = timedelta(hours=1)
LENGTH_LIMIT = 16_384
MILLISECONDS = 1e11  # a number over this is no time in seconds: some clients count milliseconds


class BadAssertion(Exception):
    """The assertion is refused; the text says why, without repeating it."""


@dataclass(frozen=True, slots=True)
class Checked:
    """An assertion whose form is right: who it says it is from, and its claims, unproved."""

    text: str
    algorithm: str
    key_id: str | None
    claims: Mapping[str, Any]

    @property
    def client_id(self) -> str:
        return str(self.claims["iss"])


def read(text: str) -> Checked:
    """Read an assertion without proof. Raises BadAssertion."""
    if len(text) > LENGTH_LIMIT:
        raise BadAssertion("the assertion is too long")
    try:
        header = jwt.get_unverified_header(text)
        claims = jwt.decode(text, options={"verify_signature": False})
    except (jwt.InvalidTokenError, UnicodeError, ValueError, RecursionError):
        raise BadAssertion("the assertion is not a JWT") from None
    if header.get("alg") not in ALGORITHMS:
        raise BadAssertion(f"the algorithm must be one of {', '.join(ALGORITHMS)}")
    if any(name in header for name in FORBIDDEN_HEADERS):
        raise BadAssertion("the header names a key or an extension")
    if str(header.get("typ", "JWT")).upper() != "JWT":
        raise BadAssertion("the type is not JWT")
    issuer = claims.get("iss")
    if not isinstance(issuer, str) or "\0" in issuer:
        raise BadAssertion("iss is missing")
    key_id = header.get("kid")
    return Checked(text, header["alg"], key_id if isinstance(key_id, str) else None, claims)


def prove(checked: Checked, application: Application) -> None:
    """Check the signature and the claims against an application. Raises BadAssertion."""
    keys = [
        key
        for kid, key in _keys(application)
        if isinstance(key, ALGORITHMS[checked.algorithm])
        and (not kid or not checked.key_id or kid == checked.key_id)
    ]
    if not any(_signed_by(checked, key) for key in keys):
        raise BadAssertion("the signature is not one of the application's keys'")
    _check_claims(checked.claims, application)


def take(checked: Checked) -> None:
    """Remember an assertion until it expires. Raises BadAssertion if it was taken before."""
    name = str(checked.claims.get("jti") or checked.text)
    digest = hashlib.sha256(f"{checked.client_id}\n{name}".encode("utf-8", "replace")).hexdigest()
    until = _instant(checked.claims["exp"]) + SKEW
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {Assertion._meta.db_table} (digest, expires_at) VALUES (%s, %s) "
            "ON CONFLICT DO NOTHING",
            [digest, until],
        )
        if cursor.rowcount == 0:
            raise BadAssertion("the assertion was used before")


def sweep() -> int:
    """Forget assertions that have expired; give how many."""
    return Assertion.objects.filter(expires_at__lt=clock.now()).delete()[0]


def load_keys(material: str) -> Iterator[tuple[str | None, Any]]:
    """Read a PEM public key or certificate, a JWK or a JWKS: key ids and keys. Raises ValueError."""
    text = material.strip()
    if text.startswith("{"):
        value = orjson.loads(text)
        members = value["keys"] if "keys" in value else [value]
        for member in members:
            key = jwt.PyJWK(member, algorithm=_algorithm_of(member)).key
            if hasattr(key, "private_bytes"):
                raise ValueError("This is a private key; keep it and store the public half here.")
            yield member.get("kid"), key
    elif "BEGIN CERTIFICATE" in text:
        yield None, x509.load_pem_x509_certificate(text.encode()).public_key()
    else:
        yield None, load_pem_public_key(text.encode())


def _algorithm_of(member: Mapping[str, Any]) -> str:
    by_type = {"RSA": "RS256", "EC": "ES256", "OKP": "EdDSA"}
    if member.get("kty") not in by_type:
        raise ValueError("The key type must be RSA, EC or OKP.")
    return by_type[member["kty"]]


def _keys(application: Application) -> Iterator[tuple[str | None, Any]]:
    for row in application.keys.all():
        yield from load_keys(row.material)


def _signed_by(checked: Checked, key: Any) -> bool:
    unchecked = ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")
    options = {f"verify_{name}": False for name in unchecked}
    try:
        jwt.decode(checked.text, key, algorithms=[checked.algorithm], options=options)
    except jwt.InvalidTokenError:
        return False
    return True


def _check_claims(claims: Mapping[str, Any], application: Application) -> None:
    now = clock.now()
    if claims.get("sub") != application.user.get_username():
        raise BadAssertion("sub is not the application's integration user")
    given = claims.get("aud")
    audiences = given if isinstance(given, list) else [given]
    if not any(audience in expected_audiences() for audience in audiences):
        raise BadAssertion("aud is not this deployment")
    expires = _instant(claims.get("exp"))
    if expires + SKEW <= now:
        raise BadAssertion("the assertion has expired")
    if expires > now + LONGEST + SKEW:
        raise BadAssertion("exp is more than an hour ahead")
    for name in ("nbf", "iat"):
        if name in claims and _instant(claims[name]) > now + SKEW:
            raise BadAssertion(f"{name} is in the future")


def expected_audiences() -> set[str]:
    """Give the audiences that an assertion may name: this deployment's addresses, and settings'."""
    base = settings.BASE_URL
    return {base, f"{base}/", f"{base}/services/oauth2/token", *settings.JWT_AUDIENCES}


def _instant(value: Any) -> datetime:
    """Read a time as sloppy clients write it: a number, a numeric string, or milliseconds."""
    try:
        number = float(value)
        if isinstance(value, bool):
            raise ValueError
        return datetime.fromtimestamp(number / 1000 if number > MILLISECONDS else number, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        raise BadAssertion("a time is missing or is not a number") from None
