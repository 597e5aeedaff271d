"""Which application calls the authorization server: by its secret, or by a signed assertion."""

import base64
import binascii
import secrets
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus

from oauthlib.oauth2.rfc6749 import errors

from rme.tenants.models import INTEGRATION_GROUP, Application
from rme.tenants.oauth import assertions, throttle
from rme.tenants.oauth.assertions import BadAssertion, Checked
from rme.tenants.oauth.hasher import SecretHasher

ADDRESS = "Rme-Address"
"""The name under which a request brings its address along; made by the view, never by a caller."""

_hasher = SecretHasher()
_NOBODY = _hasher.encode(secrets.token_urlsafe(32), "")
"""What an unknown client's secret is compared with, so that it takes as long as a wrong one."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client gave; nothing is proved yet."""

    client_id: str
    secret: str | None


def by_secret(given: Credentials, address: str) -> Application | None:
    """Find the application that these are the credentials of. Raises Throttled."""
    throttle.check(address, given.client_id)
    application = find(given.client_id)
    stored = application.client_secret if application else _NOBODY
    same = _hasher.verify(given.secret or "", stored)
    return _concluded(application if same else None, given.client_id, address)


def by_assertion(checked: Checked, address: str) -> Application:
    """Find the application that signed an assertion. Raises BadAssertion, Throttled.

    Whether there is no such client or the signature is wrong is not told apart.
    """
    throttle.check(address, checked.client_id)
    application = find(checked.client_id)
    signed = assertions.is_signed_by(checked, application)
    proved = _concluded(application if signed else None, checked.client_id, address)
    if proved is None:
        raise BadAssertion("the signature is not one of the application's keys'")
    return proved


def find(client_id: str) -> Application | None:
    """Find an application that may have tokens: its organization and its user are in order."""
    if not client_id.isascii() or not client_id.isalnum():
        return None
    found: Application | None = (
        Application.objects.filter(
            client_id=client_id,
            organization__is_active=True,
            user__is_active=True,
            user__groups__name=INTEGRATION_GROUP,
        )
        .select_related("user")
        .first()
    )
    return found


def credentials(request: Any) -> Credentials | None:
    """Read a client's credentials from HTTP Basic or the form; None if there are none.

    Both may be used as long as they say the same (RFC 6749 §2.3 asks clients for one of them).
    Raises InvalidRequestError, InvalidClientError.
    """
    basic = basic_credentials(request.headers.get("Authorization"))
    client_id, secret = request.client_id or None, request.client_secret or None
    if basic is None:
        return Credentials(client_id, secret) if client_id else None
    if client_id not in (None, basic.client_id) or secret not in (None, basic.secret):
        raise errors.InvalidRequestError("two differing credentials", request=request)
    return basic


def basic_credentials(header: str | None) -> Credentials | None:
    """Read HTTP Basic; both parts are percent-decoded (RFC 6749 §2.3.1). None for another scheme.

    Raises InvalidClientError for what cannot be read.
    """
    scheme, _, encoded = (header or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        raise errors.InvalidClientError("the credentials cannot be read") from None
    client_id, colon, secret = text.partition(":")
    if not colon:
        raise errors.InvalidClientError("the credentials cannot be read")
    return Credentials(unquote_plus(client_id), unquote_plus(secret))


def _concluded(application: Application | None, client_id: str, address: str) -> Application | None:
    if application is None:
        throttle.failed(address, client_id)
    else:
        throttle.proved(client_id)
    return application
