"""API keys of the bot service: `rme_<public id>_<secret>`. The secret is stored as a digest."""

import hashlib
import secrets
import string
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address, ip_network
from typing import Any
from uuid import UUID

import orjson
from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Least, Now

from rme.tenants.models import ApiKey, Organization
from rme.tenants.organizations import FIELDS, OrganizationRecord

PREFIX = "rme"
OVERLAP = timedelta(days=7)
"""How long a key stays valid after its rotation, for bots that still use it."""

# Records the use of a valid key with the right secret, at most once a minute.
_organization = ", ".join(f"o.{name}" for name in FIELDS)
_LOOK_UP = f"""
WITH used AS (
  UPDATE {ApiKey._meta.db_table} SET last_used_at = now()
  WHERE public_id = %(public_id)s AND digest = %(digest)s AND organization_id = %(organization)s
    AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
    AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute'))
SELECT k.digest, k.id, k.public_id, k.actions, k.networks, {_organization}
FROM {ApiKey._meta.db_table} k JOIN {Organization._meta.db_table} o ON o.id = k.organization_id
WHERE k.public_id = %(public_id)s AND k.organization_id = %(organization)s AND o.is_active
  AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())
"""


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A valid key, whose secret the caller presented."""

    id: int
    public_id: str
    actions: tuple[str, ...]
    """The actions that it allows; empty: all."""
    networks: tuple[str, ...]
    organization: OrganizationRecord

    def allows(self, action: str) -> bool:
        """Return whether the key allows an action."""
        return not self.actions or action in self.actions


def digest(secret: str) -> str:
    """Return the digest that is stored for a secret (SHA-256 of 32 random bytes)."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def issue(organization: Organization, name: str, **restrictions: object) -> tuple[ApiKey, str]:
    """Issue a key; return it with its text, which is not stored.

    `restrictions` are `actions`, `networks` and `expires_at`; `maker` is the `User.person` who
    issues it.
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


def rotate(key: ApiKey, maker: UUID | None = None) -> tuple[ApiKey, str]:
    """Issue a key with the same restrictions; the old one expires after `OVERLAP` or earlier."""
    with transaction.atomic():
        restrictions = {"actions": key.actions, "networks": key.networks, "maker": maker}
        new_key = issue(key.organization, key.name, **restrictions)
        ApiKey.objects.filter(pk=key.pk).update(expires_at=Least(F("expires_at"), Now() + OVERLAP))
    return new_key


def revoke(key: ApiKey) -> None:
    """Revoke a key at once."""
    ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=Now())


def verify(text: str, organization_id: str, address: str | None = None) -> KeyRecord | None:
    """Return the valid key of this organization with this text, or None. One statement.

    If an address is given, the key must allow its network. The secret is compared in constant
    time, with a digest of nothing if the key is unknown.
    """
    prefix, _, remainder = text.partition("_")
    public_id, _, secret = remainder.partition("_")
    usable = prefix == PREFIX and public_id.isascii() and public_id.isalnum()
    secret_digest = digest(secret)
    row = _find(public_id, secret_digest, organization_id) if usable else None
    is_same = secrets.compare_digest(secret_digest, row[0] if row else digest(""))
    if row is None or not is_same:
        return None
    _, identifier, public_id, actions, networks, *organization = row
    key = KeyRecord(
        identifier, public_id, _texts(actions), _texts(networks), OrganizationRecord(*organization)
    )
    return key if address is None or _within(address, key.networks) else None


def _find(public_id: str, secret_digest: str, organization_id: str) -> tuple[Any, ...] | None:
    if "\0" in organization_id or not organization_id.isascii():
        return None  # PostgreSQL rejects such text with an error
    values = {"public_id": public_id, "digest": secret_digest, "organization": organization_id}
    with connection.cursor() as cursor:
        cursor.execute(_LOOK_UP, values)
        row: tuple[Any, ...] | None = cursor.fetchone()
    return row


def _texts(value: str) -> tuple[str, ...]:
    return tuple(orjson.loads(value))


def _within(address: str, networks: Sequence[str]) -> bool:
    """Return whether an address is in one of the networks; an empty list allows all."""
    if not networks:
        return True
    try:
        parsed = ip_address(address)
        parsed = getattr(parsed, "ipv4_mapped", None) or parsed
        return any(parsed in ip_network(network, strict=False) for network in networks)
    except ValueError:
        return False
