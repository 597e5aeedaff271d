"""Clients of the authorization server, and the credentials of a request."""

import base64
import binascii
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from urllib.parse import unquote_plus

from django.db.models.functions import Now
from oauthlib.oauth2.rfc6749 import errors

from rme.core.db import clock
from rme.tenants.models import INTEGRATION_GROUP, Application


@dataclass(frozen=True, slots=True)
class Client:
    """An application that may get tokens: the columns that issuing needs.

    Not a model, since building one takes as long as the query, and only for existing clients: the
    time would distinguish a known client with a wrong secret from an unknown one.
    """

    id: int
    client_id: str
    secret: str
    organization_id: str
    user_id: int
    username: str
    generation: int
    """Counts revocations of its tokens (see `tokens.store`)."""
    former_secret: str
    """The digest of the replaced secret; empty: there is none."""
    former_until: datetime | None
    secret_used_at: datetime | None
    former_used_at: datetime | None
    key_used_at: datetime | None
    permissions: list[str]
    send_categories: list[str]
    tokens_until: datetime | None = None
    """When its tokens end at the latest: those of a replaced secret end with it."""


_FIELDS = (
    *("id", "client_id", "client_secret", "organization_id", "user_id", "user__username"),
    *("generation", "former_secret", "former_until"),
    *("secret_used_at", "former_used_at", "key_used_at"),
    *("permissions", "send_categories"),
)
_USE_SECONDS = 60.0
"""How exactly the last use of a secret or key is known: each use would write a row."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials that a request presents, not verified yet."""

    client_id: str
    secret: str | None


def find(client_id: str) -> Client | None:
    """Return a client whose organization and integration user are active, or None."""
    if not client_id.isascii() or not client_id.isalnum():
        return None
    row = (
        Application.objects.filter(
            client_id=client_id,
            organization__is_active=True,
            user__is_active=True,
            user__groups__name=INTEGRATION_GROUP,
        )
        .values_list(*_FIELDS)
        .first()
    )
    return Client(*row) if row else None


def mark_used(
    client: Client, column: Literal["secret_used_at", "former_used_at", "key_used_at"]
) -> None:
    """Record that a secret or key was used, at most once a minute."""
    last_use: datetime | None = getattr(client, column)
    if last_use is None or (clock.now() - last_use).total_seconds() > _USE_SECONDS:
        unchanged = Application.objects.filter(pk=client.id, client_secret=client.secret)
        unchanged.update(**{column: Now()})


def credentials(request: Any) -> Credentials | None:
    """Return the credentials in HTTP Basic or in the form; None if there are none.

    Both may be used if they are equal (RFC 6749 §2.3 requires clients to use one of them).
    Raise InvalidRequestError or InvalidClientError.
    """
    basic = basic_credentials(request.headers.get("Authorization"))
    client_id, secret = request.client_id or None, request.client_secret or None
    if basic is None:
        return Credentials(client_id, secret) if client_id else None
    if client_id not in (None, basic.client_id) or secret not in (None, basic.secret):
        raise errors.InvalidRequestError("two differing credentials", request=request)
    return basic


def basic_credentials(header: str | None) -> Credentials | None:
    """Parse HTTP Basic; both parts are percent-decoded (RFC 6749 §2.3.1). None for other schemes.

    Raise InvalidClientError for a malformed header.
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
