"""Who calls the REST API: from a bearer token to an organization (RFC 6750)."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from oauth2_provider.models import AccessToken
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from rme.core import clock, errors
from rme.core.cache import TtlCache
from rme.tenants.models import INTEGRATION_GROUP, Application, Organization, User
from rme.tenants.oauth.server import SCOPE
from rme.tenants.organizations import FIELDS, OrganizationRecord

REALM = 'Bearer realm="rme"'


@dataclass(frozen=True, slots=True)
class Caller:
    """The program that calls: for whom, as which application, and whether it only tests."""

    organization: OrganizationRecord
    application_id: int
    user_id: int
    test: bool


@dataclass(frozen=True, slots=True)
class Known:
    """A token that was looked up."""

    caller: Caller
    expires: datetime
    scopes: frozenset[str]
    problem: str = ""
    """Why the token may not be used though it is alive; empty: it may."""


class IntegrationUser:
    """Stands in for the user of a request: it is authenticated, and nothing is read of it."""

    is_authenticated = True


_USER = IntegrationUser()
_known: TtlCache[str, Known] = TtlCache(seconds=30, size=10_000)

_organization = ", ".join(f"o.{name}" for name in FIELDS)
_LOOK_UP = f"""
SELECT {_organization}, a.id, u.id, a.mode = 'TEST', t.expires, t.scope,
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
    """Read `Authorization: Bearer`; the token is looked up once in thirty seconds."""

    def authenticate(self, request: Request) -> tuple[IntegrationUser, Caller]:
        header = request._request.META.get("HTTP_AUTHORIZATION", "")
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise errors.Unauthorized(headers={"WWW-Authenticate": REALM})
        return _USER, caller_of(token.strip())

    def authenticate_header(self, request: Request) -> str:
        return REALM


def caller_of(token: str) -> Caller:
    """Give who a token stands for; one query when it was not seen lately. Raises Unauthorized."""
    checksum = hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
    known = _known.get(checksum, lambda: _look_up(checksum))
    if known is None:
        raise _refusal("invalid_token", "The token is unknown or was revoked.")
    if known.problem:
        _known.forget(checksum)  # so that a permission just given is felt at once
        raise _refusal("invalid_token", known.problem)
    if known.expires <= clock.now():
        raise _refusal("invalid_token", "The token has expired.")
    if SCOPE not in known.scopes:
        raise _refusal("insufficient_scope", "The token lacks the scope api.", scope=SCOPE)
    return known.caller


def _refusal(code: str, description: str, **more: str) -> errors.Unauthorized:
    parts = {"error": code, "error_description": description, **more}
    challenge = ", ".join([REALM, *(f'{name}="{value}"' for name, value in parts.items())])
    return errors.Unauthorized(description, headers={"WWW-Authenticate": challenge})


def _look_up(checksum: str) -> Known | None:
    with connection.cursor() as cursor:
        cursor.execute(_LOOK_UP, [INTEGRATION_GROUP, checksum])
        row: tuple[Any, ...] | None = cursor.fetchone()
    if row is None:
        return None
    organization = OrganizationRecord(*row[: len(FIELDS)])
    application, user, test, expires, scope, organization_on, user_on, permitted = row[
        len(FIELDS) :
    ]
    problem = ""
    if not organization_on:
        problem = "The organization is disabled."
    elif not user_on:
        problem = "The integration user is disabled."
    elif not permitted:
        problem = f"The integration user lacks the permission set {INTEGRATION_GROUP}."
    return Known(
        caller=Caller(organization, application, user, test),
        expires=expires,
        scopes=frozenset(scope.split()),
        problem=problem,
    )
