"""Access tokens: made at random, stored as digests, found by them."""

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
"""The one scope there is, and the default."""

SWEEP_BATCH = 10_000


def new() -> str:
    """Make a token: 256 random bits."""
    return secrets.token_urlsafe(32)


def digest(token: str) -> str:
    """Return what is stored of a token. It is random, so a fast hash is enough (see `hasher`)."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def store(token: str, client: Client, *, scope: str, seconds: int) -> bool:
    """Store a token's digest (the toolkit does so under COMPLIANT_BCP_RFC9700_TOKEN_STORAGE).

    Return False if the client's tokens were revoked after its credentials had been read: who
    revokes waits for this row, or this statement for who revokes.
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
    """End a token of this client; anything else stays as it is (RFC 7009 §2.1)."""
    AccessToken.objects.filter(token_checksum=digest(token), application_id=client.id).delete()


def living(token: str, organization_id: str) -> Any | None:
    """Find a token that would be accepted now, among those of one organization."""
    found: QuerySet[Any] = AccessToken.objects.filter(
        token_checksum=digest(token),
        expires__gt=clock.now(),
        application__organization_id=organization_id,
        application__organization__is_active=True,
        user__is_active=True,
        user__groups__name=INTEGRATION_GROUP,
    )
    return found.select_related("application", "user").first()


def sweep() -> int:
    """Delete tokens that have expired, at most some thousands at once; return how many."""
    table = AccessToken._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f"DELETE FROM {table} WHERE id IN "
            f"(SELECT id FROM {table} WHERE expires < now() LIMIT %s)",
            [SWEEP_BATCH],
        )
        return int(cursor.rowcount)
