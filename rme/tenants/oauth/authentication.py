"""Authentication of REST calls: from a bearer token to its organization (RFC 6750)."""

import re
import time
from dataclasses import dataclass
from typing import Any

from django.db import connection
from oauth2_provider.models import AccessToken
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from rme.core import errors, logs
from rme.core.cache import TtlCache
from rme.core.process import admission
from rme.core.process.admission import Owners
from rme.tenants.models import INTEGRATION_GROUP, Application, Organization, User
from rme.tenants.oauth import tokens
from rme.tenants.oauth.permissions import EVERYTHING, Grants
from rme.tenants.oauth.tokens import SCOPE
from rme.tenants.organizations import FIELDS, OrganizationRecord, require_served

__all__ = ["BearerAuthentication", "Caller", "OrganizationRecord", "caller_of", "forget"]

REALM = 'Bearer realm="rme"'
CACHE_SECONDS = 30
"""How long a looked-up token is cached: a revocation takes effect within this time."""

_TOKEN = re.compile(
    r"[A-Za-z0-9._~+/-]+=*"
)  # RFC 6750 §2.1; also rejects several headers joined into one


@dataclass(frozen=True, slots=True)
class Caller:
    """The calling program: its organization, application and user; `test` is its mode."""

    organization: OrganizationRecord
    application_id: int
    user_id: int
    test: bool
    grants: Grants = EVERYTHING
    """Its permissions; only applications have less than all."""

    @property
    def log_ids(self) -> dict[str, str | int]:
        """Return the ids that log lines of the caller's requests have."""
        return {"organization_id": self.organization.id, "application_id": self.application_id}


@dataclass(frozen=True, slots=True)
class KnownToken:
    """A looked-up token."""

    caller: Caller
    until: float
    """When it expires, on this process's monotonic clock."""
    scopes: frozenset[str]
    problem: str = ""
    """Why the token may not be used although it has not expired; empty: it may be used."""


class IntegrationUser:
    """The user of every REST request: only `is_authenticated` is read."""

    is_authenticated = True


_USER = IntegrationUser()
_tokens: TtlCache[str, KnownToken] = TtlCache(seconds=CACHE_SECONDS, size=10_000)

_organization = ", ".join(f"o.{name}" for name in FIELDS)
_LOOK_UP = f"""
SELECT {_organization}, a.id, u.id, a.mode = 'TEST', a.permissions, a.send_categories, t.scope,
  EXTRACT(EPOCH FROM t.expires - clock_timestamp())::float8,
  o.is_active, u.is_active, EXISTS (
    SELECT FROM {User.groups.through._meta.db_table} m JOIN auth_group g ON g.id = m.group_id
    WHERE m.user_id = u.id AND g.name = %s)
FROM {AccessToken._meta.db_table} t
JOIN {Application._meta.db_table} a ON a.id = t.application_id
JOIN {Organization._meta.db_table} o ON o.id = a.organization_id
JOIN {User._meta.db_table} u ON u.id = a.user_id
WHERE t.token_checksum = %s
"""


class BearerAuthentication(BaseAuthentication):
    """Reads `Authorization: Bearer`; a token is looked up once in thirty seconds.

    Tokens in the query or in a form (RFC 6750 §2.2, §2.3) are ignored: they would appear in logs.
    """

    def authenticate(self, request: Request) -> tuple[IntegrationUser, Caller]:
        meta = request._request.META
        caller = caller_of_header(meta.get("HTTP_AUTHORIZATION", ""))
        logs.caller.set(caller.log_ids)
        admission.claim(meta, Owners(caller.organization.id))
        return _USER, caller

    def authenticate_header(self, request: Request) -> str:
        return REALM


def caller_of_header(header: str) -> Caller:
    """Return the caller of an `Authorization` header. Raise Unauthorized."""
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise errors.Unauthorized(headers={"WWW-Authenticate": REALM})
    return caller_of(token.strip())


def caller_of(token: str) -> Caller:
    """Return the caller of a token; one query if it is not cached.

    Raise Unauthorized, or what `organizations.require_served` raises.
    """
    if not _TOKEN.fullmatch(token):
        raise _refusal("invalid_token", "The token is malformed.")
    digest = tokens.digest(token)
    result = _tokens.get(digest, lambda: _look_up(digest))
    if result is None:
        raise _refusal("invalid_token", "The token is unknown or was revoked.")
    if result.problem:
        _tokens.forget(digest)  # so that a permission granted now takes effect at once
        raise _refusal("invalid_token", result.problem)
    if result.until <= time.monotonic():
        raise _refusal("invalid_token", "The token has expired.")
    if SCOPE not in result.scopes:
        raise _refusal("insufficient_scope", "The token lacks the scope api.", scope=SCOPE)
    require_served(result.caller.organization.id)
    return result.caller


def forget(token: str) -> None:
    """Drop a token from the cache of this process; in others it stays for `CACHE_SECONDS`."""
    _tokens.forget(tokens.digest(token))


def _refusal(code: str, description: str, **attributes: str) -> errors.Unauthorized:
    parts = {"error": code, "error_description": description, **attributes}
    challenge = ", ".join([REALM, *(f'{name}="{value}"' for name, value in parts.items())])
    return errors.Unauthorized(description, headers={"WWW-Authenticate": challenge})


def _look_up(digest: str) -> KnownToken | None:
    looked_up_at = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute(_LOOK_UP, [INTEGRATION_GROUP, digest])
        row: tuple[Any, ...] | None = cursor.fetchone()
    if row is None:
        return None
    organization = OrganizationRecord(*row[: len(FIELDS)])
    application, user, test, permissions, categories, *token = row[len(FIELDS) :]
    scope, seconds, organization_on, user_on, permitted = token
    problem = ""
    if not organization_on:
        problem = "The organization is disabled."
    elif not user_on:
        problem = "The integration user is disabled."
    elif not permitted:
        problem = f"The integration user lacks the permission set {INTEGRATION_GROUP}."
    return KnownToken(
        caller=Caller(organization, application, user, test, Grants.of(permissions, categories)),
        until=looked_up_at + seconds,
        scopes=frozenset(scope.split()),
        problem=problem,
    )
