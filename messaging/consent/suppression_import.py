"""Importing a file of suppressions (see `rme.tenants.imports`).

To import a part twice does no harm: the second time its entries are already listed.
"""

from collections.abc import Sequence
from typing import IO, NamedTuple
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from messaging.consent import suppressions
from messaging.consent.suppression_export import COLUMNS, EXTRA_COLUMNS
from messaging.consent.suppression_inputs import read_entry
from messaging.models import SuppressionImport
from rme.core import csv_lines
from rme.core.addresses import Digits
from rme.core.csv_lines import Reader, Unreadable
from rme.core.errors import InvalidPayload
from rme.tenants import imports, organizations
from rme.tenants.imports import PartResult, Rows, rejected_rows

__all__ = ["Unreadable", "cancel", "rejected_rows", "start", "step", "work"]


class _Part(NamedTuple):
    """A part that was read: its outcome with the bad rows, and the entries of the other rows."""

    outcome: PartResult
    entries: list[suppressions.NewSuppression]


SOURCE = "IMPORT"
PART_LINES = 5000


def start(
    organization_id: str,
    name: str,
    file: IO[bytes],
    started_by: str,
    part_lines: int = PART_LINES,
    *,
    digits: Digits = Digits.UNSAID,
) -> SuppressionImport:
    """Store a file to be imported, completely or not at all. Raises Unreadable."""
    reader = Reader(file, part_lines, SuppressionImport.line_limit)
    first = reader.read_header()
    columns = csv_lines.header(first, COLUMNS, EXTRA_COLUMNS, reader.delimiter)
    if "channel" not in columns or not {"address", "contactId"} & set(columns):
        raise Unreadable(_("The first line must name channel, and one of address and contactId."))
    run = SuppressionImport(
        organization_id=organization_id,
        name=name,
        columns=columns,
        delimiter=reader.delimiter,
        digits=digits.value,
        started_by=started_by,
    )
    imports.store(run, reader)
    return run


def prepare(organization_id: str, name: str, file: IO[bytes], started_by: str) -> SuppressionImport:
    """Store a file whose columns a person will choose. Raises Unreadable."""
    run = SuppressionImport(organization_id=organization_id, name=name, started_by=started_by)
    imports.prepare(run, Reader(file, PART_LINES, SuppressionImport.line_limit))
    return run


def problem_of(columns: Sequence[str]) -> str:
    """Return why a file cannot be imported by these columns ("": left out), or an empty text."""
    if "channel" not in columns:
        return _("No column is channel, which every entry needs.")
    if not {"address", "contactId"} & set(columns):
        return _("No column is address or contactId: one of them says who must not be written to.")
    return ""


def work() -> bool:
    """Import one part of the next file; return whether there may be more to do."""
    return imports.import_next_part(SuppressionImport, _store, _read)


def step(run_id: UUID) -> SuppressionImport:
    """Import the next part of a file, if its import runs; return the import's state."""
    run: SuppressionImport = imports.import_part_of(SuppressionImport, run_id, _store, _read)
    return run


def cancel(organization_id: str, run_id: UUID) -> bool:
    """Cancel an import; return whether it was running. What was imported stays."""
    return imports.cancel(SuppressionImport, organization_id, run_id)


def _read(run: SuppressionImport, lines: Rows) -> _Part:
    """Parse and check the rows of a part.

    Contacts may be looked up on a remote platform, so no transaction may be open.
    """
    organization = organizations.get(run.organization_id)
    outcome, entries = PartResult(rows=len(lines)), {}
    for number, line in lines:
        try:
            row = csv_lines.row(line, run.columns, run.delimiter)
            body = {
                name: text.replace("\n", " ")  # a note may have several lines
                for name, text in row.items()
                if name not in EXTRA_COLUMNS
            }
            entries[number] = read_entry(body, organization, SOURCE, Digits(run.digits))
        except InvalidPayload as error:
            outcome.reject(number, *((each.field, each.message) for each in error.details))
        except ValueError as error:
            outcome.reject(number, ("row", str(error)))
    contact_ids = [entry.contact_id for entry in entries.values()]
    unknown_contacts = suppressions.missing_contacts(organization.id, contact_ids)
    for number, entry in list(entries.items()):
        if entry.contact_id in unknown_contacts:
            outcome.reject(number, ("contactId", _("no such contact")))
            del entries[number]
    outcome.problems.sort()
    return _Part(outcome, list(entries.values()))


def _store(run: SuppressionImport, part: _Part) -> PartResult:
    """Put the entries of a part on the list; return the part's outcome.

    A dry run does it and takes it back, so it counts what the import will do. An entry that two
    parts have is counted twice by it.
    """
    outcome = part.outcome
    change = _tried(part) if run.dry_run else suppressions.suppress_alone(part.entries)
    outcome.added, outcome.replaced = len(change.added), change.replaced
    return outcome


def _tried(part: _Part) -> suppressions.Change:
    """Return what the entries of a part would change."""
    with transaction.atomic():
        change = suppressions.suppress_alone(part.entries)
        transaction.set_rollback(True)
    return change
