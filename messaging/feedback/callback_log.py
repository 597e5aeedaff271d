"""The log of provider callbacks: the verdict on each, and nothing of its content.

Applied callbacks are noted by the statement that completes them, and repeated ones by the statement
that would have stored them (`callbacks`). Only refused ones cost a statement of their own, at most
one a second for each account and process.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from time import monotonic
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models import Q

from messaging.models import CallbackLogEntry
from messaging.store.feedback import callbacks
from rme.core import ids
from rme.core.cache import TtlCache
from rme.core.db import clock, keyset, sql
from rme.core.provider import CallbackRequest

Verdict = CallbackLogEntry.Verdict
SHOWN = 50
SCANNED = 5000
"""The entries that a page of the log looks through."""
PURGE_BATCH, PURGE_SECONDS = 5000, 10.0

_recent: TtlCache[int, bool] = TtlCache(seconds=1)
_unwritten: Counter[int] = Counter()
"""The refused callbacks of an account since its last entry; those after it wait for the next."""


class LogPage(NamedTuple):
    """Entries, the latest first, and where the next page begins; None: there is none."""

    entries: Sequence[CallbackLogEntry]
    following: UUID | None


def note_refused(organization_id: str, account_id: int, request: CallbackRequest) -> None:
    """Note a callback that is not authentic. Anybody may send these, so they are summed."""
    _unwritten[account_id] += 1
    if _recent.get(account_id, lambda: None):
        return
    _recent.put(account_id, True)
    entry = {
        "organization_id": organization_id,
        "id": ids.new_id(),
        "account_id": account_id,
        "verdict": Verdict.SIGNATURE.value,
        "detail": "",
        "method": request.method,
        "size": len(request.body),
        "count": _unwritten.pop(account_id, 1),
        "at": request.received_at,
    }
    sql.insert({CallbackLogEntry: [entry]})


def find(
    organization_id: str, *, account_id: int | None, verdict: str, before: UUID | None
) -> LogPage:
    """Return a page of the log; two statements."""
    rows = CallbackLogEntry.objects.filter(organization_id=organization_id)
    condition = Q(verdict=verdict) if verdict else Q()
    if account_id is not None:
        condition &= Q(account_id=account_id)
    page = keyset.page(rows, condition, limit=SHOWN, before=before, key="id", scanned=SCANNED)
    return LogPage(*page)


def purge() -> None:
    """Delete entries that were kept for CALLBACK_LOG_DAYS, in batches."""
    oldest = ids.at_least(clock.now() - timedelta(days=settings.CALLBACK_LOG_DAYS))
    until = monotonic() + PURGE_SECONDS
    while callbacks.delete_notes(oldest, PURGE_BATCH) == PURGE_BATCH and monotonic() < until:
        pass
