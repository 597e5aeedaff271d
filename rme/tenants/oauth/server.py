"""The authorization server: oauthlib's endpoints with our grants and storage."""

import logging
from typing import Any

import orjson
from django.conf import settings
from oauthlib.oauth2 import (
    BearerToken,
    ClientCredentialsGrant,
    IntrospectEndpoint,
    RequestValidator,
    RevocationEndpoint,
    TokenEndpoint,
)
from oauthlib.oauth2.rfc6749 import errors
from oauthlib.oauth2.rfc6749.grant_types.base import GrantTypeBase

from rme.core.db import clock
from rme.tenants.models import Application
from rme.tenants.oauth import assertions, authentication, client_authentication, clients, tokens
from rme.tenants.oauth.clients import Client
from rme.tenants.oauth.permissions import Grants
from rme.tenants.oauth.tokens import SCOPE

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ADDRESS = "Rme-Address"
"""The header with the caller's address: set by our view, never by a caller."""

# The library writes whole tokens to its debug log.
logging.getLogger("oauthlib").setLevel(logging.INFO)


class JwtBearerGrant(GrantTypeBase):
    """A token for an assertion signed by one of the application's keys (RFC 7523 §2.1)."""

    def create_token_response(self, request: object, token_handler: Any) -> tuple[object, str, int]:
        headers = self._get_default_headers()
        try:
            self._validate(request)
        except errors.OAuth2Error as error:
            headers.update(error.headers)
            return headers, error.json, error.status_code
        token = token_handler.create_token(request, refresh_token=False)
        self.request_validator.save_token(token, request)
        return headers, orjson.dumps(token).decode(), 200

    def _validate(self, request: Any) -> None:
        text = getattr(request, "assertion", "")  # the library's request raises for a missing field
        if not text:
            raise errors.InvalidRequestError("assertion is required", request=request)
        try:
            assertion = assertions.parse(text)
            self._check_client(request, assertion.client_id)
            request.client = client_authentication.by_assertion(assertion, request.headers[ADDRESS])
            assertions.check_claims(assertion.claims, request.client)
            self.validate_scopes(request)
            assertions.mark_used(assertion)  # last, so that a rejected one can be used again
        except assertions.BadAssertion as error:
            raise errors.InvalidGrantError(str(error), request=request) from error

    def _check_client(self, request: object, issuer: str) -> None:
        """Check credentials sent along with the assertion, if any (RFC 7521 §4.1)."""
        credentials = clients.credentials(request)
        if credentials is None:
            return
        if credentials.client_id != issuer:
            raise assertions.BadAssertion("iss is not the client")
        if credentials.secret is not None and not self.request_validator.authenticate_client(
            request
        ):
            raise errors.InvalidClientError(request=request)


class Validator(RequestValidator):
    """Implements oauthlib's validation hooks with our database."""

    def client_authentication_required(self, request: object, *_: object, **__: object) -> bool:
        return True

    def authenticate_client(self, request: Any, *_: Any, **__: Any) -> bool:
        """Check a client's id and secret, from the form or HTTP Basic."""
        credentials = clients.credentials(request)
        if credentials is None:
            return False
        request.client = client_authentication.by_secret(credentials, request.headers[ADDRESS])
        return request.client is not None

    def validate_grant_type(self, *_: object, **__: object) -> bool:
        return True

    def get_default_scopes(self, *_: object, **__: object) -> list[str]:
        return [SCOPE]

    def validate_scopes(self, client_id: str, scopes: list[str], *_: object, **__: object) -> bool:
        return scopes == [SCOPE]

    def save_bearer_token(self, token: dict[str, Any], request: Any, *_: Any, **__: Any) -> None:
        is_stored = tokens.store(
            token["access_token"],
            request.client,
            scope=token["scope"],
            seconds=token["expires_in"],
        )
        if not is_stored:
            raise errors.InvalidClientError("the credentials were just changed", request=request)
        token.update(_for_salesforce_clients(request.client))
        token["permissions"] = _permissions(request.client)

    def revoke_token(self, token: str, token_type_hint: str, request: Any, *_: Any) -> None:
        tokens.revoke(token, request.client)
        authentication.forget(token)

    def introspect_token(
        self, token: str, token_type_hint: str, request: Any, *_: Any, **__: Any
    ) -> dict[str, Any] | None:
        row = tokens.find_valid(token, request.client.organization_id)
        if row is None:
            return None
        return {
            "active": True,
            "scope": row.scope,
            "permissions": _permissions(row.application),
            "client_id": row.application.client_id,
            "username": row.user.get_username(),
            "token_type": "Bearer",
            "exp": int(row.expires.timestamp()),
            "iat": int(row.created.timestamp()),
        }


def _for_salesforce_clients(client: Client) -> dict[str, str]:
    """Return the fields that clients written for Salesforce require."""
    base = settings.BASE_URL
    return {
        "instance_url": base,
        "id": f"{base}/id/{client.organization_id}/{client.user_id}",
        "issued_at": str(int(clock.now().timestamp() * 1000)),
    }


def _permissions(client: Client | Application) -> list[str]:
    """Return an application's permissions. The scope is always `api`, as clients expect."""
    return list(Grants.of(client.permissions, client.send_categories).names())


def _lifetime(request: Any) -> int:
    """Return the life of a token in seconds: that of a replaced secret ends with the secret."""
    until = request.client.tokens_until
    if until is None:
        return settings.TOKEN_SECONDS
    return min(settings.TOKEN_SECONDS, max(1, int((until - clock.now()).total_seconds())))


class Server(TokenEndpoint, RevocationEndpoint, IntrospectEndpoint):
    """The three endpoints, with the two grants for programs."""

    def __init__(self) -> None:
        validator = Validator()
        bearer = BearerToken(
            validator,
            token_generator=lambda request: tokens.new(),
            expires_in=_lifetime,
        )
        grants = {
            "client_credentials": ClientCredentialsGrant(validator),
            JWT_BEARER: JwtBearerGrant(validator),
        }
        # There are no refresh tokens, but a client may send that hint (RFC 7009 §2.1).
        hints = ["access_token", "refresh_token"]
        TokenEndpoint.__init__(self, "client_credentials", bearer, grants)
        RevocationEndpoint.__init__(self, validator, supported_token_types=hints)
        IntrospectEndpoint.__init__(self, validator, supported_token_types=hints)
