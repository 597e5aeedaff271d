"""The authorization server: oauthlib's endpoints, with the grants and the storage that we want."""

import base64
import binascii
import hashlib
import secrets
from datetime import timedelta
from typing import Any
from urllib.parse import unquote_plus

import orjson
from django.conf import settings
from django.contrib.auth.hashers import check_password
from oauth2_provider.models import AccessToken, set_token_value
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

from rme.core import clock
from rme.tenants.models import INTEGRATION_GROUP, Application
from rme.tenants.oauth import assertions
from rme.tenants.oauth.hasher import SecretHasher

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
SCOPE = "api"

_NOBODY = SecretHasher().encode(secrets.token_urlsafe(32), "")
"""What an unknown client's secret is compared with, so that it takes as long as a wrong one."""


class JwtBearerGrant(GrantTypeBase):
    """A token for an assertion signed by one of the application's keys (RFC 7523 §2.1)."""

    def create_token_response(self, request: Any, token_handler: Any) -> tuple[Any, str, int]:
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
        if not request.assertion:
            raise errors.InvalidRequestError("assertion is required", request=request)
        try:
            checked = assertions.read(request.assertion)
            application = find_application(checked.client_id)
            if application is None:
                raise assertions.BadAssertion("iss is not an application")
            assertions.prove(checked, application)
            request.client = application
            self.validate_scopes(request)
            assertions.take(checked)
        except assertions.BadAssertion as error:
            raise errors.InvalidGrantError(str(error), request=request) from error


def find_application(client_id: str) -> Application | None:
    """Find an application that may have tokens: its organization and its user are in order."""
    if not client_id.isalnum() or not client_id.isascii():
        return None
    return (
        Application.objects.filter(
            client_id=client_id,
            organization__is_active=True,
            user__is_active=True,
            user__groups__name=INTEGRATION_GROUP,
        )
        .select_related("user", "organization")
        .first()
    )


def basic_credentials(header: str | None) -> tuple[str, str] | None:
    """Read HTTP Basic; both parts are percent-decoded (RFC 6749 §2.3.1). None for another scheme.

    Raises InvalidClientError for what cannot be read.
    """
    scheme, _, encoded = (header or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode()
        client_id, colon, secret = text.partition(":")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise errors.InvalidClientError("the credentials cannot be read") from None
    if not colon:
        raise errors.InvalidClientError("the credentials cannot be read")
    return unquote_plus(client_id), unquote_plus(secret)


class Validator(RequestValidator):
    """Answers oauthlib's questions from the database."""

    def client_authentication_required(self, request: Any, *_: Any, **__: Any) -> bool:
        return True

    def authenticate_client(self, request: Any, *_: Any, **__: Any) -> bool:
        """Check a client's id and secret, from the form or HTTP Basic; differing ones are refused."""
        basic = basic_credentials(request.headers.get("Authorization"))
        form = (request.client_id, request.client_secret or "") if request.client_id else None
        if basic and form and (basic[0] != form[0] or form[1] not in ("", basic[1])):
            raise errors.InvalidRequestError("two differing credentials", request=request)
        client_id, secret = basic or form or ("", "")
        application = find_application(client_id)
        stored = application.client_secret if application else _NOBODY
        if not check_password(secret, stored) or application is None:
            return False
        request.client = application
        return True

    def validate_grant_type(self, *_: Any, **__: Any) -> bool:
        return True

    def get_default_scopes(self, *_: Any, **__: Any) -> list[str]:
        return [SCOPE]

    def validate_scopes(self, client_id: str, scopes: list[str], *_: Any, **__: Any) -> bool:
        return set(scopes) <= {SCOPE}

    def save_bearer_token(self, token: dict[str, Any], request: Any, *_: Any, **__: Any) -> None:
        """Store a token: only its digest (the toolkit's COMPLIANT_BCP_RFC9700_TOKEN_STORAGE)."""
        row = AccessToken(
            user=request.client.user,
            application=request.client,
            scope=token["scope"],
            expires=clock.now() + timedelta(seconds=token["expires_in"]),
        )
        set_token_value(row, token["access_token"])
        row.save(force_insert=True)
        token.update(_for_salesforce_clients(request.client))

    def revoke_token(self, token: str, token_type_hint: str, request: Any, *_: Any) -> None:
        _tokens_of(request.client, token).delete()

    def introspect_token(
        self, token: str, token_type_hint: str, request: Any, *_: Any, **__: Any
    ) -> dict[str, Any] | None:
        row = _tokens_of(request.client, token).filter(expires__gt=clock.now()).first()
        if row is None:
            return None
        return {
            "active": True,
            "scope": row.scope,
            "client_id": row.application.client_id,
            "username": row.user.get_username(),
            "token_type": "Bearer",
            "exp": int(row.expires.timestamp()),
            "iat": int(row.created.timestamp()),
        }


def _tokens_of(client: Application, token: str) -> Any:
    """Find a token among those of the client's own organization."""
    checksum = hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
    return AccessToken.objects.filter(
        token_checksum=checksum, application__organization_id=client.organization_id
    ).select_related("application", "user")


def _for_salesforce_clients(application: Application) -> dict[str, str]:
    """Give the fields without which clients made for Salesforce fail."""
    base = settings.BASE_URL
    return {
        "instance_url": base,
        "id": f"{base}/id/{application.organization_id}/{application.user_id}",
        "issued_at": str(int(clock.now().timestamp() * 1000)),
    }


class Server(TokenEndpoint, RevocationEndpoint, IntrospectEndpoint):
    """The three endpoints, with the two grants for programs."""

    def __init__(self) -> None:
        validator = Validator()
        bearer = BearerToken(
            validator,
            token_generator=lambda request: secrets.token_urlsafe(32),
            expires_in=settings.TOKEN_SECONDS,
        )
        grants = {
            "client_credentials": ClientCredentialsGrant(validator),
            JWT_BEARER: JwtBearerGrant(validator),
        }
        TokenEndpoint.__init__(self, "client_credentials", bearer, grants)
        RevocationEndpoint.__init__(self, validator, supported_token_types=["access_token"])
        IntrospectEndpoint.__init__(self, validator, supported_token_types=["access_token"])
