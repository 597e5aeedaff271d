"""API keys of the bot service: `rme_<public id>_<secret>`, of which only a digest is kept."""

import hashlib
import secrets
import string
from typing import Any

from django.db.models import Q
from django.db.models.functions import Now

from rme.tenants.models import ApiKey, Organization

PREFIX = "rme"


def digest(secret: str) -> str:
    """Give what is stored of a secret (SHA-256 of 32 random bytes)."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def issue(organization: Organization, name: str, **restrictions: Any) -> tuple[ApiKey, str]:
    """Issue a key; gives it with its text, which cannot be read again.

    `restrictions` are `actions`, `networks` and `expires_at`.
    """
    alphabet = string.ascii_lowercase + string.digits
    public_id = "".join(secrets.choice(alphabet) for _ in range(16))
    secret = secrets.token_urlsafe(32)
    key = ApiKey.objects.create(
        organization=organization,
        name=name,
        public_id=public_id,
        digest=digest(secret),
        **restrictions,
    )
    return key, f"{PREFIX}_{public_id}_{secret}"


def verify(text: str, organization_id: str) -> ApiKey | None:
    """Find the living key that a text is, if it is one of this organization's. One query.

    The secret is compared in constant time, with a stand-in where there is no such key.
    """
    prefix, _, rest = text.partition("_")
    public_id, _, secret = rest.partition("_")
    usable = prefix == PREFIX and public_id.isascii() and public_id.isalnum()
    key = _living(public_id, organization_id) if usable else None
    same = secrets.compare_digest(digest(secret), key.digest if key else digest(""))
    return key if same else None


def _living(public_id: str, organization_id: str) -> ApiKey | None:
    if "\0" in organization_id or not organization_id.isascii():
        return None  # what PostgreSQL would not even take
    unexpired = Q(expires_at=None) | Q(expires_at__gt=Now())
    return ApiKey.objects.filter(
        unexpired,
        public_id=public_id,
        organization_id=organization_id,
        organization__is_active=True,
        revoked_at=None,
    ).first()
