"""Providers' own ids of messages: stored for receipts that name nothing else, and for polling."""

from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from django.db import connection

from messaging.models import ProviderReference
from rme.core import ids
from rme.core.db import clock
from rme.core.db.sql import Row
from rme.core.outcomes import Accepted, Outcome
from rme.core.provider import Provider

STORED = timedelta(days=7)
"""Networks give up after three days."""
ASK_AFTER = timedelta(seconds=15)
"""When a message is polled first: by then most phones have received it."""
_T = ProviderReference._meta.db_table

Key = tuple[int, str]
"""An account's id, and the provider's own id of the message."""

# The newest row counts, since an SMSC may start its numbers again.
_FIND = f"""
SELECT DISTINCT ON (r.account_id, r.reference) r.account_id, r.reference, r.id
FROM unnest(%s::bigint[], %s::text[]) AS w(account_id, reference)
JOIN {_T} r ON r.account_id = w.account_id AND r.reference = w.reference
ORDER BY r.account_id, r.reference, r.id DESC
"""


def reference_rows(
    attempt_id: str, account_id: int | None, provider: Provider | None, outcome: Outcome | None
) -> list[Row]:
    """Return the row to store for an outcome: none for most providers."""
    if provider is None or not (provider.names_its_own_ids or provider.polls):
        return []
    if account_id is None or not isinstance(outcome, Accepted) or not outcome.provider_id:
        return []
    return [
        {
            "id": attempt_id,
            "account_id": account_id,
            "reference": outcome.provider_id[:255],
            "ask_at": clock.now() + ASK_AFTER if provider.polls else None,
        }
    ]


def find(wanted: Collection[Key]) -> dict[Key, UUID]:
    """Return the attempts of providers' own ids: one statement, and none if none are wanted."""
    if not wanted:
        return {}
    accounts, references = zip(*sorted(wanted), strict=True)
    with connection.cursor() as cursor:
        cursor.execute(_FIND, [list(accounts), list(references)])
        return {(account, reference): found for account, reference, found in cursor.fetchall()}


def purge() -> None:
    """Delete rows for which no receipt comes any more. An attempt's id begins with its time."""
    ProviderReference.objects.filter(pk__lt=ids.at_least(clock.now() - STORED)).delete()
