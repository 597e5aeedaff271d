"""API keys of the bot service: `rme_<public id>_<secret>`, of which only a digest is kept."""

import hashlib
import secrets
import string
from typing import Any

from rme.core import clock
from rme.tenants.models import ApiKey, Organization

PREFIX = "rme"


def digest(secret: str) -> str:
    """Give what is stored of a secret (SHA-256 of 32 random bytes)."""
    return hashlib.sha256(secret.encode()).hexdigest()


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
    """Find the living key that a text is, if it is one of this organization's.

    The secret is compared in constant time, with a stand-in where there is no such key.
    """
    prefix, _, rest = text.partition("_")
    public_id, _, secret = rest.partition("_")
    usable = prefix == PREFIX and public_id.isascii() and public_id.isalnum()
    key = (
        ApiKey.objects.filter(public_id=public_id, organization_id=organization_id).first()
        if usable
        else None
    )
    stored = key.digest if key else digest("")
    same = secrets.compare_digest(digest(secret), stored)
    if key is None or not same or key.revoked_at:
        return None
    if key.expires_at and key.expires_at <= clock.now():
        return None
    return key
