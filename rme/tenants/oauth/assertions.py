"""JWT assertions as authorization grants (RFC 7523 §3).

Strict in what concerns security; lenient about the form of times, as real clients are imprecise.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import structlog
from django.conf import settings

from rme.core.db import clock
from rme.tenants.access.limits import single_use
from rme.tenants.models import ApplicationKey, public_keys
from rme.tenants.models.public_keys import ALGORITHMS
from rme.tenants.oauth.clients import Client

log = structlog.get_logger(__name__)

FORBIDDEN_HEADERS = ("jwk", "jku", "x5u", "x5c", "crit")
SKEW = timedelta(seconds=60)
LONGEST = timedelta(hours=1)
LENGTH_LIMIT = 16_384
MILLISECONDS = 1e11
"""Larger numbers are milliseconds, which some clients send, not seconds."""


class BadAssertion(Exception):
    """The assertion is rejected. The text is the reason, without the assertion's content."""


@dataclass(frozen=True, slots=True)
class UnverifiedAssertion:
    """A well-formed assertion with its claims; the signature is not verified."""

    text: str
    algorithm: str
    key_id: str | None
    claims: Mapping[str, Any]

    @property
    def client_id(self) -> str:
        return str(self.claims["iss"])


def parse(text: str) -> UnverifiedAssertion:
    """Parse an assertion without verifying its signature. Raise BadAssertion."""
    if len(text) > LENGTH_LIMIT:
        raise BadAssertion("the assertion is too long")
    try:
        header = jwt.get_unverified_header(text)
        claims = jwt.decode(text, options={"verify_signature": False})
    except (jwt.InvalidTokenError, UnicodeError, ValueError, RecursionError):
        raise BadAssertion("the assertion is not a JWT") from None
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise BadAssertion(f"the algorithm must be one of {', '.join(ALGORITHMS)}")
    if any(name in header for name in FORBIDDEN_HEADERS):
        raise BadAssertion("the header names a key or an extension")
    if str(header.get("typ", "JWT")).upper() != "JWT":
        raise BadAssertion("the type is not JWT")
    if not isinstance(claims.get("iss"), str):
        raise BadAssertion("iss is missing")
    return UnverifiedAssertion(text, algorithm, header.get("kid"), claims)


def is_signed_by(assertion: UnverifiedAssertion, client: Client | None) -> bool:
    """Return whether one of the client's keys signed the assertion.

    Without a client the result is False, after a check that takes as long.
    """
    if client is None:
        _verifies(assertion, public_keys.decoy(assertion.algorithm))
        return False
    return any(
        _verifies(assertion, key)
        for kid, key in _keys(client)
        if isinstance(key, ALGORITHMS[assertion.algorithm])
        and (not kid or not assertion.key_id or kid == assertion.key_id)
    )


def check_claims(claims: Mapping[str, object], client: Client) -> None:
    """Check the claims of a signed assertion (RFC 7523 §3). Raise BadAssertion."""
    now = clock.now()
    if claims.get("sub") != client.username:
        raise BadAssertion("sub is not the application's integration user")
    if not _is_own_audience(claims.get("aud")):
        raise BadAssertion("aud is not this deployment")
    expires = _instant(claims.get("exp"))
    if expires + SKEW <= now:
        raise BadAssertion("the assertion has expired")
    if expires > now + LONGEST + SKEW:
        raise BadAssertion("exp is more than an hour ahead")
    for name in ("nbf", "iat"):
        if name in claims and _instant(claims[name]) > now + SKEW:
            raise BadAssertion(f"{name} is in the future")


def mark_used(assertion: UnverifiedAssertion) -> None:
    """Store an assertion as used until it expires. Raise BadAssertion if it was used before.

    Without a `jti` it is identified by the signed part and not by its whole text: a signature has
    more than one encoding (padding; the other root of an ECDSA signature).
    """
    jti = assertion.claims.get("jti")
    has_jti = isinstance(jti, str) and jti
    name = f"jti {jti}" if has_jti else f"input {assertion.text.rpartition('.')[0]}"
    digest = hashlib.sha256(f"{assertion.client_id}\n{name}".encode("utf-8", "replace")).hexdigest()
    if not single_use.store_once(digest, _instant(assertion.claims["exp"]) + SKEW):
        raise BadAssertion("the assertion was used before")


def expected_audiences() -> set[str]:
    """Return the accepted audiences: the deployment's addresses and those of the settings."""
    base = settings.BASE_URL
    return {base, f"{base}/", f"{base}/services/oauth2/token", *settings.JWT_AUDIENCES}


def _is_own_audience(claim: object) -> bool:
    """Return whether `aud` is this deployment alone.

    Another audience of the same assertion could replay it here.
    """
    audience = claim[0] if isinstance(claim, list) and len(claim) == 1 else claim
    return isinstance(audience, str) and audience in expected_audiences()


def _keys(client: Client) -> public_keys.Keys:
    usable_keys: public_keys.Keys = []
    for row in ApplicationKey.objects.filter(application_id=client.id):
        try:
            usable_keys.extend(public_keys.load(row.material))
        except ValueError as error:  # stored without the admin's check
            log.warning("assertions.key_unusable", key=row.pk, error=str(error))
    return usable_keys


def _verifies(assertion: UnverifiedAssertion, key: Any) -> bool:
    unchecked = ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")
    options: Any = {f"verify_{name}": False for name in unchecked}
    try:
        jwt.decode(assertion.text, key, algorithms=[assertion.algorithm], options=options)
    except jwt.InvalidTokenError:
        return False
    return True


def _instant(value: object) -> datetime:
    """Return a time given as a number, a numeric string, or in milliseconds. Raise BadAssertion."""
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise TypeError
        number = float(value)
        return datetime.fromtimestamp(number / 1000 if number > MILLISECONDS else number, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        raise BadAssertion("a time is missing or is not a number") from None
