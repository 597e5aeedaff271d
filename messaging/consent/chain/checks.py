"""Verifications of the consent ledger: ordered by a person, done by a worker in slices, kept."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models.functions import Now

from messaging.consent import ledger
from messaging.consent.ledger import Verification
from messaging.models import ConsentEntry, LedgerCheck
from rme.core.db import locks
from rme.core.db.due import next_turn

State = LedgerCheck.State
COUNTED = 10_000
"""The most entries that are counted for a page."""


def begin(organization_id: str, started_by: str) -> LedgerCheck:
    """Order a verification; return the one that runs, if there is one."""
    running = LedgerCheck.objects.filter(organization_id=organization_id, state=State.RUNNING)
    if check := running.order_by("-pk").first():
        return check
    total = ConsentEntry.objects.filter(organization_id=organization_id).count()
    return LedgerCheck.objects.create(
        organization_id=organization_id, total=total, started_by=started_by
    )


def work() -> bool:
    """Verify a slice of the ledger that has waited longest; return whether more may be waiting."""
    check_id = next_turn(LedgerCheck)
    return check_id is not None and run_slice(check_id)


def run_slice(check_id: UUID) -> bool:
    """Verify the next slice, if the verification runs; return whether it could be done now."""
    with locks.alone(f"ledger_check {check_id}") as is_alone:
        if not is_alone:
            return False
        row = LedgerCheck.objects.get(pk=check_id)
        if row.state != State.RUNNING:
            return True
        progress = Verification(row.entries, row.erased, row.head, None, row.last)
        verification = ledger.verify_batch(row.organization_id, progress)
        row.entries, row.erased, row.head = (
            verification.entries,
            verification.erased,
            verification.head,
        )
        row.last, row.broken = verification.last, verification.broken
        changed = ["entries", "erased", "head", "last", "broken"]
        if verification.is_complete:
            row.missing = None if row.broken else _missing(row)
            row.state, row.finished_at = State.DONE, Now()
            changed += ["missing", "state", "finished_at"]
        row.save(update_fields=changed)
        return True


def _missing(row: LedgerCheck) -> UUID | None:
    """Return the entry at which the verification before ended, if it is gone.

    A chain whose end was cut off fits; what was verified before shows it.
    """
    finished_checks = LedgerCheck.objects.filter(
        organization_id=row.organization_id, state=State.DONE
    )
    previous = (
        finished_checks.filter(last__isnull=False)
        .order_by("-pk")
        .values_list("last", "head")
        .first()
    )
    last, head = previous or (None, "")
    if last is None:
        return None
    entries = ConsentEntry.objects.filter(organization_id=row.organization_id, pk=last, digest=head)
    return None if entries.exists() else last


@dataclass(frozen=True, slots=True)
class ChainState:
    """The state of an organization's chain, as far as it is known without verifying it."""

    newest: LedgerCheck | None
    """The latest verification, done or running."""
    head: str
    """The digest of the latest entry."""
    recorded_at: datetime | None
    entries: int
    """The entries that were verified, and those after them, up to COUNTED."""
    is_exact: bool


def state(organization_id: str) -> ChainState:
    """Return the state of a chain; three queries, each bounded."""
    newest = LedgerCheck.objects.filter(organization_id=organization_id).order_by("-pk").first()
    chain = ConsentEntry.objects.filter(organization_id=organization_id)
    latest = chain.order_by("-pk").values_list("digest", "recorded_at").first()
    checked_count = newest.entries if newest else 0
    unchecked = chain.filter(pk__gt=newest.last) if newest and newest.last else chain
    count = unchecked.order_by("pk")[:COUNTED].count()
    head, recorded_at = latest or ("", None)
    return ChainState(newest, head, recorded_at, checked_count + count, count < COUNTED)


def history(organization_id: str, *, limit: int) -> list[LedgerCheck]:
    """Return the latest verifications."""
    rows = LedgerCheck.objects.filter(organization_id=organization_id)
    return list(rows.order_by("-pk")[:limit])


def place_of(organization_id: str, entry_id: UUID) -> ConsentEntry | None:
    """Return an entry that does not fit, None if it is gone."""
    return ConsentEntry.objects.filter(organization_id=organization_id, pk=entry_id).first()
