"""JWT assertions as authorization grants (RFC 7523 §3), strict where it is about security and
lenient where real clients are sloppy.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import structlog
from django.conf import settings
from django.db import connection

from rme.core.db import clock
from rme.tenants.models import ApplicationKey, Assertion
from rme.tenants.oauth import keys
from rme.tenants.oauth.clients import Client
from rme.tenants.oauth.keys import ALGORITHMS

log = structlog.get_logger(__name__)

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
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise BadAssertion(f"the algorithm must be one of {', '.join(ALGORITHMS)}")
    if any(name in header for name in FORBIDDEN_HEADERS):
        raise BadAssertion("the header names a key or an extension")
    if str(header.get("typ", "JWT")).upper() != "JWT":
        raise BadAssertion("the type is not JWT")
    if not isinstance(claims.get("iss"), str):
        raise BadAssertion("iss is missing")
    return Checked(text, algorithm, header.get("kid"), claims)


def is_signed_by(checked: Checked, client: Client | None) -> bool:
    """Return whether one of the client's keys signed; without a client it costs the same and is no."""
    if client is None:
        _verifies(checked, keys.stand_in(checked.algorithm))
        return False
    return any(
        _verifies(checked, key)
        for kid, key in _keys(client)
        if isinstance(key, ALGORITHMS[checked.algorithm])
        and (not kid or not checked.key_id or kid == checked.key_id)
    )


def check_claims(claims: Mapping[str, Any], client: Client) -> None:
    """Check what a signed assertion says (RFC 7523 §3). Raises BadAssertion."""
    now = clock.now()
    if claims.get("sub") != client.username:
        raise BadAssertion("sub is not the application's integration user")
    if not _names_us(claims.get("aud")):
        raise BadAssertion("aud is not this deployment")
    expires = _instant(claims.get("exp"))
    if expires + SKEW <= now:
        raise BadAssertion("the assertion has expired")
    if expires > now + LONGEST + SKEW:
        raise BadAssertion("exp is more than an hour ahead")
    for name in ("nbf", "iat"):
        if name in claims and _instant(claims[name]) > now + SKEW:
            raise BadAssertion(f"{name} is in the future")


def take(checked: Checked) -> None:
    """Remember an assertion until it expires. Raises BadAssertion if it was taken before.

    Without a `jti` it is known by what was signed, and not by its whole text: a signature can be
    written in more than one way (padding; the other root of an ECDSA signature).
    """
    jti = checked.claims.get("jti")
    known = isinstance(jti, str) and jti
    name = f"jti {jti}" if known else f"input {checked.text.rpartition('.')[0]}"
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
    """Forget assertions that have expired; return how many."""
    return Assertion.objects.filter(expires_at__lt=clock.now()).delete()[0]


def expected_audiences() -> set[str]:
    """Return the audiences that an assertion may name: this deployment's addresses, and settings'."""
    base = settings.BASE_URL
    return {base, f"{base}/", f"{base}/services/oauth2/token", *settings.JWT_AUDIENCES}


def _names_us(given: Any) -> bool:
    """Return whether `aud` is us and nobody else: who shares an assertion could use it here."""
    audience = given[0] if isinstance(given, list) and len(given) == 1 else given
    return isinstance(audience, str) and audience in expected_audiences()


def _keys(client: Client) -> keys.Keys:
    found: keys.Keys = []
    for row in ApplicationKey.objects.filter(application_id=client.id):
        try:
            found.extend(keys.load(row.material))
        except ValueError as error:  # saved around the admin's check; the other keys still serve
            log.warning("assertions.key_unusable", key=row.pk, error=str(error))
    return found


def _verifies(checked: Checked, key: Any) -> bool:
    unchecked = ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")
    options: Any = {f"verify_{name}": False for name in unchecked}
    try:
        jwt.decode(checked.text, key, algorithms=[checked.algorithm], options=options)
    except jwt.InvalidTokenError:
        return False
    return True


def _instant(value: Any) -> datetime:
    """Read a time as sloppy clients write it: a number, a numeric string, or milliseconds."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = float(value)
        return datetime.fromtimestamp(number / 1000 if number > MILLISECONDS else number, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        raise BadAssertion("a time is missing or is not a number") from None
