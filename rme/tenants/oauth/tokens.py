"""Access tokens: random, stored as digests and looked up by them."""

import hashlib
import secrets
from datetime import timedelta
from typing import Any

from django.db import connection
from django.db.models import QuerySet
from oauth2_provider.models import AccessToken, set_token_value

from rme.core.db import clock
from rme.tenants.models import INTEGRATION_GROUP, Application
from rme.tenants.oauth.clients import Client

SCOPE = "api"
"""The only scope, and the default."""

SWEEP_BATCH = 10_000


def new() -> str:
    """Return a new token: 256 random bits."""
    return secrets.token_urlsafe(32)


def digest(token: str) -> str:
    """Return the digest to store. A token is random, so a fast hash is safe (see `hasher`)."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def store(token: str, client: Client, *, scope: str, seconds: int) -> bool:
    """Store a token's digest (the toolkit does so under COMPLIANT_BCP_RFC9700_TOKEN_STORAGE).

    Return False if the client's tokens were revoked after its credentials were read. The
    row lock orders this statement and a concurrent revocation.
    """
    row = AccessToken(
        user_id=client.user_id,
        application_id=client.id,
        scope=scope,
        expires=clock.now() + timedelta(seconds=seconds),
    )
    set_token_value(row, token)
    fields = [field for field in AccessToken._meta.concrete_fields if not field.primary_key]
    values = [field.get_db_prep_save(field.pre_save(row, True), connection) for field in fields]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {AccessToken._meta.db_table} "
            f"({', '.join(field.column for field in fields)}) "
            f"SELECT {', '.join(f'%s::{field.db_type(connection)}' for field in fields)} "
            f"FROM {Application._meta.db_table} WHERE id = %s AND generation = %s FOR SHARE",
            [*values, client.id, client.generation],
        )
        return bool(cursor.rowcount)


def revoke(token: str, client: Client) -> None:
    """Delete a token of this client; tokens of others are not affected (RFC 7009 §2.1)."""
    AccessToken.objects.filter(token_checksum=digest(token), application_id=client.id).delete()


def find_valid(token: str, organization_id: str) -> Any | None:
    """Return a token of one organization that would be accepted now, or None."""
    rows: QuerySet[Any] = AccessToken.objects.filter(
        token_checksum=digest(token),
        expires__gt=clock.now(),
        application__organization_id=organization_id,
        application__organization__is_active=True,
        user__is_active=True,
        user__groups__name=INTEGRATION_GROUP,
    )
    return rows.select_related("application", "user").first()


def purge() -> int:
    """Delete expired tokens, at most `SWEEP_BATCH`; return how many."""
    table = AccessToken._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f"DELETE FROM {table} WHERE id IN "
            f"(SELECT id FROM {table} WHERE expires < now() LIMIT %s)",
            [SWEEP_BATCH],
        )
        return int(cursor.rowcount)
