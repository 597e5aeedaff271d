"""The history of circuits: a row for each change of a state, kept for some days.

The script that decides (`circuits`) says which accounts changed, so one process writes each change.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta

import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError

from messaging.delivery.accounts import circuits
from messaging.delivery.accounts.circuits import CircuitStates
from messaging.models import CircuitChange
from messaging.store.reports import accounts
from rme.core import ids
from rme.core.db import clock, sql
from rme.core.outcomes import Outcome

log = structlog.get_logger(__name__)

Why = CircuitChange.Why
LATEST = 5
"""The latest changes that a list of accounts shows of each."""


def report(
    sends: Iterable[tuple[int | None, Outcome]], *, rest_seconds: float = 0.0
) -> CircuitStates:
    """Report the outcomes of sends (`circuits.report`), and store the changes that follow.

    A change costs one statement. No transaction is open.
    """
    states = circuits.report(sends, rest_seconds=rest_seconds)
    if states.changes:
        _store(states.changes)
    return states


def _store(changes: Mapping[int, Why]) -> None:
    """Store changes by account. A failure is logged: sending goes on."""
    try:
        now = clock.now()
        rows = [
            {
                "id": ids.new_id(),
                "account_id": account_id,
                "is_open": cause is not Why.ANSWERED,
                "why": cause.value,
                "at": now,
            }
            for account_id, cause in changes.items()
        ]
        sql.insert({CircuitChange: rows})
    except (DatabaseError, InterfaceError) as error:
        log.warning("circuits.not_stored", count=len(changes), error=type(error).__name__)


def latest(
    account_ids: Collection[int], limit: int = LATEST
) -> Mapping[int, Sequence[CircuitChange]]:
    """Return the latest changes of accounts, the latest first; one statement."""
    return accounts.read_changes(account_ids, limit)


def purge() -> None:
    """Delete changes that were kept for CIRCUIT_HISTORY_DAYS."""
    oldest = ids.at_least(clock.now() - timedelta(days=settings.CIRCUIT_HISTORY_DAYS))
    CircuitChange.objects.filter(id__lt=oldest).delete()
